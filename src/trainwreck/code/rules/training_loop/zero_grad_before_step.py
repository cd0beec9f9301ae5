"""Gradients are reset between ``backward()`` and ``step()``.

What: ``zero_grad()`` stands after the backward pass and before the step that should use its gradients.
Why it matters: the optimizer steps with zeros (or with None and does nothing): the loss does not move.
When it is fine: where another backward pass follows before the step.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.order import TrainingStep, kind_of, position, repeated, training_steps
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.optimizing import cleared_too_soon
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def train(model, loader, criterion):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.zero_grad()  # expect
        optimizer.step()
""",
    """
import torch
import torch.nn.functional as F
def train(net, loader):
    optim = torch.optim.AdamW(net.parameters())
    for x, y in loader:
        F.mse_loss(net(x), y).backward()
        for p in net.parameters():  # expect
            p.grad = None
        optim.step()
""",
    """
import torch
def train(net, loader, optimizer, parts):
    for i, (x, y) in enumerate(loader):
        (net(x, y) / parts).backward()
        if (i + 1) % parts == 0:
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.zero_grad()  # expect
            optimizer.step()
""",
    """
import torch
def train(net, batches, optimizer, parts):
    for batch in batches:
        for x, y in batch.split(parts):
            (net(x, y) / parts).backward()
        optimizer.zero_grad()  # expect
        optimizer.step()
""",
)
GOOD = """
import torch
def train(gen, disc, loader, loss):
    g_opt = torch.optim.Adam(gen.parameters())
    d_opt = torch.optim.Adam(disc.parameters())
    for i, x in enumerate(loader):
        d_opt.zero_grad()
        loss(disc(x)).backward()
        g_opt.zero_grad()
        d_opt.step()
        loss(gen(x)).backward()
        g_opt.step()
        d_opt.zero_grad()
def amp(net, loader, opt, scaler):
    for i, (x, y) in enumerate(loader):
        if scaler is None:
            net(x, y).backward()
            opt.step()
        else:
            opt.zero_grad()
            scaler.scale(net(x, y)).backward()
            scaler.step(opt)
        if i % 8 == 0:
            opt.zero_grad()
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), cleared_too_soon)


def _seen(project: Project) -> Iterator[Evidence]:
    for training in training_steps(project):
        if not repeated(project, training.scope, training.backward[0].node):
            continue
        for zero in (*training.zeros, *_emptied(project, training)):
            step = _spoiled(project, training, zero)
            if step is not None:
                text = "the gradients are reset here, after backward and before the step that needs them"
                yield sighting(__name__, zero, text, proof=[training.backward[-1], step])


def _emptied(project: Project, training: TrainingStep) -> Iterator[Call]:
    """``for p in model.parameters(): p.grad = None``, as if it were a call."""
    for node in ast.walk(training.body):
        if not isinstance(node, ast.For) or not isinstance(node.iter, ast.Call) or len(node.body) != 1:
            continue
        if last_name(node.iter.func) == "parameters" and re.match(
            r"\w+\.grad = None$|\w+\.grad\.zero_\(\)$", written(node.body[0])
        ):
            yield Call(node.iter, training.scope)


def _spoiled(project: Project, training: TrainingStep, zero: Call) -> Call | None:
    block = project.parent(project.statement(zero.node, zero.scope), zero.scope)
    place = position(zero.node)
    before = [b for b in training.backward if position(b.node) < place and _comes_first(project, b, zero)]
    after = [
        s
        for s in training.steps
        if position(s.node) > place
        and _block(project, s) is block
        and kind_of(project, s) in ("optimizer", "scaler", "unknown")
    ]
    if not before or not after:
        return None
    step = min(after, key=lambda s: position(s.node))
    every = (*training.backward, *project.calls_by_scope.get(zero.scope, ()))
    between = [b for b in every if b.name == "backward" and place < position(b.node) < position(step.node)]
    part = _a_part(zero.receiver)
    same = (zero.name == "parameters" and not part) or written(zero.receiver) == written(step.receiver)
    alone = len({written(s.receiver) for s in training.steps}) == 1
    if between or not (same or (alone and not part)):
        return None
    earlier = [s for s in training.steps if max(map(_at, before)) < position(s.node) < place]
    return None if earlier else step


def _comes_first(project: Project, backward: Call, zero: Call) -> bool:
    """True for what stands before in the same turn: in the same loops, or in further ones, and in no other branch."""
    if backward.scope is not zero.scope:
        return False
    mine = [zero.node, *project.ancestors(zero.node, zero.scope)]
    theirs = [backward.node, *project.ancestors(backward.node, backward.scope)]
    shared = {id(a) for a in mine} & {id(a) for a in theirs}
    own = {id(a) for a in mine if isinstance(a, ast.For) and a.iter is zero.node}  # the loop that empties them
    if any(isinstance(a, ast.For | ast.While) and id(a) not in shared | own for a in mine):
        return False
    branches = [a for a in mine if isinstance(a, ast.If) and id(a) in shared]
    return all(_in_body(b, mine) is _in_body(b, theirs) for b in branches)


def _in_body(branch: ast.If, chain: list[ast.AST]) -> bool:
    return any(node is statement for node in chain for statement in branch.body)


def _a_part(receiver: ast.expr | None) -> bool:
    """``net["head"]``, ``net.head``: a part of what is stepped may be meant to rest."""
    whole = isinstance(receiver, ast.Name) or (
        isinstance(receiver, ast.Attribute) and isinstance(receiver.value, ast.Name) and receiver.value.id == "self"
    )
    return receiver is not None and not whole


def _at(call: Call) -> tuple[int, int]:
    return position(call.node)


def _block(project: Project, call: Call) -> object:
    return project.parent(project.statement(call.node, call.scope), call.scope)
