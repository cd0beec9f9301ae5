"""Is a column that was put beside the features the target itself, cut from the same series at the same element?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj, Value
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.lags import Indexed, columns_of, position
from trainwreck.code.rehearsal.questions.paths import meets, statistic
from trainwreck.code.rehearsal.questions.roles import backwards

AFFINE = frozenset(
    """add sub mul div neg astype float double copy asarray array tensor as_tensor from_numpy ascontiguousarray numpy to
    Series to_numpy reshape view unsqueeze squeeze""".split()
)
"""What leaves each element where it is, moved and scaled alike."""
PARTS = frozenset(["chunk", "split", "narrow", "index_select", "unbind", "tensor_split", "masked_select", "delete"])
MAX_CHAIN = 16


class Origin(NamedTuple):
    """A series, how many elements ahead a value is of it, and where it was cut."""

    series: Node
    ahead: int
    cut: Node | None


def target_among_columns(run: Rehearsing) -> Iterator[Answer]:
    """``concatenate([x[24:], load[24:, None]], 1)`` is to tell ``load[24:]``: the lag goes into the wrong direction."""
    for event in backwards(run):
        for _, inside, outside in meets(event.subject):
            targets = [(o, at[1], at[2]) for n in outside for at in _taken(n) if (o := _origin(at[0])) is not None]
            tables = [(n, *at) for n in inside for at in _taken(n)] if targets else []
            for head, table, base, row, at in tables:
                columns = columns_of(table) if any(b == base for _, b, _ in targets) else []
                for column, by in columns if len(columns) > 1 else ():
                    mine = _origin(column)
                    if mine is None or mine.cut is None or mine.cut.place is None:
                        continue
                    same = (o.series is mine.series and o.ahead + ahead == mine.ahead + by + row
                            for o, b, ahead in targets if b == base)  # fmt: skip
                    if any(same) and not _picked_again(head, at):
                        text = "this column of the features is the very element that is to be predicted"
                        yield Answer(mine.cut.place, text, tuple(p for p in [event.place] if p is not None))
                        return


def _taken(value: Value) -> Iterator[Indexed]:
    """Where rows are taken on the way to a value: from the first ones on, or by numbers."""
    for node in ancestors(value, through=lambda n: n.op != "param"):
        if node.op != "getitem" or len(node.inputs) < 2 or not isinstance(node.inputs[0], Node):
            continue
        index = node.inputs[1]
        at = position(index)
        if at is not None:
            yield node.inputs[0], "position", at, node
        elif isinstance(index, Node):
            yield node.inputs[0], id(index), 0, node


def _origin(value: Value) -> Origin | None:
    """The series that a value is cut from, scaled and moved alike for all elements."""
    ahead, cut = 0, None
    for _ in range(MAX_CHAIN):
        if not isinstance(value, Node) or not value.inputs:
            break
        if value.op == "getitem" and len(value.inputs) > 1:
            at = position(value.inputs[1])
            if at is None and not _only_axes(value.inputs[1]):
                break
            if at is not None:
                ahead, cut = ahead + at, value
            value = value.inputs[0]
            continue
        data = [n for i in value.inputs for n in parts(i) if not statistic(n)]
        if value.op not in AFFINE or len(data) != 1:
            break
        value = data[0]
    return Origin(value, ahead, cut) if isinstance(value, Node) and not value.unknown else None


def _only_axes(index: Value) -> bool:
    """True for ``[:, None]``."""
    items = index if isinstance(index, tuple) else (index,)
    return all(i is None or _whole(i) for i in items)


def _whole(index: Value) -> bool:
    return index is Ellipsis or (
        isinstance(index, Obj) and index.kind == "builtins.slice" and set(index.args) <= {None}
    )


def _picked_again(head: Node, table: Node) -> bool:
    """True where only some columns of the table go on into the network."""
    for node in ancestors(head, through=lambda n: n is not table):
        picks = node.op in PARTS
        if node.op in ("getitem", "setitem", "mul", "where", "masked_fill") and node is not table:
            index = node.inputs[-1]
            picks = node.op != "getitem" or (isinstance(index, tuple) and not _only_axes(index[1:]))
        behind = list(ancestors(node, through=lambda n: n is not table)) if picks else []
        if any(n is table for n in behind) and not any(n.op == "param" for n in behind):
            return True
    return False
