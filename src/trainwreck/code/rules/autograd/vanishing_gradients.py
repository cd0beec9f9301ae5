"""Saturating layers follow one another with nothing that lets the gradient past.

What: five layers with a sigmoid in a row, with the weights that torch gives them.
Why it matters: each layer passes on a seventh of the gradient at best; the first ones stay as they were drawn.
When it is fine: with normalisation or a residual way in between, or weights drawn for that function.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.depth import saturating_stack
from trainwreck.core.evidence import Evidence

BAD = """
import torch.nn.functional as F
from torch import nn, optim
net = nn.Sequential(
    nn.Linear(10, 32), nn.Sigmoid(),  # expect
    nn.Linear(32, 32), nn.Sigmoid(), nn.Linear(32, 32), nn.Sigmoid(), nn.Linear(32, 32), nn.Sigmoid(), nn.Linear(32, 3))
opt = optim.Adam(net.parameters())
for x, y in loader:
    opt.zero_grad()
    F.cross_entropy(net(x), y).backward()
    opt.step()
"""
GOOD = """
import torch.nn.functional as F
from torch import nn, optim
net = nn.Sequential(
    nn.Linear(10, 32), nn.ReLU(),
    nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32), nn.Sigmoid(), nn.Linear(32, 32), nn.Sigmoid(), nn.Linear(32, 3))
opt = optim.Adam(net.parameters())
for x, y in loader:
    opt.zero_grad()
    F.cross_entropy(net(x), y).backward()
    opt.step()
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from answers(__name__, project, saturating_stack)
