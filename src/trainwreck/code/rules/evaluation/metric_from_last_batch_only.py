"""The metric is that of the last batch.

What: a loop over evaluation data assigns (not adds) its figure, and the figure is used after the loop.
Why it matters: all batches but the last are thrown away: the result is noise.
When it is fine: for a loop of one batch.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import last_name
from trainwreck.code.facts import (
    HELD,
    TRAIN,
    names,
    names_in,
)
from trainwreck.code.halves import thrown_away
from trainwreck.code.order import (
    position,
)
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.lastbatch import first_batch_only, last_batch_only
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def evaluate(model, val_loader):
    model.eval()
    with torch.no_grad():
        for x, y in val_loader:
            pred = model(x).argmax(1)
            correct = (pred == y).sum().item()  # expect
    return correct / len(val_loader.dataset)
""",
    """
import torch
class Runner:
    @torch.no_grad()
    def validate(self):
        for x, y in self.val_loader:
            val_loss = self.criterion(self.model(x), y).item()  # expect
        print("val", val_loss)
""",
)
GOOD = """
import torch
def evaluate(model, val_loader, sizes):
    total, n = 0.0, 0
    for x, y in val_loader:
        loss = model(x, y).item()
        total += loss
        acc = (x == y).float().mean()
        sizes.append(acc)
        n = n + 1
        val_best = max(total, 0)
    for x, y in val_loader:
        first_loss = model(x, y)
        break
    return total / n, first_loss
"""
FIGURE = pattern(r"(^|_)(correct|acc|accuracy|loss|f1|auc|mse|mae|hits|score|error)(_|\d|$)", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), last_batch_only, first_batch_only)


def _seen(project: Project) -> Iterator[Evidence]:
    for node, after, where, name in thrown_away(project):
        text = f"{name} is set anew by every batch and goes into a figure of all of them after the loop"
        yield sighting(__name__, (node, where), text, proof=[(where.module.path, after.lineno, name)])
    for walked in project.walked.values():
        for scope in walked.scopes:
            for loop in project.within(scope, ast.For):
                assert isinstance(loop, ast.For)
                if names_in(loop.iter, HELD) and not names_in(loop.iter, TRAIN) and not _stops(loop):
                    yield from _in_loop(project, loop, scope)


def _stops(loop: ast.For) -> bool:
    return any(isinstance(n, ast.Break | ast.Return | ast.Yield) for n in ast.walk(loop)) or any(
        isinstance(n, ast.Call) and last_name(n.func) in ("backward", "append", "update", "extend", "add_batch", "log")
        for n in ast.walk(loop)
    )


def _in_loop(project: Project, loop: ast.For, scope: Scope) -> Iterator[Evidence]:
    if any(isinstance(n, ast.AugAssign) for n in ast.walk(loop)):
        return
    for node in loop.body:
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        name = node.targets[0].id
        if not FIGURE.search(name) or name in names(node.value) or not isinstance(node.value, ast.Call | ast.BinOp):
            continue
        inner = [n for n in ast.walk(loop) if isinstance(n, ast.Name) and n.id == name]
        end = loop.end_lineno or loop.lineno
        after = [n for n in ast.walk(scope.node) if isinstance(n, ast.Name) and n.id == name and n.lineno > end]
        after.sort(key=position)
        if len(inner) == 1 and after and isinstance(after[0].ctx, ast.Load):
            text = f"{name} is overwritten by every batch, and used after the loop: only the last batch counts"
            yield sighting(__name__, (node, scope), text, proof=[(scope.module.path, after[0].lineno, name)])
