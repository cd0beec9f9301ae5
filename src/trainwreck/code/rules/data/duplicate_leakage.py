"""Copies of a sample are made before the samples are divided.

What: the data that are divided at random were multiplied before: a changed copy is concatenated to the original, rows
are repeated or drawn with replacement.
Why it matters: a test sample has its twin in the training set: the score measures memory.
When it is fine: where the copies are made of the training part only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import later, names, only, option
from trainwreck.code.flow import Step, back
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.copies import before_the_split, in_a_list
from trainwreck.code.rehearsal.questions.twins import joined_with_itself, overlapping_at_random
from trainwreck.code.rule import sighting
from trainwreck.code.splits import Split, random_splits
from trainwreck.core.evidence import Evidence

BAD = (
    """
import numpy as np
from sklearn.model_selection import train_test_split
def load(X, y, rng):
    X = np.concatenate([X, X + rng.normal(0, 0.1, X.shape)])  # expect
    y = np.concatenate([y, y])
    return train_test_split(X, y, test_size=0.2)
""",
    """
import torch
from torch.utils.data import TensorDataset, random_split
def main(images, labels):
    flipped = torch.flip(images, dims=[3])
    both = torch.cat([images, flipped])  # expect
    data = TensorDataset(both, torch.cat([labels, labels]))
    return random_split(data, [0.8, 0.2])
""",
    """
import pandas as pd
from sklearn.model_selection import cross_val_score
def run(model, df):
    rare = df[df.label == 1]
    df2 = df.sample(5000, replace=True)  # expect
    return cross_val_score(model, df2[["a", "b"]], df2["label"])
""",
    """
import numpy as np
def main(x, y, rng):
    big = np.repeat(x, 4, axis=0)  # expect
    order = rng.permutation(len(big))
    return big[order[:300]], big[order[300:]]
""",
)
GOOD = (
    """
import numpy as np
from sklearn.model_selection import train_test_split
def load(X, y, rng):
    a, b, c, d = train_test_split(X, y)
    a = np.concatenate([a, a + rng.normal(0, 0.1, a.shape)])
    return a, b, np.concatenate([c, c]), d
def other(first, second, y):
    X = np.concatenate([first, second])
    Z = np.concatenate([X, X.mean(1, keepdims=True)], axis=1)
    W = np.hstack([X, X ** 2])
    return train_test_split(X, y), train_test_split(Z, y), train_test_split(W, y)
def third(df):
    small = df.sample(frac=0.1)
    return train_test_split(small)
""",
)
ROW_BY_ROW = frozenset(["flip", "fliplr", "flipud", "roll", "clone", "copy", "rot90", "augment", "hflip"])


def find(project: Project) -> Iterator[Evidence]:
    yield from further(
        __name__, project, _written(project), before_the_split, in_a_list, joined_with_itself, overlapping_at_random
    )


def _written(project: Project) -> Iterator[Evidence]:
    told: set[int] = set()
    for split in random_splits(project):
        seen = [(step, text) for step in _before(project, split) if (text := _copies(project, step)) is not None]
        for step, text in sorted(seen, key=lambda item: item[0].line)[:1]:
            if id(step.node) not in told and isinstance(step.node, ast.Call):
                told.add(id(step.node))
                yield sighting(__name__, Call(step.node, step.scope), text, proof=[split.place])


def _before(project: Project, split: Split) -> Iterator[Step]:
    """What the features of a split came from; nothing where they are one side of an earlier split."""
    for value in split.data[:1]:
        for step in back(project, value, split.scope):
            if isinstance(step.node, ast.Call) and last_name(step.node.func) in ("train_test_split", "random_split"):
                return
            if isinstance(step.node, ast.Attribute) and step.node.attr == "T":
                return  # rows and columns change places: what is stacked may be columns
            if not (step.scope is split.scope and later(step.node, split.place.node)):
                yield step


def _copies(project: Project, step: Step) -> str | None:
    """What is multiplied by this call, as a sentence."""
    if not isinstance(step.node, ast.Call):
        return None
    call = Call(step.node, step.scope)
    package = project.called(call).split(".", 1)[0]
    if call.name in ("concatenate", "vstack", "cat", "concat") and package in ("numpy", "torch", "pandas"):
        return _joined(project, call)
    if call.name in ("repeat", "tile") and package == "numpy" and len(call.node.args) > 1:
        axis = only(project, option(project, call, "axis", 2))
        rows = axis == 0 or (call.name == "tile" and isinstance(call.node.args[1], ast.Tuple))
        return "rows are repeated here, and then divided at random" if rows else None
    drawn = only(project, option(project, call, "replace")) is True
    if call.name in ("sample", "resample") and drawn and package not in ("random", "numpy"):
        return "rows are drawn here with replacement, and then divided at random"
    return None


def _joined(project: Project, call: Call) -> str | None:
    axis = only(project, option(project, call, "axis", 1) or option(project, call, "dim"))
    parts = call.node.args[0].elts if call.node.args and isinstance(call.node.args[0], ast.List | ast.Tuple) else []
    if axis not in (None, 0) or len(parts) < 2:
        return None
    whole = [p for p in parts if isinstance(p, ast.Name)]
    for one in whole:
        for other in parts:
            if other is one:
                continue
            if (isinstance(other, ast.Name) and other.id == one.id) or _changed(project, other, call, one.id):
                return f"changed copies of {one.id} join it here, and then all are divided at random"
    return None


def _changed(project: Project, node: ast.expr, call: Call, name: str) -> bool:
    """True if ``node`` is made from ``name`` row by row: of its size, not a part of it."""
    if isinstance(node, ast.Name):
        bindings = [b for b in project.lookup(node.id, call.scope) if b.kind == "assign" and not b.path]
        if len(bindings) != 1 or bindings[0].value is None or bindings[0].scope is not call.scope:
            return False
        return _changed(project, bindings[0].value, call, name)
    if isinstance(node, ast.BinOp):
        return _changed_or_is(node.left, name) or _changed_or_is(node.right, name)
    if isinstance(node, ast.Call):
        kept = last_name(node.func) in (
            "flip",
            "fliplr",
            "flipud",
            "roll",
            "clone",
            "copy",
            "rot90",
            "augment",
            "hflip",
        )
        return kept and name in names(node) and not any(isinstance(n, ast.Subscript) for n in ast.walk(node))
    return False


def _changed_or_is(node: ast.expr, name: str) -> bool:
    return (isinstance(node, ast.Name) and node.id == name) or (
        (isinstance(node, ast.BinOp) and (_changed_or_is(node.left, name) or _changed_or_is(node.right, name)))
        and bool(written(node))
    )
