"""Mixed precision from the old namespace.

What: `torch.cuda.amp.autocast`, `GradScaler` and their kind.
Why it matters: they warn since torch 2.4; the new names take the device as an argument.
When it is fine: where the project pins a release that still has it, or a branch tests the release.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.torch_changes import told
from trainwreck.core.evidence import Evidence

BAD = """
import torch
from torch.cuda.amp import autocast  # expect
scaler = torch.cuda.amp.GradScaler()  # expect
"""
GOOD = """
import torch
scaler = torch.amp.GradScaler("cuda")
with torch.autocast("cuda"):
    pass
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from told(project, __name__, "amp-old-namespace")
