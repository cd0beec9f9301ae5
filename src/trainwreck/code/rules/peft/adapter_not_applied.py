"""An adapter is trained that the network is run without.

What: adapters are made and given to the optimizer, but not put in the place of the layers that they wrap; or what
they compute is left out of the output.
Why it matters: they get no gradient and stay as they were: only other parts learn.
When it is fine: where a hook or a replaced method runs them.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.adapters import discarded, unused
from trainwreck.code.rehearsal.questions.attaching import no_place_for_them
from trainwreck.core.evidence import Evidence

_START = """
import copy
import torch
from torch import nn
class Slim(nn.Module):
    def __init__(self, layer, r=4):
        super().__init__()
        self.layer = layer
        self.a = nn.Linear(layer.in_features, r, bias=False)
        self.b = nn.Linear(r, layer.out_features, bias=False)
        nn.init.zeros_(self.b.weight)
    def forward(self, x):
        return self.layer(x) + self.b(self.a(x))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two, self.head = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 3)
    def forward(self, x):
        return self.head(self.two(self.one(x).relu()).relu())
net = Net()
for p in net.parameters():
    p.requires_grad_(False)
"""
_END = """
opt = torch.optim.Adam([*params, *net.head.requires_grad_(True).parameters()], 1e-3)
for step in range(100):
    x, y = torch.randn(16, 8), torch.randint(0, 3, (16,))
    loss = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
BAD = (
    _START
    + """
params = []
for name in ("one", "two"):
    made = Slim(getattr(net, name))  # expect
    params += [*made.a.parameters(), *made.b.parameters()]
"""
    + _END,
    _START.replace(
        "        return self.layer(x) + self.b(self.a(x))",
        "        y = self.layer(x)\n        extra = self.b(self.a(x))  # expect\n        return y",
    )
    + """
net.one = Slim(net.one)
params = [*net.one.a.parameters(), *net.one.b.parameters()]
"""
    + _END,
    _START
    + """
adapted = copy.deepcopy(net)
adapted.one = Slim(adapted.one)  # expect
params = [p for p in adapted.parameters() if p.requires_grad]
"""
    + _END,
)
GOOD = (
    _START
    + """
params = []
for name in ("one", "two"):
    made = Slim(getattr(net, name))
    setattr(net, name, made)
    params += [*made.a.parameters(), *made.b.parameters()]
"""
    + _END,
    _START
    + """
net.one = Slim(net.one)
params = [*net.one.a.parameters(), *net.one.b.parameters()]
"""
    + _END,
    _START
    + """
net.one = nn.Sequential(net.one, nn.Identity())
params = []
"""
    + _END,
)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, (), unused, no_place_for_them, discarded)
