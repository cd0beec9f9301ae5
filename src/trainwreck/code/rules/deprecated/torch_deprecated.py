"""Functions that torch or torchvision deprecated.

What: `torch.qr`, `torch.cholesky`, `torch.norm`, `functorch.vmap`, `sdp_kernel`, `v2.ToTensor` and others.
Why it matters: they warn today and go in a later release.
When it is fine: where the project pins a release that still has it, or a branch tests the release.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.torch_changes import told
from trainwreck.core.evidence import Evidence

BAD = """
import torch
import functorch
from torch.testing import assert_allclose  # expect
from torchvision.transforms import v2
def work(x):
    q, r = torch.qr(x)  # expect
    functorch.vmap(torch.sin)(x)  # expect
    v2.ToTensor()  # expect
    return torch.cholesky(q)  # expect
"""
GOOD = """
import torch
import torch.nn.utils.parametrizations as P
from torchvision import transforms
class Linalg:
    def qr(self, x):
        return x
def work(x):
    Linalg().qr(x)
    transforms.ToTensor()
    q, r = torch.linalg.qr(x)
    return torch.linalg.cholesky(q)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from told(project, __name__, "torch-deprecated")
