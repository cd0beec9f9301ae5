"""Rows that are gathered into a batch by hand: is each of them one sample?"""

from __future__ import annotations

from collections.abc import Sequence

from trainwreck.code.rehearsal.domain import Node, Obj, Value

ORDERS = frozenset(["randperm", "permutation", "randint", "integers", "choice", "choices", "sample", "randrange"])
"""What gives numbers of samples in an order that is drawn."""
STEPS = frozenset(["getitem", "element", "list", "tolist", "int", "item", "numpy", "either", "long", "part", "split"])


def samples(rows: Sequence[Value]) -> bool:
    """True for rows each of which was taken out of a collection by a number that was drawn, or cut out of a record from
    a drawn number on: no steps of a sequence."""
    return bool(rows) and all(isinstance(row, Node) and _picked(row) for row in rows)


def _picked(row: Node) -> bool:
    at: Value = row
    for _ in range(8):
        if not isinstance(at, Node) or at.op not in ("getitem", "part", "from_numpy", "tensor", "as_tensor", "long"):
            return False
        index = at.inputs[1] if at.op == "getitem" and len(at.inputs) > 1 else None
        if isinstance(index, Obj) and index.kind == "builtins.slice":
            index = index.args[0]
        if isinstance(index, Node) and _number(index) and _drawn(index):
            return True
        at = at.inputs[0] if at.inputs else None
    return False


def _number(index: Node) -> bool:
    """False for an index that is known to take several rows at once."""
    return index.shape.open or not index.shape.dims


def _drawn(index: Node) -> bool:
    at: Value = index
    for _ in range(10):
        if not isinstance(at, Node):
            return False
        if at.op in ORDERS:
            return True
        at = at.inputs[0] if at.op in STEPS and at.inputs else None
    return False


__all__ = ["samples"]
