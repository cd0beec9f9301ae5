"""Everything is frozen and then trained.

What: a loop sets ``requires_grad = False`` on all parameters of a network, nothing is unfrozen or added afterwards,
and
the same network is trained.
Why it matters: no parameter gets a gradient; ``backward()`` fails or nothing changes.
When it is fine: with a new head afterwards, or for feature extraction.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.facts import (
    optimizers,
    trains,
)
from trainwreck.code.order import (
    position,
)
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.freezing import all_frozen
from trainwreck.code.rehearsal.questions.kept_averages import nothing_to_train
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.values import is_false
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
from torch import nn
def main(loader, criterion):
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    for p in model.parameters():
        p.requires_grad = False  # expect
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
""",
    """
import torch
import torchvision
model = torchvision.models.resnet18(num_classes=10)
model.requires_grad_(False)  # expect
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def train(loader, criterion):
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
""",
)
GOOD = """
import torch
import torchvision
from torch import nn
def main(loader, criterion):
    model = torchvision.models.resnet18()
    for p in model.parameters():
        p.requires_grad = False
    model.fc = nn.Linear(512, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
def other(loader, criterion):
    model = torchvision.models.resnet18()
    for name, p in model.named_parameters():
        p.requires_grad = False
        if "fc" in name:
            p.requires_grad = True
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), all_frozen, nothing_to_train)


def _seen(project: Project) -> Iterator[Evidence]:
    for built in optimizers(project):
        value = built.argument("params", 0)
        if (
            not isinstance(value, ast.Call)
            or last_name(value.func) != "parameters"
            or not isinstance(value.func, ast.Attribute)
        ):
            continue
        model, scope = written(value.func.value), built.scope
        place = _frozen(project, model, scope)
        if place is None or position(place) > position(built.node) or not trains(project):
            continue
        if not _thawed(scope, model, place):
            text = f"every parameter of {model} is frozen here, and the optimizer is given nothing else"
            yield sighting(__name__, (place, scope), text, proof=[built])


def _frozen(project: Project, model: str, scope: Scope) -> ast.AST | None:
    for node in project.within(scope, ast.For, ast.Call):
        if isinstance(node, ast.For) and written(node.iter) == f"{model}.parameters()" and len(node.body) == 1:
            inner = node.body[0]
            if isinstance(inner, ast.Assign) and written(inner) == f"{written(node.target)}.requires_grad = False":
                return inner
            if isinstance(inner, ast.Expr) and written(inner) == f"{written(node.target)}.requires_grad_(False)":
                return inner
        if isinstance(node, ast.Call) and written(node) == f"{model}.requires_grad_(False)":
            return node
    return None


def _thawed(scope: Scope, model: str, place: ast.AST) -> bool:
    """True if after ``place`` anything is unfrozen, replaced or done to the model that may add parameters."""
    module = scope.module.tree
    for node in ast.walk(module):
        if not hasattr(node, "lineno") or position(node) <= position(place):
            continue
        if isinstance(node, ast.Assign):
            target = written(node.targets[0])
            if (
                target == model
                or target.startswith(f"{model}.")
                or (target.endswith("requires_grad") and not is_false(node.value))
                or (target.endswith(".grad") and written(node.value) != "None")  # gradients of the program's own
            ):
                return True
        if isinstance(node, ast.Call):
            name = last_name(node.func)
            if name in (
                "requires_grad_",
                "add_module",
                "setattr",
                "register_parameter",
                "append",
                "enable_adapters",
                "train_adapter",
            ) and not (node.args and is_false(node.args[0])):
                return True
            if model in [written(a) for a in node.args] and name not in ("print", "len", "summary"):
                return True
    return False
