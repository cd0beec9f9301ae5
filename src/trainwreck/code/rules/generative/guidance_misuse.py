"""Classifier-free guidance is put together, or prepared for, wrongly.

What: the guided output moves from the conditional to the unconditional one (``cond + w * (uncond - cond)``); the
training never leaves the condition out; the sampler's stand-in for no condition is not that of the training.
Why it matters: samples ignore their condition or go against it; the unconditional output was never learned.
When it is fine: with weights between 0 and 1 (a mixture), and for networks that are not trained here.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.guidance import misused
from trainwreck.core.evidence import Evidence

_START = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.out = nn.Embedding(4, 8), nn.Linear(10, 2)
    def forward(self, x, c):
        return self.out(torch.cat([x, self.emb(c)], -1))
net = Net()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(500):
    x, c = torch.randn(32, 2), torch.randint(0, 3, (32,))
    noise = torch.randn_like(x)
    given = torch.where(torch.rand(32) < 0.1, 3, c)
    loss = (net(x + noise, given) - noise).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
@torch.no_grad()
def sample(c, w=2.0):
    x = torch.randn(32, 2)
    for t in range(50):
        cond, free = net(x, c), net(x, torch.full_like(c, 3))
        LINE
    return x
print(sample(torch.zeros(32, dtype=torch.long) + torch.randint(0, 3, (32,))))
"""
BAD = (
    _START.replace("LINE", "x = x - 0.1 * (cond + w * (free - cond))  # expect"),
    _START.replace("LINE", "x = x - 0.1 * (free + w * (cond - free))")
    .replace("    given = torch.where(torch.rand(32) < 0.1, 3, c)\n", "")
    .replace("(x + noise, given)", "(x + noise, c)")
    .replace("(0, 3, (32,))\n    noise", "(0, 3, (32,))  # expect\n    noise"),
)
GOOD = (
    _START.replace("LINE", "x = x - 0.1 * (free + w * (cond - free))"),
    _START.replace("LINE", "x = x - 0.1 * ((1 + w) * cond - w * free)"),
)


def find(project: Project) -> Iterator[Evidence]:
    yield from answers(__name__, project, misused)
