"""Gradients are reset in every micro batch although the step comes only every few.

What: ``step()`` stands under a condition on the batch counter, ``zero_grad()`` does not.
Why it matters: only the last micro batch counts, scaled down as if all did.
When it is fine: where both stand under the same condition.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import names
from trainwreck.code.order import TrainingStep, kind_of, training_steps
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.handed_gradients import overwritten
from trainwreck.code.rehearsal.questions.optimizing import cleared_each_micro_batch
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def train(model, loader, criterion, accum=4):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()  # expect
        loss = criterion(model(x), y) / accum
        loss.backward()
        if (i + 1) % accum == 0:
            optimizer.step()
""",
    """
import torch
def train(net, batches, updates, accum):
    optim = torch.optim.Adam(net.parameters())
    for _ in range(updates):
        for _ in range(accum):
            optim.zero_grad()  # expect
            (net(next(batches)).mean() / accum).backward()
        optim.step()
""",
)
GOOD = """
import torch
def train(model, loader, criterion, accum=4):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y) / accum
        loss.backward()
        if (i + 1) % accum == 0:
            optimizer.step()
            optimizer.zero_grad()
def careful(model, loader, criterion):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        if torch.isfinite(loss):
            optimizer.step()
def private(net, batches, updates, accum):
    optim = torch.optim.Adam(net.parameters())
    for _ in range(updates):
        kept = []
        for _ in range(accum):
            optim.zero_grad()
            net(next(batches)).mean().backward()
            kept.append([p.grad.clone() for p in net.parameters()])
        for p, g in zip(net.parameters(), zip(*kept)):
            p.grad = torch.stack(g).mean(0)
        optim.step()
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), cleared_each_micro_batch, overwritten)


def _seen(project: Project) -> Iterator[Evidence]:
    for training in training_steps(project):
        yield from _in_inner_loop(project, training)
        if training.loop is None:
            continue
        steps = [s for s in training.steps if kind_of(project, s) in ("optimizer", "scaler")]
        rare = [s for s in steps if _every_few(project, s, training.body)]
        if not rare or len(rare) != len(steps):
            continue
        for zero in training.zeros:
            if not any(isinstance(a, ast.If) for a in _up_to(project, zero, training.body)):
                text = "gradients are reset in every micro batch, the step comes only every few"
                yield sighting(__name__, zero, text, proof=rare[:1])


def _in_inner_loop(project: Project, training: TrainingStep) -> Iterator[Evidence]:
    """Reset within the loop over micro batches, step after it. Gradients that are read in between are kept by hand; a
    loop over several networks resets those of another one in each turn."""
    micro = training.micro
    if micro is None or ".grad" in written(micro) or "autograd" in written(micro):
        return
    turning = names(micro.target) if isinstance(micro, ast.For) else set()
    for zero in training.zeros:
        if zero.receiver is not None and names(zero.receiver) & turning:
            continue
        if project.parent(project.statement(zero.node, zero.scope), zero.scope) is micro:
            text = "gradients are reset in every micro batch, the step comes after all of them"
            yield sighting(__name__, zero, text, proof=training.steps[:1])


def _every_few(project: Project, call: Call, body: ast.AST) -> bool:
    for above in _up_to(project, call, body):
        if isinstance(above, ast.If) and any(isinstance(n, ast.Mod) for n in ast.walk(above.test)):
            return True
    return False


def _up_to(project: Project, call: Call, body: ast.AST) -> Iterator[ast.AST]:
    for above in project.ancestors(call.node, call.scope):
        if above is body:
            return
        yield above
