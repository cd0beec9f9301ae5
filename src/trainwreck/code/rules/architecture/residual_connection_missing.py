"""A block puts a branch in place of the stream that it should be added to.

What: in a block of a residual network one branch is added (``x = x + attention(norm(x))``) and another replaces what
came in (``x = mlp(norm(x))``).
Why it matters: whatever the layers before have put into the stream is lost at every such block, and the gradient has
no short way back: the deeper the network, the worse it learns.
When it is fine: where a block changes the width or the length of its input; that is not told.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.skipped import replaced
from trainwreck.core.evidence import Evidence

BAD = """
import torch
from torch import nn
class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.mix = nn.Sequential(nn.Linear(d, d), nn.GELU(), nn.Linear(d, d))
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))
    def forward(self, x):
        x = x + self.mix(self.n1(x))
        return self.mlp(self.n2(x))  # expect
net = nn.Sequential(nn.Linear(10, 32), Block(32), Block(32), nn.LayerNorm(32), nn.Linear(32, 3))
opt = torch.optim.Adam(net.parameters())
x, y = torch.randn(500, 10), torch.randint(0, 3, (500,))
for i in torch.randperm(500).split(50):
    loss = nn.functional.cross_entropy(net(x[i]), y[i])
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
GOOD = BAD.replace("return self.mlp(self.n2(x))  # expect", "return x + self.mlp(self.n2(x))").replace(
    "nn.Linear(32, 3))", "nn.Linear(32, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 3))"
)


def find(project: Project) -> Iterator[Evidence]:
    yield from answers(__name__, project, replaced)
