"""Gaps in the data that are filled with zero, where nothing that is measured comes near zero."""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import External, Items, Node, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import backwards
from trainwreck.code.rehearsal.questions.scale import Size, size

FAR = 3.0
"""Spreads between the centre of the values and zero from which on hardly any value is as low (one in a thousand of a
normal distribution)."""
TESTS = frozenset(["isnan", "isna", "isnull"])
CONVERTS = frozenset(
    "astype float double float32 float64 to from_numpy tensor as_tensor array asarray copy clone".split()
)
STACKS = frozenset(["stack", "column_stack", "vstack", "concatenate", "cat"])
MAX_CHAIN = 12


def filled_with_zero(run: Rehearsing) -> Iterator[Answer]:
    """``nan_to_num(x)`` of values around 120: what is missing becomes a value that no measurement has.

    Said only where the program makes the data and their gaps, so that it is known how large the values are. After a
    standardisation zero is the mean, and means nothing."""
    memo: dict[int, Size | None] = run.memo.setdefault("sizes", {})
    for event in backwards(run):
        for node in ancestors(event.subject):
            base = _filled(node) if not node.grad else None
            measured = _before_gaps(base) if base is not None else None
            if measured is None or node.place is None or not any(_far(v, memo) for v in _columns(measured)):
                continue
            yield Answer(node.place, "what is missing becomes zero here, and what is there lies far from zero")
            return


def _filled(node: Node) -> Node | None:
    """The data whose gaps are filled with zero."""
    first = node.inputs[0] if node.inputs else None
    if node.op == "nan_to_num":
        number = node.options.get("nan", 0.0)
        return first if number == 0 and isinstance(first, Node) else None
    if node.op == "fillna":
        number = node.options.get("value", node.inputs[1] if len(node.inputs) > 1 else None)
        return first if isinstance(number, int | float) and number == 0 and isinstance(first, Node) else None
    if node.op == "where" and len(node.inputs) > 2 and isinstance(first, Node) and first.op in TESTS:
        return node.inputs[2] if _zero(node.inputs[1]) and isinstance(node.inputs[2], Node) else None
    if node.op == "setitem" and len(node.inputs) > 2 and _zero(node.inputs[1]):
        index = node.inputs[2]
        return first if isinstance(index, Node) and index.op in TESTS and isinstance(first, Node) else None
    if node.op == "masked_fill" and len(node.inputs) > 2 and _zero(node.inputs[2]):
        index = node.inputs[1]
        return first if isinstance(index, Node) and index.op in TESTS and isinstance(first, Node) else None
    return None


def _zero(value: Value) -> bool:
    if isinstance(value, Node):
        return value.op in ("zeros", "zeros_like")
    return isinstance(value, int | float) and not isinstance(value, bool) and value == 0


def _before_gaps(value: Node) -> Node | None:
    """The data before gaps were put into them; None where that isn't seen."""
    at: Value = value
    found = False
    for _ in range(MAX_CHAIN):
        if not isinstance(at, Node) or not at.inputs:
            break
        if at.op == "setitem" and len(at.inputs) > 1 and _nothing(at.inputs[1]):
            at, found = at.inputs[0], True
        elif at.op in CONVERTS:
            at = at.inputs[0]
        else:
            break
    return at if found and isinstance(at, Node) else None


def _nothing(value: Value) -> bool:
    """True for ``nan``, also as ``float("nan")``."""
    if isinstance(value, float):
        return math.isnan(value)
    return isinstance(value, External) and value.name.lower() == "nan"


def _columns(value: Node) -> list[Value]:
    held = value.inputs[0] if value.op in STACKS and value.inputs else None
    items = list(held) if isinstance(held, tuple) else held.items if isinstance(held, Items) and not held.more else []
    return items if len(items) > 1 else [value]


def _far(value: Value, memo: dict[int, Size | None]) -> bool:
    known = size(value, memo)
    return known is not None and abs(known.centre) > FAR * known.spread > 0


__all__ = ["filled_with_zero"]
