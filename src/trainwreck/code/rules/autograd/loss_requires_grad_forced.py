"""requires_grad is switched on at the loss.

What: ``loss.requires_grad = True`` (or ``requires_grad_()``, or a new tensor around the loss) just before
``backward()``.
Why it matters: the error "does not require grad" goes away, but the graph to the model stays cut: nothing learns.
When it is fine: on inputs that are optimised themselves.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name
from trainwreck.code.facts import (
    names,
)
from trainwreck.code.order import (
    position,
)
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.forcing import forced
from trainwreck.code.rule import sighting
from trainwreck.code.values import is_false, is_true
from trainwreck.core.evidence import Evidence

BAD = (
    """
def train(model, loader, criterion, optimizer):
    for x, y in loader:
        loss = criterion(model(x).argmax(1).float(), y)
        loss.requires_grad = True  # expect
        loss.backward()
        optimizer.step()
""",
    """
def train(model, loader, criterion, optimizer):
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.requires_grad_(True)  # expect
        loss.backward()
""",
    """
import torch
def train(model, loader, criterion, optimizer):
    for x, y in loader:
        loss = criterion(model(x), y)
        loss = torch.tensor(loss, requires_grad=True)  # expect
        loss.backward()
""",
)
GOOD = """
import torch
def attack(model, x, y, criterion):
    x.requires_grad = True
    delta = torch.zeros_like(x, requires_grad=True)
    loss = criterion(model(x + delta), y)
    loss.backward()
    return x.grad
def fit(x):
    z = torch.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(10):
        z.sum().backward()
def input_gradient(x, steps, gradients):
    x = torch.tensor(x, requires_grad=True)
    kept = x
    for step in steps:
        x = step(x)
    x.backward(gradients)
    return kept.grad
def score(x, net):
    x = torch.tensor(x, requires_grad=True)
    start = x
    x = net(x).sum()
    x.backward()
    return start.grad
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), forced)


def _written(project: Project) -> Iterator[Evidence]:
    for call in project.calls("backward"):
        name = call.receiver
        if not isinstance(name, ast.Name):
            continue
        for node in project.within(call.scope, ast.Assign, ast.Call):
            if position(node) >= position(call.node) or not _forces(node, name.id):
                continue
            if project.statement(node, call.scope) not in _block(project, call):
                continue
            if call.node.args or _made_anew(project, call, node, name.id):
                continue
            text = f"requires_grad is forced on {name.id}: its graph to the model stays cut, no weight gets a gradient"
            yield sighting(__name__, (node, call.scope), text, proof=[call])


def _made_anew(project: Project, call: Call, forced: ast.AST, name: str) -> bool:
    """True where the name stands for another value, computed after the forcing, when the backward runs."""
    start, end = position(project.statement(forced, call.scope)), position(call.node)
    return any(start < position(b.node) < end for b in project.lookup(name, call.scope) if b.kind == "assign")


def _block(project: Project, call: Call) -> list[ast.stmt]:
    above = project.parent(project.statement(call.node, call.scope), call.scope)
    return [*getattr(above, "body", []), *getattr(above, "orelse", [])]


def _forces(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Assign(
            targets=[ast.Attribute(value=ast.Name(id=base), attr="requires_grad")], value=ast.Constant(value=True)
        ):
            return base == name
        case ast.Call(func=ast.Attribute(value=ast.Name(id=base), attr="requires_grad_")):
            return base == name and not (node.args and is_false(node.args[0]))
        case ast.Assign(targets=[ast.Name(id=target)], value=ast.Call() as value):
            wraps = last_name(value.func) in ("tensor", "Variable", "Parameter", "as_tensor")
            forced = any(k.arg == "requires_grad" and is_true(k.value) for k in value.keywords)
            return target == name and wraps and forced and bool(value.args) and name in names(value.args[0])
    return False
