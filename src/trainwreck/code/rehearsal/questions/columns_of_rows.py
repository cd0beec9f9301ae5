"""Columns of one table that go into one loss: are they taken from the same rows?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Obj, Value
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import moving, trained
from trainwreck.core.row import Row

CASTS = frozenset(
    """as_tensor tensor from_numpy long to int float astype array asarray LongTensor FloatTensor cuda squeeze unsqueeze
    view reshape contiguous double""".split()
)


class Taken(Row):
    """A column of some rows of a table."""

    node: Node
    table: Node
    column: int
    rows: tuple[Value, ...]


def first_rows_again(run: Rehearsing) -> Iterator[Answer]:
    """One column is taken from the rows of each batch in turn, and another one from the first rows every time."""
    groups: dict[int, tuple[Event, list[Taken]]] = {}
    for event, node in trained(run):
        taken = _taken(node)
        if taken is not None and event.turns and event.turns[-1].generic:
            groups.setdefault(id(event), (event, []))[1].append(taken)
    for event, found in groups.values():
        for one in found:
            if not one.rows or not all(_from_start(r) for r in one.rows):
                continue
            others = [o for o in found if o.table is one.table and o.column != one.column]
            beside = [o for o in others if any(_goes_on(r) for r in o.rows)]
            if beside and len(beside) == len(others) and one.node.place is not None:
                text = "this column is taken from the first rows in every turn, those beside it from the rows in turn"
                yield Answer(one.node.place, text, (event.place,) if event.place is not None else ())
                return


def _taken(value: Value) -> Taken | None:
    node = value
    while isinstance(node, Node) and node.op in CASTS and node.inputs:
        node = node.inputs[0]
    index = node.inputs[1] if isinstance(node, Node) and node.op == "getitem" and len(node.inputs) > 1 else None
    if not isinstance(node, Node) or not isinstance(index, tuple) or len(index) != 2 or not isinstance(index[1], int):
        return None
    rows: list[Value] = [] if _whole(index[0]) else [index[0]]
    base = node.inputs[0]
    while isinstance(base, Node) and base.op == "getitem" and len(base.inputs) > 1:
        if isinstance(base.inputs[1], tuple):
            return None
        rows.append(base.inputs[1])
        base = base.inputs[0]
    return Taken(node, base, index[1], tuple(rows)) if isinstance(base, Node) else None


def _ends(index: Value) -> tuple[Value, ...] | None:
    return index.args if isinstance(index, Obj) and index.kind == "builtins.slice" else None


def _whole(index: Value) -> bool:
    ends = _ends(index)
    return ends is not None and ends[:2] == (None, None)


def _from_start(index: Value) -> bool:
    ends = _ends(index)
    return ends is not None and ends[0] in (None, 0) and ends[1] is not None


def _goes_on(index: Value) -> bool:
    ends = _ends(index)
    return ends is not None and isinstance(ends[0], Node) and moving(ends[0])


__all__ = ["first_rows_again"]
