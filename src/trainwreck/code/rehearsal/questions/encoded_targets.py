"""Classes of a column that are replaced by the mean of the target: is a row's own target among what its mean is of?

Where a class has few rows, its mean tells much of each row's target (Micci-Barreca 2001 shrinks it for that reason;
out-of-fold means leave the row itself out).
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import counted_table, meets, paths, trained
from trainwreck.code.rehearsal.questions.roles import backwards

FEW = 30
"""Rows of one class above which a single target hardly moves the mean."""


def own_target_in_the_mean(run: Rehearsing) -> Iterator[Answer]:
    """Rows that the network learns from hold a mean of targets in which their own target counts."""
    for event in backwards(run):
        goals = {id(p.root) for _, _, outside in meets(event.subject) for o in outside for p in paths(run, o)}
        for node in (n for e, n in trained(run) if e is event):
            for found in ancestors(node, through=lambda n: n.op != "setitem"):
                if found.op != "getitem" or len(found.inputs) < 2 or found.place is None:
                    continue
                if not counted_table(found.inputs[0]) or not isinstance(found.inputs[1], Node):
                    continue
                for table in ancestors(found.inputs[0]):
                    weights = table.options.get("weights") if table.op == "bincount" else None
                    if isinstance(weights, Node) and _few(table, weights) and _of(run, weights, goals):
                        text = "the mean of the target that each row is given counts the row's own target"
                        yield Answer(found.place, text, (table.place,) if table.place is not None else ())
                        return


def _few(table: Node, weights: Node) -> bool:
    rows = weights.shape.dims[0] if weights.shape.dims and not weights.shape.open else None
    classes: Value = table.options.get("minlength")
    return isinstance(classes, int) and rows is not None and rows < FEW * classes


def _of(run: Rehearsing, weights: Node, goals: set[int]) -> bool:
    return any(id(p.root) in goals for p in paths(run, weights))
