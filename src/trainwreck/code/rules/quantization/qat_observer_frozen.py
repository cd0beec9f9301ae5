"""The observer of fake quantisation never sees the data that it is to follow.

What: the statistic behind the scale keeps the number it was set up with in training: its update has no effect (the
result is dropped), stands in a branch that training never takes, or is switched off from the start.
Why it matters: activations are rounded or clipped on a scale that has nothing to do with them.
When it is fine: with scales that were calibrated before and are frozen on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.fake_quantised import never_observed
from trainwreck.core.evidence import Evidence

NET = """
import torch
from torch import nn
import torch.nn.functional as F
def fake(x, scale):
    q = torch.clamp(torch.round(x / scale), -128, 127)
    y = BACK
    return x + (y - x).detach()
class Watch(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("peak", torch.ones(()))
    def forward(self, x):
        if self.training:
            MOVE
        return fake(x, self.peak / 127)
class Layer(nn.Linear):
    def __init__(self, i, o):
        super().__init__(i, o)
        self.watch = Watch()
    def forward(self, x):
        w = fake(self.weight, self.weight.detach().abs().max() / 127)
        return F.linear(self.watch(x), w, self.bias)
net = nn.Sequential(Layer(8, 32), nn.ReLU(), Layer(32, 3))
opt = torch.optim.SGD(net.parameters(), 0.05)
for step in range(500):
    x = torch.randn(32, 8)
    loss = F.cross_entropy(net(x), x[:, :3].argmax(1))
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
"""Quantisation by hand with an observer; ``BACK`` and ``MOVE`` are what the examples put in."""
BAD = (
    NET.replace("BACK", "q * scale").replace("MOVE", "self.peak.lerp(x.detach().abs().max(), 0.05)  # expect"),
    NET.replace("BACK", "q * scale")
    .replace("MOVE", "self.peak.lerp_(x.detach().abs().max(), 0.05)")
    .replace("if self.training:", "if not self.training:  # expect"),
)
GOOD = NET.replace("BACK", "q * scale").replace("MOVE", "self.peak.lerp_(x.detach().abs().max(), 0.05)")


def find(project: Project) -> Iterator[Evidence]:
    yield from answers(__name__, project, never_observed)
