"""A low-rank update is added to the weights, and the layer goes on adding it.

What: ``base.weight += scale * B @ A`` while the wrapper with A and B stays in the model; or the merge is done twice.
Why it matters: the update counts twice: the merged model is another one than that which was trained.
When it is fine: where the wrapper is replaced by its base, its forward asks whether it is merged, or B is set to zero.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.merging import merged_twice
from trainwreck.core.evidence import Evidence

_SCRIPT = """
import torch
import torch.nn.functional as F
from torch import nn
class Slim(nn.Module):
    def __init__(self, base, k=4):
        super().__init__()
        self.base, self.merged = base, False
        self.a = nn.Parameter(torch.randn(k, base.in_features) * 0.02)
        self.b = nn.Parameter(torch.zeros(base.out_features, k))
        base.requires_grad_(False)
    def forward(self, x):
        out = self.base(x)
        return out if self.merged else out + 2.0 * F.linear(F.linear(x, self.a), self.b)
    @torch.no_grad()
    def fold(self):
        self.base.weight += 2.0 * (self.b @ self.a)
        self.merged = True
net = nn.Sequential(Slim(nn.Linear(8, 32)), nn.ReLU(), Slim(nn.Linear(32, 3)))
opt = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], 1e-3)
for step in range(500):
    x = torch.randn(64, 8)
    opt.zero_grad()
    F.cross_entropy(net(x), x[:, :3].argmax(1)).backward()
    opt.step()
for layer in net:
    if isinstance(layer, Slim):
        layer.fold()
print(net(torch.randn(4, 8)))
"""
BAD = (
    _SCRIPT.replace("(self.b @ self.a)", "(self.b @ self.a)  # expect").replace("        self.merged = True\n", ""),
    _SCRIPT.replace("self.base.weight += 2.0 * (self.b @ self.a)",
                    "self.base.weight.add_(self.b @ self.a, alpha=2)  # expect")
    .replace("        self.merged = True\n", ""),
    _SCRIPT.replace("self.base.weight += 2.0 * (self.b @ self.a)",
                    "self.base.weight.copy_(self.base.weight + 2.0 * (self.b @ self.a))")
    .replace("out if self.merged else out + 2.0 * F.linear(F.linear(x, self.a), self.b)",
             "out + 2.0 * F.linear(F.linear(x, self.a), self.b)  # expect"),
    _SCRIPT + "for layer in net:\n    if isinstance(layer, Slim):\n        layer.fold()  # expect\n",
)  # fmt: skip
GOOD = (
    _SCRIPT,
    _SCRIPT.replace("        self.merged = True\n", "        self.b.zero_()\n"),
    _SCRIPT.replace("out if self.merged else out +", "out +").replace(
        "for layer in net:\n    if isinstance(layer, Slim):\n        layer.fold()",
        "for n, layer in enumerate(net):\n    if isinstance(layer, Slim):\n        "
        "layer.fold()\n        net[n] = layer.base",
    ),
)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, (), merged_twice)
