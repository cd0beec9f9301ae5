"""What fake quantisation gives on is not near to what it was given.

What: a value is rounded to many levels, and the scale is not undone, undone the other way, or of another size.
Why it matters: the layers that follow get other numbers than the weights and activations stand for.
When it is fine: with few levels (binary, ternary, two bits), which lose much by intention.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.fake_quantised import far_off
from trainwreck.core.evidence import Evidence

_NET = """
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
_MOVE = "self.peak.lerp_(x.detach().abs().max(), 0.05)"
BAD = (
    _NET.replace("MOVE", _MOVE).replace("BACK", "q / scale  # expect"),
    _NET.replace("MOVE", _MOVE)
    .replace("x / scale), -128, 127)", "x * scale), -128, 127)")
    .replace("BACK", "q * scale  # expect"),
)
GOOD = _NET.replace("MOVE", _MOVE).replace("BACK", "q * scale")


def find(project: Project) -> Iterator[Evidence]:
    yield from answers(__name__, project, far_off)
