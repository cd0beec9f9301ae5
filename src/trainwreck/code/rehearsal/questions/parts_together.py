"""Parts of the data that were divided already and are put together again for a statistic, or rows that a mean of the
target is told to which it was taken of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.encoded_means import told_column
from trainwreck.code.rehearsal.questions.paths import Path, key_of, moving, paths
from trainwreck.code.rehearsal.questions.splits import keys, sides
from trainwreck.code.rehearsal.questions.summaries import summaries

JOINS = frozenset(["concat", "concatenate", "cat", "vstack", "append"])
Rows = tuple[object, ...]
"""The array at the root, and which fixed part of it."""


def statistics_of_parts(run: Rehearsing) -> Iterator[Answer]:
    """A mean or a scale over the training rows and held out rows, which were divided before and joined again for it."""
    both = sides(run)
    taught, held = _rows(both.train), _rows(path for _, path in both.held)
    if not held - taught:
        return
    told: set[int] = set()
    for node in (*both.train_nodes.values(), *both.held_nodes.values()):
        for summary in summaries(run, node):
            if id(summary.array) in told or _answers(run, summary.array):
                continue
            told.add(id(summary.array))
            place = _joined(run, summary.array, taught, held - taught)
            if place is not None:
                text = "this is computed from the training rows and held out ones, joined again after the split"
                proof = (summary.made.place,) if summary.made.place is not None else ()
                yield Answer(place, text, proof)
                return


def means_of_parts(run: Rehearsing) -> Iterator[Answer]:
    """Means of the target by category over training rows and held out ones, joined: they hold the answers of both."""
    both = sides(run)
    taught, held = _rows(both.train), _rows(path for _, path in both.held)
    if not held - taught:
        return
    for node in both.train_nodes.values():
        for group in _target_groups(run, node):
            frame = group.inputs[0] if group.inputs else None
            place = _joined(run, frame, taught, held - taught) if isinstance(frame, Node) else None
            if place is not None:
                text = "means of the target over held out rows as well become a feature"
                yield Answer(place, text, tuple(p for p in (group.place, node.place) if p is not None))
                return


def means_of_own_rows(run: Rehearsing) -> Iterator[Answer]:
    """In a loop over parts of the rows, a mean of the target over one part is told to the rows of the same part: each
    row's own target counts in it. Out of fold, the mean is of all rows but those."""
    for node in run.nodes:
        if node.op != "map" or not node.turns or len(node.inputs) < 2:
            continue
        own = _selected(node.inputs[0], node)
        if own is None:
            continue
        for group in _target_groups(run, node):
            taken = _selected(group, node) if group.place is not None else None
            if taken == own and group.place is not None:
                text = "the mean of the target is taken of the very rows that it is told to"
                yield Answer(group.place, text, (node.place,) if node.place is not None else ())
                return


def _answers(run: Rehearsing, array: Node) -> bool:
    """True for the column that is the target: ``means_of_parts`` speaks of it."""
    picked = [n.inputs[1] for n in near(array, 2) if n.op == "getitem" and len(n.inputs) > 1]
    return any(isinstance(name, str) and told_column(run, name) for name in picked)


def _rows(found: Iterable[Path]) -> set[Rows]:
    return {(id(p.root), *keys(p)) for p in found if p.fixed}


def _joined(run: Rehearsing, array: Node, taught: set[Rows], held: set[Rows]) -> Place | None:
    """Where an array is put together from rows that are trained on and rows that are only evaluated."""
    joins = [n for n in near(array, 12) if n.op in JOINS and n.place is not None]
    if not joins:
        return None
    found = _rows(p for p in paths(run, joins[-1]) if not any(step.moving for step in p.steps))
    return joins[-1].place if found & taught and found & held else None


def _target_groups(run: Rehearsing, node: Node) -> Iterator[Node]:
    """What the rows were grouped by, where a table of means of the target by category is looked up."""
    if node.op != "map" or len(node.inputs) < 2 or not isinstance(node.inputs[1], Node):
        return
    for inner in ancestors(node.inputs[1], through=lambda n: n.op != "groupby"):
        picked = inner.inputs[1] if inner.op == "getitem" and len(inner.inputs) > 1 else None
        base = inner.inputs[0] if inner.inputs else None
        grouped = isinstance(base, Node) and base.op == "groupby"
        if grouped and isinstance(base, Node) and isinstance(picked, str) and told_column(run, picked):
            yield base


def _selected(value: Value, told: Node) -> tuple[object, object] | None:
    """(the table, the selection of rows that changes from turn to turn) that a column or a group is taken of."""
    for _ in range(4):
        if not isinstance(value, Node) or not value.inputs:
            return None
        index = value.inputs[1] if value.op == "getitem" and len(value.inputs) > 1 else None
        index = index[0] if isinstance(index, tuple) and index else index
        base = value.inputs[0]
        if isinstance(index, Node) and isinstance(base, Node) and (moving(index) or _of_loop(index, told)):
            return id(_table(base)), key_of(index)
        value = base
    return None


def _of_loop(index: Node, told: Node) -> bool:
    """True for what the loop around ``told`` goes through: ``for rest, part in folds.split(rows)``."""
    lines = {getattr(t.node, "lineno", 0) for t in told.turns}
    elements = (n for n in near(index, 4) if n.op == "element" and n.place is not None)
    return any(getattr(n.place[0], "lineno", -1) in lines for n in elements if n.place is not None)


def _table(value: Node) -> Node:
    """The table behind ``.loc`` and a column of it."""
    located = value.op == "attribute" and value.name in ("loc", "iloc")
    column = value.op == "getitem" and isinstance(value.inputs[1], str)
    inner = value.inputs[0] if (located or column) and value.inputs else None
    return _table(inner) if isinstance(inner, Node) else value


__all__ = ["means_of_own_rows", "means_of_parts", "statistics_of_parts"]
