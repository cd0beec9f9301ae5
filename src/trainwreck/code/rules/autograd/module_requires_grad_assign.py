"""requires_grad is assigned to a module.

What: ``model.backbone.requires_grad = False``: a module has no such property, the line sets an unused attribute.
Why it matters: nothing is frozen (or unfrozen); the parameters keep their own flags.
When it is fine: on tensors and parameters.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.facts import (
    network,
)
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.freezing import assigned_to_module
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence

BAD = (
    """
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
        self.head = nn.Linear(8, 2)
        self.backbone.requires_grad = False  # expect
""",
    """
import torchvision
model = torchvision.models.resnet18(weights="DEFAULT")
model.requires_grad = False  # expect
""",
    """
from torch import nn
class Net(nn.Module):
    def forward(self, x):
        return x
def build():
    net = Net()
    net.requires_grad = False  # expect
    return net
""",
)
GOOD = """
import torch
from torch import nn
net = nn.Linear(4, 2)
net.requires_grad_(False)
net.weight.requires_grad = False
for p in net.parameters():
    p.requires_grad = False
x = torch.zeros(3)
x.requires_grad = True
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), assigned_to_module)


def _written(project: Project) -> Iterator[Evidence]:
    for walked in project.walked.values():
        if "requires_grad" not in walked.top.module.text:
            continue
        for scope in walked.scopes:
            for node in project.within(scope, ast.Assign):
                assert isinstance(node, ast.Assign)
                target = node.targets[0]
                if (
                    isinstance(target, ast.Attribute)
                    and target.attr == "requires_grad"
                    and isinstance(node.value, ast.Constant)
                    and not _asked_what_it_is(project, target.value, scope)
                    and network(project, target.value, scope)
                ):
                    text = f"{written(target.value)} is a module: the attribute freezes nothing, requires_grad_() does"
                    yield sighting(__name__, (node, scope), text)


def _asked_what_it_is(project: Project, value: ast.expr, scope: Scope) -> bool:
    """True where the function tells modules from parameters itself: ``isinstance(part, nn.Module)``."""
    name = written(value)
    for node in project.within(scope, ast.Call):
        assert isinstance(node, ast.Call)
        if written(node.func) in ("isinstance", "hasattr", "callable") and node.args and written(node.args[0]) == name:
            return True
    return False
