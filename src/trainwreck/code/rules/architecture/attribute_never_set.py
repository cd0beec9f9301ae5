"""A method reads an attribute that nothing in the program ever sets.

What: ``self.head(x)`` in ``forward``, and no ``self.head = ...`` anywhere: the line is missing or the name misspelt.
Why it matters: the first call ends in an AttributeError.
When it is fine: where a base class of a library, ``setattr`` or ``__getattr__`` provides it: then nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.absent import never_set
from trainwreck.core.evidence import Evidence

_NET = """
import torch.nn.functional as F
from torch import nn, optim
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.HEAD = nn.Linear(8, 2)
    def forward(self, x):
        return self.head(F.relu(self.body(x)))MARK
net = Net()
opt = optim.Adam(net.parameters())
for x, y in loader:
    opt.zero_grad()
    F.cross_entropy(net(x), y).backward()
    opt.step()
"""
BAD = _NET.replace("HEAD", "haed").replace("MARK", "  # expect")
GOOD = (
    _NET.replace("HEAD", "head").replace("MARK", ""),
    _NET.replace("self.HEAD = nn.Linear(8, 2)", "self.add_module('head', nn.Linear(8, 2))").replace("MARK", ""),
    _NET.replace("self.HEAD = nn.Linear(8, 2)", "setattr(self, 'he' + 'ad', nn.Linear(8, 2))").replace("MARK", ""),
)


def find(project: Project) -> Iterator[Evidence]:
    yield from answers(__name__, project, never_set)
