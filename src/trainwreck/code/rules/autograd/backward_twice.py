"""Two backward passes run through one graph.

What: two losses that share the result of one forward pass call ``backward()`` one after the other, the first
without
``retain_graph``.
Why it matters: the first pass frees the graph; the second raises.
When it is fine: with separate forward passes, ``retain_graph=True`` on the first, or one call on the sum.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import (
    names,
    network,
)
from trainwreck.code.order import (
    position,
    training_steps,
    under_no_grad,
)
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.freed import twice
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def train(model, loader, first, second, optimizer):
    for x, y, z in loader:
        optimizer.zero_grad()
        h = model(x)
        loss_a = first(h, y)
        loss_b = second(h, z)
        loss_a.backward()
        loss_b.backward()  # expect
        optimizer.step()
""",
    """
def train(model, loader, criterion, optimizer):
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        loss.backward()  # expect
""",
)
GOOD = (
    """
def train(model, loader, first, second, optimizer):
    for x, y, z in loader:
        h = model(x)
        loss_a = first(h, y)
        loss_b = second(h.detach(), z)
        loss_a.backward()
        loss_b.backward()
        g = model(x)
        first(g, y).backward(retain_graph=True)
        second(g, z).backward()
""",
    """
def train(gen, disc, loader, bce):
    for real in loader:
        fake = gen(real)
        d_loss = bce(disc(fake.detach()), real)
        d_loss.backward()
        g_loss = bce(disc(fake), real)
        g_loss.backward()
""",
    """
def train(model, loader, criterion, fast):
    for x, y in loader:
        loss = criterion(model(x), y)
        if fast:
            loss.backward()
        else:
            loss.backward()
        loss = criterion(model(x), y)
        loss.backward()
""",
    """
def train(critics, targets, replay, criterion, one, other):
    def errors(x, y):
        return criterion(critics[0](x), y), criterion(critics[1](x), y)
    for x, y in replay:
        first, second = errors(x, y)
        one.zero_grad()
        first.backward()
        one.step()
        other.zero_grad()
        second.backward()
        other.step()
""",
)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), twice)


def _written(project: Project) -> Iterator[Evidence]:
    for step in training_steps(project):
        calls = sorted((c for c in step.backward if isinstance(c.receiver, ast.Name)), key=lambda c: position(c.node))
        for first, second in itertools.pairwise(calls):
            if (
                first.scope is not second.scope
                or first.node.keywords
                or first.node.args
                or not _same_block(project, first, second)
            ):
                continue
            one, two = _statement_of(project, first), _statement_of(project, second)
            if one is None or two is None:
                continue
            several = one is two and isinstance(one.targets[0], ast.Tuple | ast.List)
            same = one is two and (not several or _name(first) == _name(second))
            if same or (_shared(project, one, two, first.scope) and position(two) < position(first.node)):
                text = "the graph of this loss was freed by the backward pass before it"
                yield sighting(__name__, second, text, proof=[first])


def _name(call: Call) -> str:
    return written(call.receiver)


def _same_block(project: Project, first: Call, second: Call) -> bool:
    """True if both are statements of one block, nothing between them."""
    one, two = project.statement(first.node, first.scope), project.statement(second.node, second.scope)
    above = project.parent(one, first.scope)
    return above is project.parent(two, second.scope) and (
        not isinstance(above, ast.If) or (one in above.body) == (two in above.body)
    )


def _statement_of(project: Project, call: Call) -> ast.Assign | None:
    """The last assignment of the loss before ``call`` in its own block."""
    assert isinstance(call.receiver, ast.Name)
    bindings = [b for b in project.lookup(call.receiver.id, call.scope) if position(b.node) < position(call.node)]
    last = max(bindings, key=lambda b: position(b.node), default=None)
    return last.node if last is not None and isinstance(last.node, ast.Assign) and last.kind == "assign" else None


def _shared(project: Project, one: ast.Assign, two: ast.Assign, scope: Scope) -> bool:
    """True if both losses read the same result of a network, undetached, computed once."""
    for node in ast.walk(one.value):
        if not isinstance(node, ast.Name) or node.id not in names(two.value) or not isinstance(node.ctx, ast.Load):
            continue
        if not isinstance(one.value, ast.Call) or not isinstance(two.value, ast.Call):
            continue
        if not any(a is node for a in one.value.args) or not any(
            isinstance(a, ast.Name) and a.id == node.id for a in two.value.args
        ):
            continue
        bindings = [b for b in project.lookup(node.id, scope) if b.kind not in ("import", "def", "class")]
        if len(bindings) != 1 or bindings[0].kind != "assign" or not isinstance(bindings[0].value, ast.Call):
            continue
        value = bindings[0].value
        if "model" in written(value.func) or "net" in written(value.func) or network(project, value.func, scope):
            return under_no_grad(project, value, scope) is None
    return False
