"""A column of one table is put beside another table row by row, after the rows of one of them were put in an order."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.left_turned import indices
from trainwreck.code.rehearsal.questions.listed_files import lined_up

READS = frozenset(["read_csv", "read_parquet", "read_json", "read_table", "read_feather", "read_excel", "read_pickle"])
REORDERS = frozenset(["sort_values", "sample", "sort_index", "nlargest", "nsmallest"])
KEEPS = frozenset(
    """reset_index copy setitem assign fillna astype rename drop head iloc loc set_index to_numpy tolist getitem
    attribute dropna query sort_values sample sort_index tensor from_numpy as_tensor values""".split()
)
"""What a table, or a column of it, goes through with its rows in order or in an order of its own."""
PLAIN = frozenset(["to_numpy", "tolist"])
"""What takes the index away, by which pandas would put rows beside each other."""


def put_beside(run: Rehearsing) -> Iterator[Answer]:
    """``features.assign(label=labels["label"].to_numpy())`` of two files, one of which was sorted or drawn anew."""
    for node in run.nodes:
        if node.op == "assign":
            given = list(node.options.values())
        elif node.op == "setitem" and len(node.inputs) > 2 and isinstance(node.inputs[1], str | Node):
            given = [node.inputs[2]]
        else:
            continue
        mine, orders = _origin(node.inputs[0] if node.inputs else None)
        if mine is None or node.place is None:
            continue
        for column in given:
            theirs, others = _origin(column)
            plain = isinstance(column, Node) and (
                column.op in PLAIN or (column.op, column.name) == ("attribute", "values")
            )
            if theirs is None or theirs is mine or not plain or mine.inputs == theirs.inputs:
                continue
            moved = next((n for n in (*orders, *others) if n.op in REORDERS), None)
            if moved is not None and [_by(n) for n in orders] != [_by(n) for n in others]:
                text = "rows are put beside each other by their place, and those of one table were put in another order"
                yield Answer(node.place, text, (moved.place,) if moved.place is not None else ())
                return


LOADS = frozenset(["load", "loadtxt", "genfromtxt", "fromfile", "memmap", "imread", *READS])


def reordered_alone(run: Rehearsing) -> Iterator[Answer]:
    """Labels of a table whose rows were drawn anew or sorted, beside inputs of another file that stand as they came."""
    for meeting, inputs, labels in lined_up(run):
        moved = next((n for n in labels if n.op in ("sample", "sort_values") and _table(n) is not None), None)
        if moved is None or moved.place is None or not indices(inputs) & indices(labels):
            continue
        table = _table(moved)
        loads = [n for n in inputs if n.op in LOADS]
        apart = bool(loads) and not any(n is table or n is moved for n in inputs)
        if (
            apart
            and not any(n.op in (*REORDERS, "argsort", "permutation") for n in inputs)
            and _as_it_came(moved, labels)
        ):
            text = "these rows are put in another order, and the inputs beside them stand as they came"
            yield Answer(moved.place, text, (meeting.place,) if meeting.place is not None else ())
            return


def _table(order: Node) -> Node | None:
    """The file whose rows are put in an order."""
    found, _ = _origin(order)
    return found


def _as_it_came(moved: Node, labels: list[Node]) -> bool:
    """True where nothing puts the rows back: no index is looked at after."""
    return not any(
        n.op == "sort_index" or (n.op == "attribute" and n.name == "index") for n in labels if n is not moved
    )


def _origin(value: Value) -> tuple[Node | None, list[Node]]:
    """The file that a table or column was read from, and what put its rows in an order on the way."""
    orders: list[Node] = []
    for _ in range(40):
        if not isinstance(value, Node):
            return None, []
        if value.op in READS:
            return value, orders
        if value.op not in KEEPS or not value.inputs:
            return None, []
        if value.op in REORDERS:
            orders.append(value)
        value = value.inputs[0]
    return None, []


def _by(order: Node) -> tuple[object, ...]:
    """By what it puts the rows in order: the same column is the same order."""
    return order.op, order.options.get("by", order.inputs[1] if len(order.inputs) > 1 else None)
