"""Evaluation runs in training mode.

What: a loop over validation data runs a network with dropout or batch norm under ``no_grad``, and nothing ever
calls ``eval()``.
Why it matters: dropout stays active and batch norm uses (and changes) the statistics of the test batches.
When it is fine: for Monte-Carlo dropout, or where the caller switches the mode.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import (
    BATCHNORMS,
    DROPOUTS,
    HELD,
    TRAIN,
    function_of,
    made,
    names_in,
    source,
    text_of,
)
from trainwreck.code.order import (
    under_no_grad,
)
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.modes import train_in_eval
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import FunctionNode, Scope
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
from torch import nn
model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
def evaluate(val_loader):
    correct = 0
    with torch.no_grad():  # expect
        for x, y in val_loader:
            correct += (model(x).argmax(1) == y).sum().item()
    return correct
""",
    """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)
    def forward(self, x):
        return self.drop(x)
class Runner:
    def __init__(self):
        self.net = Net()
    @torch.no_grad()
    def validate(self):  # expect
        return sum(self.net(x).sum().item() for x in self.val_loader)
def main(train_loader, opt):
    runner = Runner()
    for x in train_loader:
        runner.net(x).sum().backward()
        opt.step()
        opt.zero_grad()
    runner.validate()
""",
)
GOOD = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)
    def forward(self, x):
        return self.drop(x)
class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(3)
    def forward(self, x):
        return self.norm(x)
def evaluate(model, val_loader):
    with torch.no_grad():
        return [model(x) for x in val_loader]
def main(val_loader):
    net, other = Net(), Norm()
    net.eval()
    evaluate(net, val_loader)
    with torch.no_grad():
        for x in val_loader:
            other(x)
def sampled(x, y):
    net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.2), nn.Linear(8, 1))
    opt = torch.optim.SGD(net.parameters(), 0.1)
    for epoch in range(9):
        net.train()
        opt.zero_grad()
        (net(x) - y).pow(2).mean().backward()
        opt.step()
        net.eval()
        for m in net.modules():
            if isinstance(m, nn.Dropout):
                m.train()
        with torch.no_grad():
            print(torch.stack([net(x) for _ in range(20)]).std(0))
sampled(torch.randn(50, 4), torch.randn(50, 1))
"""
SWITCH = pattern(
    r"\.eval\(|\.train\(\s*(mode=)?(False|not |mode|training|is_train)|\.train\([a-z_]+\)|set_mode|mc_?dropout|monte",
    re.IGNORECASE,
)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), train_in_eval)


def _seen(project: Project) -> Iterator[Evidence]:
    if SWITCH.search(source(project)) or re.search(r"lightning|keras|fastai|ignite", source(project)):
        return
    told: set[int] = set()
    for walked in project.walked.values():
        for node, scope in walked.calls:
            if not isinstance(node.func, ast.Name | ast.Attribute) or not node.args:
                continue
            if not _over_held(project, node, scope):
                continue
            place = _gradless(project, node, scope)
            if place is None or id(place) in told or not _stochastic(project, node.func, scope):
                continue
            told.add(id(place))
            text = f"{written(node.func)} holds dropout or batch norm and never gets eval() before this"
            yield sighting(__name__, (place, scope), text, proof=[Call(node, scope)])


def _over_held(project: Project, node: ast.AST, scope: Scope) -> bool:
    for above in project.ancestors(node, scope):
        if isinstance(above, FunctionNode):
            return False
        iterables = [above.iter] if isinstance(above, ast.For) else []
        if isinstance(above, ast.ListComp | ast.GeneratorExp | ast.SetComp):
            iterables = [g.iter for g in above.generators]
        if any(names_in(i, HELD) or _handed(project, i, scope) for i in iterables):
            return True
    return False


def _handed(project: Project, node: ast.expr, scope: Scope) -> bool:
    """True if the loader is a parameter that every caller fills with evaluation data."""
    if not isinstance(node, ast.Name):
        return False
    bindings = project.lookup(node.id, scope)
    if len(bindings) != 1 or bindings[0].kind != "param":
        return False
    values_ = project.arguments(bindings[0])
    return bool(values_) and all(names_in(v, HELD) and not names_in(v, TRAIN) for v, _ in values_)


def _gradless(project: Project, node: ast.AST, scope: Scope) -> ast.AST | None:
    """The block or the function that runs without gradients around ``node``."""
    found = under_no_grad(project, node, scope)
    if found is None:
        return None
    return found if isinstance(found, ast.With) else function_of(project, node, scope)


def _stochastic(project: Project, func: ast.expr, scope: Scope) -> bool:
    """True if the network behind ``func`` holds dropout or batch norm."""
    owner = project.class_of(func, scope)
    if owner is not None:
        if not project.is_a(owner, "Module"):
            return False
        text = text_of(project, owner)
        return any(f"{name}(" in text for name in (*BATCHNORMS, *DROPOUTS)) and "dropout=0" not in text
    for call in made(project, func, scope):
        if project.called(call).startswith("torch.nn.") and any(
            f"{n}(" in written(call.node) for n in (*BATCHNORMS, *DROPOUTS)
        ):
            return True
        if project.called(call).startswith("torchvision.models.resnet"):
            return True
    return False
