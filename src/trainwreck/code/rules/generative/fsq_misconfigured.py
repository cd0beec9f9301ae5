"""The levels or the bound of finite scalar quantisation do not fit together.

What: values are rounded that nothing bounds, or a bound that makes more or fewer numbers than the levels say.
Why it matters: indices run over the codebook that the levels imply, or most of its codes are never used.
When it is fine: one number more or less at an end; rounding that is no codebook (learned compression).
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.finite import levels_missed
from trainwreck.core.evidence import Evidence

_CODEC = """
import torch
from torch import nn
class Codec(nn.Module):
    def __init__(self, levels=(8, 6, 5)):
        super().__init__()
        self.register_buffer("levels", torch.tensor(levels))
        self.down, self.up = nn.Linear(16, 3), nn.Linear(3, 16)
    def forward(self, x):
        z = self.down(x)
        BOUND
        q = b + (b.round() - b).detach()
        return self.up(q)
net = Codec()
opt = torch.optim.Adam(net.parameters())
for step in range(100):
    x = torch.randn(32, 16)
    loss = (net(x) - x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
BAD = (
    _CODEC.replace("BOUND", "b = z.tanh() * self.levels  # expect"),
    _CODEC.replace("BOUND", "b = z * (self.levels - 1) / 2  # expect"),
)
GOOD = (
    _CODEC.replace("BOUND", "b = z.tanh() * (self.levels - 1) / 2"),
    _CODEC.replace("BOUND", "b = torch.sigmoid(z) * (self.levels - 1)"),
    _CODEC.replace("BOUND", "b = z").replace("levels", "widths"),
)


def find(project: Project) -> Iterator[Evidence]:
    yield from answers(__name__, project, levels_missed)
