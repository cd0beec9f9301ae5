"""Strong weight decay on norm gains and biases.

What: one parameter group, ``weight_decay`` of 0.05 or more, and the network has norm layers.
Why it matters: gains are pulled to zero and biases off their place; the usual recipe exempts both.
When it is fine: it often makes little difference.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import last_name
from trainwreck.code.facts import (
    only,
    optimizers,
    option,
    text_of,
)
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.decays import sorted_in_vain, swapped
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)
    def forward(self, x):
        return self.norm(x)
model = Net()
opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)  # expect
""",
    """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm2d(8)
    def forward(self, x):
        return self.bn(x)
def main():
    net = Net().cuda()
    return torch.optim.AdamW(net.parameters(), weight_decay=0.05)  # expect
""",
)
GOOD = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)
    def forward(self, x):
        return self.norm(x)
def main(groups):
    net = Net()
    a = torch.optim.AdamW(net.parameters(), weight_decay=0.01)
    return a, torch.optim.AdamW(groups, weight_decay=0.1)
"""
STRONG = 0.05


def find(project: Project) -> Iterator[Evidence]:
    yield from answers(__name__, project, swapped)
    yield from answers(__name__, project, sorted_in_vain)
    for built in optimizers(project):
        value = only(project, option(project, built, "weight_decay"))
        params = built.argument("params", 0)
        if not isinstance(value, int | float) or value < STRONG or not isinstance(params, ast.Call):
            continue
        if last_name(params.func) != "parameters" or not isinstance(params.func, ast.Attribute):
            continue
        owner = project.class_of(params.func.value, built.scope)
        if owner is not None and any(
            w in text_of(project, owner) for w in ("LayerNorm", "BatchNorm", "RMSNorm", "GroupNorm")
        ):
            yield sighting(__name__, built, f"a decay of {value:g} also pulls at norm gains and biases")
