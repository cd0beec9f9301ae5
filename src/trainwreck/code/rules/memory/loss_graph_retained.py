"""A running sum keeps the graph of every step.

What: ``total += loss`` (or appending the loss) without ``.item()`` or ``.detach()`` in a training loop.
Why it matters: every step's graph stays alive; memory grows until it runs out.
When it is fine: under ``no_grad``, or where the sum itself goes backward.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import network
from trainwreck.code.flow import back
from trainwreck.code.order import inside, repeated, training_steps, turns_off, under_no_grad
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.retained import retained
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Binding, Scope
from trainwreck.code.seek import is_loss
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
    """
import torch, torch.nn as nn, torch.nn.functional as F
class Record:
    def __init__(self):
        self.values = []
    def note(self, step, value):
        self.values.append((step, value))
def main(x, y, vx, vy):
    model = nn.Linear(4, 1)
    opt = torch.optim.Adam(model.parameters())
    record = Record()
    for step in range(1000):
        loss = F.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 10 == 0:
            record.note(step, F.mse_loss(model(vx), vy))  # expect
""",
    """
class Meter:
    def __init__(self):
        self.total, self.n = 0.0, 0
    def update(self, value, n=1):
        self.total += value * n
        self.n += n
def train(model, loader, criterion, opt):
    meter = Meter()
    for x, y in loader:
        loss = criterion(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        meter.update(loss, len(x))  # expect
""",
)
GOOD = """
import torch
class Meter:
    def __init__(self):
        self.total, self.values = 0.0, []
    def update(self, value, n=1):
        self.total += float(value) * n
        self.values.append(value.detach())
    def note(self, value):
        self.values.append(value)
def watch(model, loader, criterion, opt, x, y):
    meter = Meter()
    for a, b in loader:
        loss = criterion(model(a), b)
        opt.zero_grad()
        loss.backward()
        opt.step()
        meter.update(loss)
        meter.note(loss.item())
        with torch.no_grad():
            meter.note(criterion(model(x), y))
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
    found = list(_written(project))
    yield from found
    if not found:
        yield from answers(__name__, project, retained)


def _written(project: Project) -> Iterator[Evidence]:
    for training in training_steps(project):
        if training.loop is None or _short(training.loop):
            continue
        names = {c.receiver.id for c in training.backward if isinstance(c.receiver, ast.Name)}
        for name, bindings in training.scope.bindings.items():
            for binding in bindings:
                if (
                    name in names
                    or _own_object(project, binding)
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
    yield from _kept_by_objects(project)


def _kept_by_objects(project: Project) -> Iterator[Evidence]:
    """A loss with its graph that is given to an object which keeps it: ``record.add(loss)``, ``meter.update(loss)``,
    or that is put into an attribute: ``self.history.append(loss)``."""
    if not project.calls_by_name.get("backward"):
        return
    for walked in project.walked.values():
        for node, scope in walked.calls:
            if not isinstance(node.func, ast.Attribute) or not (node.args or node.keywords):
                continue
            call = Call(node, scope)
            into = _keeper(project, call)
            for value, attribute, owner in into:
                if not _live_loss(project, value, scope) or under_no_grad(project, node, scope):
                    continue
                if not repeated(project, scope, node) or _used(project, owner, attribute):
                    continue
                text = f"{attribute} keeps the loss with its graph: memory grows with every call"
                yield sighting(__name__, call, text)
                break


def _keeper(project: Project, call: Call) -> list[tuple[ast.expr, str, Scope]]:
    """What ``call`` makes an object keep: (the expression, the name of the attribute, its class)."""
    found: list[tuple[ast.expr, str, Scope]] = []
    receiver = call.receiver
    if call.name in ("append", "add") and isinstance(receiver, ast.Attribute) and len(call.node.args) == 1:
        owner = project.class_of(receiver.value, call.scope)
        if owner is not None and _open_list(owner, receiver.attr):
            found.append((call.node.args[0], receiver.attr, owner))
        return found
    method = project.resolve(call.node.func, call.scope)
    owner = method.owner if method is not None else None
    if method is None or owner is None or method.name.startswith("__"):
        return found
    if any(turns_off(d) for d in method.decorators):
        return found
    names = method.positional[1:]
    for place, name in enumerate(names):
        value = call.argument(name, place)
        if value is None or len(method.bindings.get(name, ())) != 1:
            continue
        for attribute, bindings in owner.attributes.items():
            for binding in bindings:
                if binding.scope is not method or under_no_grad(project, binding.node, method):
                    continue
                grown = binding.kind == "augment" or (binding.kind == "append" and _open_list(owner, attribute))
                own = isinstance(binding.value, ast.BinOp) and f"self.{attribute} + " in written(binding.value)
                if (grown or own) and _carries(binding.value, name):
                    found.append((value, attribute, owner))
    return found


def _open_list(owner: Scope, attribute: str) -> bool:
    """True unless the attribute is a ``deque`` of bounded length, a set, or another object."""
    starts = [b for b in owner.attributes.get(attribute, ()) if b.kind == "assign" and b.value is not None]
    return bool(starts) and all(
        isinstance(b.value, ast.List | ast.Dict | ast.ListComp)
        or (isinstance(b.value, ast.Call) and last_name(b.value.func) in ("list", "dict", "defaultdict"))
        for b in starts
    )


def _carries(value: ast.expr | None, name: str) -> bool:
    """True if ``value`` holds the parameter with its graph: itself, in a tuple or dict, in a sum or product."""
    match value:
        case ast.Name():
            return value.id == name
        case ast.BinOp():
            return _carries(value.left, name) or _carries(value.right, name)
        case ast.Tuple() | ast.List():
            return any(_carries(v, name) for v in value.elts)
        case ast.Dict():
            return any(_carries(v, name) for v in value.values)
    return False


def _live_loss(project: Project, value: ast.expr, scope: Scope, depth: int = 0) -> bool:
    """True for a loss of what a network gave, gradients on: a call of a loss, or a name that is only that."""
    match value:
        case ast.Call():
            call = Call(value, scope)
            if is_loss(project, call):
                return any(network(project, c.func, scope) for a in value.args for c in _calls(project, a, scope))
            target = project.resolve(value.func, scope)
            if target is not None and target.kind == "function" and depth < 3:
                if any(turns_off(d) for d in target.decorators):
                    return False
                return bool(target.returns) and all(
                    v is not None
                    and not under_no_grad(project, v, target)
                    and _live_loss(project, v, target, depth + 1)
                    for v in target.returns
                )
            return False
        case ast.Name():
            bindings = [b for b in project.lookup(value.id, scope) if b.kind != "append"]
            if any(c.receiver is not None and written(c.receiver) == value.id for c in _backwards(project, scope)):
                return not any(written(b.value) in (f"{value.id}.detach()", f"{value.id}.item()") for b in bindings)
            return bool(bindings) and all(
                b.kind == "assign"
                and b.value is not None
                and not b.path
                and b.scope is scope
                and not under_no_grad(project, b.node, scope)
                and _live_loss(project, b.value, scope, depth + 1)
                for b in bindings
            )
        case ast.BinOp():
            return _live_loss(project, value.left, scope, depth) or _live_loss(project, value.right, scope, depth)
        case ast.Tuple() | ast.List():
            return any(_live_loss(project, v, scope, depth) for v in value.elts)
        case ast.Dict():
            return any(_live_loss(project, v, scope, depth) for v in value.values)
    return False


def _calls(project: Project, node: ast.expr, scope: Scope) -> list[ast.Call]:
    """The calls in an argument, and those that made the names in it."""
    found = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
    for name in (n for n in ast.walk(node) if isinstance(n, ast.Name)):
        for binding in project.lookup(name.id, scope):
            if binding.scope is scope and binding.value is not None and not under_no_grad(project, binding.node, scope):
                found += [n for n in ast.walk(binding.value) if isinstance(n, ast.Call)]
    return [c for c in found if last_name(c.func) != "detach"]


def _backwards(project: Project, scope: Scope) -> list[Call]:
    return [c for c in project.calls_by_scope.get(scope, ()) if c.name == "backward"]


def _used(project: Project, owner: Scope, attribute: str) -> bool:
    """True if what is kept goes backward itself, or is emptied or cut on the way."""
    for call in project.calls("backward"):
        if call.receiver is not None:
            for step in back(project, call.receiver, call.scope):
                if isinstance(step.node, ast.Attribute) and step.node.attr == attribute:
                    return True
    for call in project.calls("clear", "pop", "popleft", "popitem"):
        if isinstance(call.receiver, ast.Attribute) and call.receiver.attr == attribute:
            return True
    starts = [b for b in owner.attributes.get(attribute, ()) if b.kind == "assign" and b.scope.name != "__init__"]
    return any(not b.scope.name.startswith("update") for b in starts if f"self.{attribute} +" not in written(b.value))


def _own_object(project: Project, binding: Binding) -> bool:
    """True for ``meter.update(loss)`` of an object that decides itself what it keeps."""
    if not isinstance(binding.node, ast.Call) or not isinstance(binding.node.func, ast.Attribute):
        return False
    receiver = binding.node.func.value
    return binding.node.func.attr == "update" or project.class_of(receiver, binding.scope) is not None


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
