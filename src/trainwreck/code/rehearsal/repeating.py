"""Loops that count for themselves: how often ``while step < last`` turns."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from trainwreck.code.rehearsal.domain import Items, Node, Value, candidates


def counted_sides(test: ast.expr) -> tuple[ast.expr, ...]:
    """The two sides of ``step < last``, where both are names, attributes or numbers; empty for any other test."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Lt):
        return ()
    sides = (test.left, test.comparators[0])
    plain = isinstance(sides[0], ast.Name | ast.Attribute) and isinstance(
        sides[1], ast.Name | ast.Attribute | ast.Constant
    )
    return sides if plain else ()


def turns_of(before: Sequence[Value], after: Sequence[Value]) -> Items | None:
    """What stands for the turns of ``while step < last``, told by what the first turn added to ``step``; None where
    that is not known. A job that may go on where it was left counts from its start."""
    if len(before) != 2 or not _whole(before[1]) or before[1] != after[1]:
        return None
    (first, last), now = before, after[0]
    start = next((c for c in candidates(first) if _whole(c)), None)
    added: Value = None
    if _whole(now) and _whole(first):
        added = now - first
    elif isinstance(now, Node) and now.op == "add" and len(now.inputs) > 1 and now.inputs[0] is first:
        added = now.inputs[1]
    if start is None or not _whole(added) or added <= 0 or last <= start:
        return None
    return Items([], more=True, kind="range", length=-(-(last - start) // added))


def _whole(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
