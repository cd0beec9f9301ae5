"""Masked scores are used as attention weights without a softmax.

What: ``scores.masked_fill(mask, -inf)`` and then ``scores @ v``.
Why it matters: minus infinity meets the values: the output is infinite or NaN from the first step on.
When it is fine: with a softmax between the mask and the product.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.forms import weights_without_softmax
from trainwreck.core.evidence import Evidence

_ATTENTION = """
import torch.nn.functional as F
from torch import nn, optim
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
    def forward(self, x, mask):
        scores = self.q(x) @ self.k(x).transpose(-2, -1) / 8 ** 0.5
        scores = scores.masked_fill(mask, float("-inf"))SOFTMAX
        return scores @ self.v(x)MARK
net = Attention()
opt = optim.Adam(net.parameters())
for x, mask in loader:
    opt.zero_grad()
    F.mse_loss(net(x, mask), x).backward()
    opt.step()
"""
BAD = _ATTENTION.replace("SOFTMAX", "").replace("MARK", "  # expect")
GOOD = _ATTENTION.replace("SOFTMAX", ".softmax(-1)").replace("MARK", "")


def find(project: Project) -> Iterator[Evidence]:
    yield from answers(__name__, project, weights_without_softmax)
