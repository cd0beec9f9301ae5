"""Masks over padding that are written sample by sample (``mask[i, :len(s)] = True``): what is true in them?"""

from __future__ import annotations

import ast

from trainwreck.code.rehearsal.domain import Items, Node, Obj, Value
from trainwreck.code.rehearsal.graph import near

SIZES = frozenset(["len", "size", "numel"])
FILLS = {"zeros": 0, "zeros_like": 0, "new_zeros": 0, "ones": 1, "ones_like": 1, "new_ones": 1}
MOST_WRITES = 200


def marked(mask: Node) -> bool | None:
    """True for a mask that is true on padding, False for one that is true on tokens, None where that isn't known."""
    if mask.op == "setitem":
        return _written(mask)
    if mask.op == "pad_sequence" and mask.inputs:
        items = mask.inputs[0].items if isinstance(mask.inputs[0], Items) else mask.inputs[0]
        rows = {_fill(i) for i in items} if isinstance(items, list | tuple) and items else set()
        beyond = mask.options.get("padding_value", 0)
        row = rows.pop() if len(rows) == 1 else None
        return None if row is None or beyond not in (0, 1) or beyond == row else row == 0
    return None


def _written(mask: Node) -> bool | None:
    at: Value = mask
    found: set[tuple[int, bool]] = set()
    for _ in range(MOST_WRITES):
        if not isinstance(at, Node) or at.op != "setitem" or len(at.inputs) < 3:
            break
        value, tokens = at.inputs[1], _tokens(at)
        if tokens is None or type(value) not in (bool, int, float) or value not in (0, 1):
            return None
        found.add((int(value), tokens))
        at = at.inputs[0]
    base = _fill(at)
    if base is None or len(found) != 1:
        return None
    value, tokens = found.pop()
    return None if value == base else tokens != (value == 1)


def _fill(value: Value) -> int | None:
    """0 or 1, which all of the values are."""
    if not isinstance(value, Node):
        return None
    if value.op in ("full", "new_full", "full_like"):
        number = value.get("fill_value", 1)
        return int(number) if type(number) in (bool, int, float) and number in (0, 1) else None
    return FILLS.get(value.op)


def _tokens(write: Node) -> bool | None:
    """True where a sample's own length is written to (``:len(s)``, ``-len(s):``), False for all behind it."""
    index = write.inputs[2][-1] if isinstance(write.inputs[2], tuple) and write.inputs[2] else write.inputs[2]
    if not isinstance(index, Obj) or index.kind != "builtins.slice" or len(index.args) < 2:
        return None
    spelt = _spelt(write)
    start, stop = index.args[:2]
    if not _of_a_sample(write, (start, stop)):
        return None
    if start in (None, 0) and stop is not None:
        return True if _length(stop, spelt.upper if spelt is not None else None) else None
    if stop is None and start is not None:
        lower = spelt.lower if spelt is not None else None
        from_end = isinstance(lower, ast.UnaryOp) and isinstance(lower.op, ast.USub)
        inner = lower.operand if isinstance(lower, ast.UnaryOp) else lower
        counted = start.inputs[0] if isinstance(start, Node) and start.op == "neg" and start.inputs else start
        return from_end if _length(counted, inner) else None
    return None


def _of_a_sample(write: Node, bounds: tuple[Value, ...]) -> bool:
    """True where the length is another one for each sample, or each is written by itself in a loop that stands here."""
    scope = write.place[1] if write.place is not None else None
    return any(isinstance(b, Node) for b in bounds) or any(t.scope is scope for t in write.turns)


def _spelt(write: Node) -> ast.Slice | None:
    """The slice as it is written in the program."""
    at = write.place[0] if write.place is not None else None
    at = at.targets[0] if isinstance(at, ast.Assign) else at
    index = at.slice if isinstance(at, ast.Subscript) else None
    index = index.elts[-1] if isinstance(index, ast.Tuple) and index.elts else index
    return index if isinstance(index, ast.Slice) else None


def _length(value: Value, spelt: ast.expr | None) -> bool:
    """True for how long something is: by what it was computed from, or as it is written."""
    if isinstance(value, Node):
        first = near(value, 3)
        return any(n.op in SIZES or (n.op == "attribute" and n.name == "shape") for n in first)
    match spelt:
        case ast.Call(func=ast.Name(id="len")) | ast.Call(func=ast.Attribute(attr="size")):
            return True
        case ast.Subscript(value=ast.Attribute(attr="shape")):
            return True
    return False


__all__ = ["marked"]
