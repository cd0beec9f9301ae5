"""A metric that is no mean is averaged over batches.

What: ``f1_score``, ``roc_auc_score``, precision or recall is computed per batch in a loop and the values are added
up; or a root of a mean, an exponential of it, a quotient of counts that the program works out itself.
Why it matters: the average of F1 over batches is not the F1 of the whole set; small batches distort it.
When it is fine: for plain means of equal batches.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import last_name
from trainwreck.code.facts import (
    loop_over,
)
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.shares import curved
from trainwreck.code.rehearsal.questions.summed_again import times_size
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
from sklearn.metrics import f1_score
def evaluate(model, loader):
    total = 0.0
    for x, y in loader:
        total += f1_score(y, model(x).argmax(1), average="macro")  # expect
    return total / len(loader)
""",
    """
from sklearn import metrics
def evaluate(model, loader):
    scores = []
    for batch in loader:
        scores.append(metrics.roc_auc_score(batch["y"], model(batch["x"])))  # expect
    return sum(scores) / len(scores)
""",
)
GOOD = """
import numpy as np
from sklearn.metrics import f1_score, roc_auc_score
def evaluate(model, loader, folds):
    ys, ps = [], []
    for x, y in loader:
        ys.append(y)
        ps.append(model(x))
    whole = f1_score(np.concatenate(ys), np.concatenate(ps))
    scores = []
    for train, test in folds:
        scores.append(roc_auc_score(test, train))
    return whole, scores
"""
METRICS = (
    "f1_score",
    "roc_auc_score",
    "precision_score",
    "recall_score",
    "average_precision_score",
    "fbeta_score",
    "matthews_corrcoef",
)
LOADER = pattern(r"loader|batches|(^|_)dl$", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _of_library(project), curved, times_size)


def _of_library(project: Project) -> Iterator[Evidence]:
    for call in project.calls(*METRICS):
        if not project.called(call).startswith("sklearn") or loop_over(project, call.node, call.scope, LOADER) is None:
            continue
        statement = project.statement(call.node, call.scope)
        added = isinstance(statement, ast.AugAssign)
        listed = (
            isinstance(statement, ast.Expr)
            and isinstance(statement.value, ast.Call)
            and last_name(statement.value.func) == "append"
        )
        if added or listed:
            yield sighting(__name__, call, f"{call.name} of a batch is no share of that of the whole set")
