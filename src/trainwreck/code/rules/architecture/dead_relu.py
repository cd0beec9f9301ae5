"""Units that are off for every input from the first step.

What: the bias of a layer is filled with a large negative number, and a ReLU follows.
Why it matters: the ReLU gives zero for every input and passes no gradient: the layer never learns.
When it is fine: for the bias of a gate or of an output that is to start rare (a sigmoid behind it), and slightly
negative or positive biases.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers, further
from trainwreck.code.rehearsal.questions.cut_logits import cut_at_zero
from trainwreck.code.rehearsal.questions.ranges import below_zero
from trainwreck.code.rehearsal.questions.units import off_from_the_start
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
from torch import nn
class Config(dict):
    __getattr__ = dict.__getitem__
cfg = Config(bias=-8.0, lr=1e-3)  # expect
def init(m):
    if isinstance(m, nn.Linear):
        nn.init.constant_(m.bias, cfg.bias)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
net.apply(init)
for x, y in loader:
    nn.functional.cross_entropy(net(x), y).backward()
""",
    """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.fc = nn.Conv2d(1, 8, 3), nn.Linear(8, 2)
        with torch.no_grad():
            self.conv.bias.fill_(-5)  # expect
    def forward(self, x):
        return self.fc(torch.relu(self.conv(x)).mean((2, 3)))
net = Net()
for x, y in loader:
    nn.functional.cross_entropy(net(x), y).backward()
""",
)
GOOD = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.gate, self.out = nn.Linear(4, 8), nn.Linear(4, 8), nn.Linear(8, 1)
        nn.init.constant_(self.gate.bias, -4.0)
        nn.init.constant_(self.out.bias, -4.6)
        nn.init.constant_(self.fc.bias, -0.1)
    def forward(self, x):
        return self.out(torch.relu(self.fc(x)) * torch.sigmoid(self.gate(x)))
net = Net()
for x, y in loader:
    nn.functional.binary_cross_entropy_with_logits(net(x), y).backward()
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, answers(__name__, project, off_from_the_start), cut_at_zero, below_zero)
