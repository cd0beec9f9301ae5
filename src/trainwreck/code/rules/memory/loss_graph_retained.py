"""A running sum keeps the graph of every step.

What: ``total += loss`` (or appending the loss) without ``.item()`` or ``.detach()`` in a training loop.
Why it matters: every step's graph stays alive; memory grows until it runs out.
When it is fine: under ``no_grad``, or where the sum itself goes backward.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.flow import back
from trainwreck.code.order import inside, training_steps, under_no_grad
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Binding, Scope
from trainwreck.core.evidence import Evidence

BAD = (
    """
def train(model, loader, criterion, opt):
    total = 0.0
    for x, y in loader:
        loss = criterion(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss  # expect
    return total
""",
    """
def train(model, loader, criterion, opt):
    history = []
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        opt.step()
        history.append(loss)  # expect
""",
)
GOOD = """
def train(model, loader, criterion, opt):
    total, history = 0.0, []
    for x, y in loader:
        loss = criterion(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
        history.append(float(loss))
def accumulate(model, loader, criterion, opt):
    for batch in loader:
        loss = 0.0
        for part in batch:
            loss += criterion(model(part), part)
        loss.backward()
        opt.step()
"""


def find(project: Project) -> Iterator[Evidence]:
    for training in training_steps(project):
        if training.loop is None or _short(training.loop):
            continue
        names = {c.receiver.id for c in training.backward if isinstance(c.receiver, ast.Name)}
        for name, bindings in training.scope.bindings.items():
            for binding in bindings:
                if (
                    name in names
                    or _cut_off(binding, training.body)
                    or not inside(project, binding.node, binding.scope, training.body)
                ):
                    continue
                if (
                    _keeps(binding, names)
                    and not under_no_grad(project, binding.node, binding.scope)
                    and _grows(project, binding, training.body)
                ):
                    feeds = any(_feeds(project, c.receiver, name, training.scope) for c in training.backward)
                    if not feeds:
                        text = f"{name} collects the loss with its graph in every step"
                        yield sighting(__name__, (binding.node, binding.scope), text)


def _short(loop: ast.For | ast.AsyncFor | ast.While) -> bool:
    """True for a loop of a few steps that are written out (``for _ in range(5)``): nothing piles up."""
    if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call) or last_name(loop.iter.func) != "range":
        return False
    last = loop.iter.args[-1] if loop.iter.args else None
    return isinstance(last, ast.Constant) and isinstance(last.value, int) and last.value <= 20


def _cut_off(binding: Binding, body: ast.AST) -> bool:
    """True if the collected name is bound to its own detached value somewhere in the loop."""
    value = binding.value
    name = value.id if isinstance(value, ast.Name) else ""
    return bool(name) and any(
        isinstance(n, ast.Assign) and written(n) in (f"{name} = {name}.detach()", f"{name} = {name}.item()")
        for n in ast.walk(body)
    )


def _keeps(binding: Binding, names: set[str]) -> bool:
    value = binding.value
    if binding.kind in ("augment", "append"):
        return _bare(value, names)
    if binding.kind == "assign" and isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        own = written(value.left) == binding.name
        return own and _bare(value.right, names)
    return False


def _bare(value: ast.expr | None, names: set[str]) -> bool:
    if isinstance(value, ast.BinOp):
        return _bare(value.left, names) or _bare(value.right, names)
    return isinstance(value, ast.Name) and value.id in names


def _grows(project: Project, binding: Binding, body: ast.AST) -> bool:
    """True if the collector starts outside the loop."""
    starts = [b for b in binding.scope.bindings.get(binding.name, ()) if b.kind == "assign" and b is not binding]
    return bool(starts) and not any(inside(project, b.node, b.scope, body) for b in starts)


def _feeds(project: Project, receiver: ast.expr | None, name: str, scope: Scope) -> bool:
    if receiver is None:
        return False
    return any(isinstance(s.node, ast.Name) and s.node.id == name for s in back(project, receiver, scope))
