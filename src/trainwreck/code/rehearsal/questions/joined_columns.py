"""Columns that are taken from values which a program put beside each other: which of those are they?"""

from __future__ import annotations

from trainwreck.code.rehearsal.domain import Items, Node, Obj, Value
from trainwreck.code.rehearsal.questions.roles import JOINS

PASSES = frozenset(["batch", "element", "tensor", "as_tensor", "from_numpy", "float", "astype", "to", "clone"])
STACKS = frozenset(["stack", "column_stack"])


def columns_of(node: Node) -> tuple[bool, Value]:
    """(whether ``node`` picks columns of joined values, the one that they are; None where that can't be told)."""
    index = node.inputs[1] if node.op == "getitem" and len(node.inputs) > 1 else None
    if not isinstance(index, tuple) or len(index) < 2 or _whole(index[-1]):
        return False, None
    at: Value = node.inputs[0]
    for _ in range(8):
        rows = isinstance(at, Node) and at.op == "getitem" and not isinstance((*at.inputs, None)[1], tuple)
        if not isinstance(at, Node) or not (rows or at.op in PASSES) or not at.inputs:
            break
        at = at.inputs[0]
    if not isinstance(at, Node) or at.op not in JOINS | STACKS or not at.inputs:
        return False, None
    held = at.inputs[0]
    items = list(held.items) if isinstance(held, Items) and not held.more else held if isinstance(held, tuple) else ()
    axis = at.options.get("dim", at.options.get("axis", at.inputs[1] if len(at.inputs) > 1 else 0))
    last = axis in (-1, len(at.shape.dims) - 1) or at.op == "column_stack"
    if not items or not last or len(index) != max(len(at.shape.dims), 2):
        return len(items) > 1, None
    if at.op in STACKS:
        place = index[-1]
        known = isinstance(place, int) and -len(items) <= place < len(items)
        return True, items[place] if known and isinstance(place, int) else None
    return True, _beside(items, index[-1])


def _beside(items: list[Value] | tuple[Value, ...], wanted: Value) -> Value:
    """The one that lies within ``start:end``."""
    widths = [i.shape.dims[-1] if isinstance(i, Node) and i.shape.dims else None for i in items]
    if not isinstance(wanted, Obj) or wanted.kind != "builtins.slice" or None in widths:
        return None
    known = [w for w in widths if w is not None]
    start, end = wanted.args[0] or 0, sum(known) if wanted.args[1] is None else wanted.args[1]
    edges = [sum(known[:n]) for n in range(len(known) + 1)]
    if start not in edges or end not in edges or edges.index(end) != edges.index(start) + 1:
        return None
    return items[edges.index(start)]


def _whole(index: Value) -> bool:
    """True for ``:``, ``...`` and a new axis."""
    whole = isinstance(index, Obj) and index.kind == "builtins.slice" and index.args[:2] == (None, None)
    return index is None or index is Ellipsis or whole


__all__ = ["columns_of"]
