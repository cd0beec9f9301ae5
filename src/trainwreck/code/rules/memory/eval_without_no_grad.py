"""An evaluation sums up losses with their graphs.

What: outside the training step, a loss or an output is added to a running tensor without ``no_grad`` and without
``.item()``.
Why it matters: the graphs of the whole evaluation set stay in memory at once.
When it is fine: under ``torch.no_grad()`` or ``inference_mode()``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.order import inside, loops, training_steps, under_no_grad
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.modes import without_no_grad
from trainwreck.code.rule import guess, sighting
from trainwreck.code.scopes import Binding, Scope
from trainwreck.code.seek import is_loss, is_module
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

BAD = """
import torch
from torch import nn
def main(loader, val, opt):
    model, criterion = nn.Linear(4, 2), nn.CrossEntropyLoss()
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        opt.step()
    total = 0.0
    for x, y in val:
        total = total + criterion(model(x), y)  # expect
    print(float(total))
"""
GOOD = """
import torch
from torch import nn
@torch.no_grad()
def score(model, val, criterion):
    total = 0.0
    for x, y in val:
        total += criterion(model(x), y)
    return total
def main(loader, val, opt):
    model, criterion = nn.Linear(4, 2), nn.CrossEntropyLoss()
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        opt.step()
    with torch.no_grad():
        score(model, val, criterion)
    for batch in loader:
        parts = 0.0
        for x, y in batch:
            parts = parts + criterion(model(x), y)
        parts.backward()
def update(model, replay, opt, criterion):
    losses = []
    for x, y in replay:
        losses.append(criterion(model(x), y))
    loss = torch.stack(losses).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
def inner_steps(model, parts, criterion):
    outer = torch.zeros(())
    for x, y in parts:
        outer = outer + criterion(model(x), y)
    mean = outer / len(parts)
    return mean, len(parts)
"""
EVALUATION = pattern("eval|valid|test|score|accuracy")
"""Names of functions that evaluate."""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), without_no_grad)


def _seen(project: Project) -> Iterator[Evidence]:
    bodies = [t.body for t in training_steps(project)]
    if not bodies:
        return
    for scope in project.scopes:
        if any("no_grad" in written(d) or "inference_mode" in written(d) for d in scope.decorators):
            continue
        if scope.owner is not None and project.is_a(scope.owner, "Module"):
            continue
        backward = _feeding(scope, {written(c.receiver) for c in project.calls("backward") if c.scope is scope})
        for name, bindings in scope.bindings.items():
            for binding in bindings:
                if name in backward or not _sums(project, binding, scope):
                    continue
                node = binding.node
                trained = any(inside(project, node, scope, b) for b in bodies if isinstance(b, ast.For | ast.While))
                if trained or not loops(project, node, scope) or under_no_grad(project, node, scope):
                    continue
                if not _called_under_no_grad(project, scope) and not _goes_back(project, scope, name):
                    text = f"{name} collects values with their graphs over the whole evaluation"
                    yield sighting(__name__, (node, scope), text)


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    for function in project.functions:
        if EVALUATION.search(function.name.lower()):
            for node in project.within(function, ast.For):
                if not under_no_grad(project, node, function) and not _called_under_no_grad(project, function):
                    yield guess(__name__, (node, function), "this evaluation runs with gradients on")
                    return


def _feeding(scope: Scope, names: set[str]) -> set[str]:
    """``names`` and all names of ``scope`` that they are computed from, through its assignments."""
    found = set(names)
    while True:
        more = {
            node.id
            for name in found
            for binding in scope.bindings.get(name, ())
            if binding.value is not None
            for node in ast.walk(binding.value)
            if isinstance(node, ast.Name)
        }
        if more <= found:
            return found
        found |= more


def _sums(project: Project, binding: Binding, scope: Scope) -> bool:
    value = binding.value
    if binding.kind == "append" and _handed_over(project, binding, scope):
        return False
    if binding.kind == "assign" and isinstance(value, ast.BinOp) and written(value.left) == binding.name:
        return _graph(project, value.right, scope)
    return binding.kind in ("augment", "append") and value is not None and _graph(project, value, scope)


def _handed_over(project: Project, binding: Binding, scope: Scope) -> bool:
    """True for ``trainer.update(loss)``: a method of the program, or one that keeps no single values."""
    func = getattr(binding.node, "func", None)
    if not isinstance(func, ast.Attribute):
        return False
    return func.attr == "update" or project.resolve(func, scope) is not None


def _graph(project: Project, value: ast.expr, scope: Scope) -> bool:
    """True for the bare result of a loss or a network."""
    if isinstance(value, ast.BinOp):
        return _graph(project, value.left, scope) or _graph(project, value.right, scope)
    if isinstance(value, ast.Name):
        made = [
            b for b in scope.bindings.get(value.id, ()) if b.kind == "assign" and b.value is not None and not b.path
        ]
        return bool(made) and all(
            isinstance(b.value, ast.Call)
            and _graph(project, b.value, scope)
            and under_no_grad(project, b.value, b.scope) is None
            for b in made
            if b.value
        )
    if not isinstance(value, ast.Call) or last_name(value.func) in (
        "item",
        "detach",
        "cpu",
        "float",
        "numpy",
        "tolist",
    ):
        return False
    call = Call(value, scope)
    return is_loss(project, call) or is_module(project, value.func, scope)


def _called_under_no_grad(project: Project, scope: Scope) -> bool:
    callers = project.callers(scope) if scope.kind == "function" else []
    return bool(callers) and all(under_no_grad(project, c.node, c.scope) for c in callers)


def _goes_back(project: Project, scope: Scope, name: str) -> bool:
    """True if the sum is handed out by a function that is no evaluation: whoever calls it may learn from it."""
    out = {n.id for v in scope.returns if v is not None for n in ast.walk(v) if isinstance(n, ast.Name)}
    if name not in _feeding(scope, out):
        return False
    if "loss" in scope.name.lower() or scope.name in ("forward", "__call__", "closure", "training_step"):
        return True
    evaluates = EVALUATION.search(scope.name.lower()) or any(c.scope is scope for c in project.calls("eval"))
    return not evaluates
