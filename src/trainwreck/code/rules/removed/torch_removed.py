"""Functions that torch or torchvision removed.

What: calls and imports of `torch.solve`, `torch.symeig`, `torch.lstsq`, `torch._six` and others.
Why it matters: the import fails, or the function is a stub that raises.
When it is fine: where the project pins a release that still has it, or a branch tests the release.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.torch_changes import told
from trainwreck.core.evidence import Evidence

BAD = """
import torch
from torch import symeig  # expect
from torch._six import inf  # expect
def roots(a, b):
    x = torch.solve(b, a)  # expect
    return x, symeig(a)  # expect
"""
GOOD = """
import torch
from mylib import torch as other
def roots(a, b):
    other.solve(b, a)
    if torch.__version__ < "1.9":
        return torch.solve(b, a)
    return torch.linalg.solve(a, b)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from told(project, __name__, "torch-removed")
