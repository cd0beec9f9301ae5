"""A metric takes the largest logit along the wrong axis.

What: ``argmax(0)`` (or ``dim=0``) over logits of shape (batch, classes) and a comparison with the labels.
Why it matters: what is counted as accuracy has nothing to do with the predictions.
When it is fine: where the classes really lie on axis 0.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.project import Project
from trainwreck.code.rule import guess, sighting
from trainwreck.code.seek import is_module
from trainwreck.code.spine import ends
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

BAD = """
import torch
from torch import nn
def accuracy(loader):
    model = nn.Linear(4, 3)
    hits = 0
    for x, y in loader:
        hits += (model(x).argmax(dim=0) == y).sum()  # expect
    return hits
"""
GOOD = """
import torch
from torch import nn
def accuracy(loader):
    model = nn.Linear(4, 3)
    hits = 0
    for x, y in loader:
        hits += (model(x).argmax(dim=1) == y).sum()
    return hits
"""


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("argmax"):
        axis = call.argument("dim", 0) or call.argument("axis")
        above = project.parent(call.node, call.scope)
        if not (isinstance(axis, ast.Constant) and axis.value == 0) or call.receiver is None:
            continue
        compared = isinstance(above, ast.Compare) or _compared(project, call)
        made = [
            n
            for n, s in ends(project, call.receiver, call.scope)
            if isinstance(n, ast.Call) and is_module(project, n.func, s)
        ]
        if compared and made:
            yield sighting(__name__, call, "the largest value is taken over the batch, not over the classes")


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    for function in project.functions:
        if any(w in function.name.lower() for w in ("metric", "accuracy", "score", "evaluate", "f1")):
            for node in project.within(function, ast.Compare, ast.Return):
                if "==" in written(node) or isinstance(node, ast.Return):
                    yield guess(__name__, (node, function), "the metric is computed here")
                    return


def _compared(project: Project, call: Call) -> bool:
    statement = project.statement(call.node, call.scope)
    if (
        isinstance(statement, ast.Assign)
        and statement.value is call.node
        and isinstance(statement.targets[0], ast.Name)
    ):
        name = statement.targets[0].id
        return any(
            isinstance(n, ast.Compare) and name in (written(n.left), *map(written, n.comparators))
            for n in ast.walk(call.scope.node)
        )
    return False
