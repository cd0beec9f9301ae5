"""Deterministic algorithms are demanded, and cuBLAS is not told.

What: ``torch.use_deterministic_algorithms(True)`` in a program that uses CUDA, without ``warn_only=True`` and without
``CUBLAS_WORKSPACE_CONFIG`` in code, launch scripts or configuration.
Why it matters: the first matrix product on the GPU raises and asks for the variable (CUDA 10.2 and later).
When it is fine: on the CPU, or where the environment sets it out of sight.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwreck.code.beside import texts
from trainwreck.code.facts import only, option, source
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
torch.use_deterministic_algorithms(True)  # expect
model = torch.nn.Linear(2, 2).cuda()
""",
    """
import torch
def seed_all(seed):
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(mode=True)  # expect
device = torch.device("cuda")
""",
    """
import torch
FLAG = True
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.use_deterministic_algorithms(FLAG, warn_only=False)  # expect
net = torch.nn.Linear(3, 1).to(device)
""",
)
GOOD = (
    """
import os, torch
os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
torch.use_deterministic_algorithms(True)
model = torch.nn.Linear(2, 2).cuda()
""",
    """
import torch
torch.use_deterministic_algorithms(True, warn_only=True)
model = torch.nn.Linear(2, 2).cuda()
""",
    """
import torch
torch.use_deterministic_algorithms(True)
model = torch.nn.Linear(2, 2)
""",
)
NAME = "CUBLAS_WORKSPACE_CONFIG"


def find(project: Project) -> Iterator[Evidence]:
    text = source(project)
    if NAME in text or not re.search(r"\.cuda\(|[\"']cuda", text):
        return
    if any(NAME in body for _, body in texts(project, ("shell", "yaml", "json", "toml", "environment"))):
        return
    for call in project.calls("use_deterministic_algorithms"):
        if not project.called(call).startswith("torch.") or only(project, option(project, call, "mode", 0)) is not True:
            continue
        if only(project, option(project, call, "warn_only")) in (None, False):
            shown = f"matrix products on the GPU raise in this mode unless {NAME} is set, and nothing here sets it"
            yield sighting(__name__, call, shown)
