"""The scheduler drives an optimizer that was replaced.

What: a scheduler is built on an optimizer, and afterwards the name is bound to a new optimizer that takes the
steps.
Why it matters: the schedule changes the rate of an object that nobody steps; the new one keeps its start value.
When it is fine: where the scheduler is rebuilt too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.facts import (
    bound_to,
    optimizers,
    schedulers,
)
from trainwreck.code.order import (
    inside,
)
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.schedules import stale
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def main(model, loader, criterion):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)  # expect
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
        scheduler.step()
""",
    """
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR
opt = torch.optim.AdamW(model.parameters())
sched = CosineAnnealingLR(opt, 100)  # expect
model = extend(model)
opt = torch.optim.AdamW(model.parameters())
def train():
    sched.step()
""",
)
GOOD = """
import torch
def main(model, adam, loader):
    if adam:
        optimizer = torch.optim.Adam(model.parameters())
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
    optimizer = torch.optim.Adam(model.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
    scheduler.step()
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), stale)


def _seen(project: Project) -> Iterator[Evidence]:
    for built in schedulers(project):
        at = built.argument("optimizer", 0)
        name = bound_to(project, built)
        if not isinstance(at, ast.Name) or not name:
            continue
        block = getattr(project.parent(project.statement(built.node, built.scope), built.scope), "body", [])
        start = next((i for i, s in enumerate(block) if inside(project, built.node, built.scope, s)), len(block))
        rest = block[start + 1 :]
        fresh = [
            s
            for s in rest
            if isinstance(s, ast.Assign) and written(s.targets[0]) == at.id and _optimizer(project, s, built.scope)
        ]
        again = [s for s in rest if isinstance(s, ast.Assign) and written(s.targets[0]) == name]
        if fresh and not again and _in_use(built.scope, name, fresh[0]):
            path = built.scope.module.path
            text = f"{at.id} is bound to a new optimizer afterwards, and this scheduler still drives the old one"
            yield sighting(__name__, built, text, proof=[(path, fresh[0].lineno, written(fresh[0])[:80])])


def _in_use(scope: Scope, name: str, fresh: ast.Assign) -> bool:
    """False for a scheduler that its own function does not touch any more once the new optimizer is there."""
    if not name.isidentifier():
        return True
    inner = [n for n in ast.walk(scope.node) if isinstance(n, FUNCTIONS) and n is not scope.node]
    named = [
        n for n in ast.walk(scope.node) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)
    ]
    return any(n.lineno > fresh.lineno or any(n in ast.walk(f) for f in inner) for n in named)


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def _optimizer(project: Project, node: ast.Assign, scope: Scope) -> bool:
    return any(node.value is built.node for built in optimizers(project))
