"""Losses that weigh what is too high otherwise than what is too low: do the weights stand on the right sides?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Place, Value
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, bounds, learns, trained
from trainwreck.core.row import Row

LARGER = frozenset(["maximum", "max", "amax", "where", "add"])
BENT = frozenset(["relu", "clamp", "clamp_min", "clip"])


class Slope(Row):
    """``weight * gap``, where the loss grows (``up``) or falls with the gap."""

    gap: Node
    weight: Value
    rest: bool
    """The weight is one minus the quantile, not the quantile itself."""
    up: bool


def sides_exchanged(run: Rehearsing) -> Iterator[Answer]:
    """Quantiles that weigh what lies above the target: each output learns one minus its quantile.

    Told where there are several: a single weight may be meant for either side."""
    wrong: dict[int, list[tuple[Node, Value]]] = {}
    for node in trained(run):
        found = _rising(node)
        if found is None:
            continue
        over = _over(found.gap)
        if over is None or over == found.rest:
            continue
        wrong.setdefault(id(found.gap.place[0]) if found.gap.place is not None else 0, []).append(
            (found.gap, found.weight)
        )
    for pairs in wrong.values():
        ends = [bounds(weight) for _, weight in pairs]
        place = pairs[0][0].place
        if place is not None and min(e.low for e in ends) < max(e.high for e in ends):
            text = "the difference is turned round: what lies above the target is weighed with the quantile itself"
            yield Answer(place, text)
            return


def _over(gap: Node) -> bool | None:
    """True for output minus target, False for target minus output."""
    one, other = gap.inputs[:2]
    sides = learns(one), learns(other)
    return sides[0] if sides[0] != sides[1] else None


def _rising(node: Node) -> Slope | None:
    """The side on which a loss of two slopes of one difference grows with it."""
    if node.op == "mul" and len(node.inputs) == 2:
        return _stepped(*node.inputs) or _stepped(*node.inputs[::-1])
    if node.op not in LARGER:
        return None
    given = node.inputs[1:3] if node.op == "where" else node.inputs[:2]
    first = given[0] if given else None
    if node.op in ("max", "amax") and isinstance(first, Node) and first.op == "stack":
        first = first.inputs[0]
    if isinstance(first, Items | tuple):
        given = tuple(first.items if isinstance(first, Items) else first)
    slopes = [s for g in given if (s := _slope(g)) is not None]
    if len(given) != 2 or len(slopes) != 2 or slopes[0].gap is not slopes[1].gap:
        return None
    rising = [s for s in slopes if s.up]
    if len(rising) != 1 or slopes[0].rest == slopes[1].rest:
        return None
    return rising[0]


def _stepped(weight: Value, gap: Value) -> Slope | None:
    """``(q - (gap < 0)) * gap``."""
    inner = _plain(weight)
    difference = _plain(gap)
    if inner is None or inner.op != "sub" or difference is None or difference.op != "sub":
        return None
    quantile, test = inner.inputs[:2]
    told = _plain(test)
    below = told is not None and told.op in ("lt", "le") and told.inputs[1:2] in ((0,), (0.0,))
    if not below or told is None or _plain(told.inputs[0]) is not difference or not _quantile(quantile):
        return None
    return Slope(difference, quantile, _less(quantile), True)


def _slope(value: Value) -> Slope | None:
    node = _plain(value)
    if node is None or node.op != "mul" or len(node.inputs) != 2 or node.place is None:
        return None
    for number, (factor, other) in enumerate((node.inputs, node.inputs[::-1])):
        gap, up = _signed(other)
        if gap is None or (isinstance(factor, Node) and factor.grad):
            continue
        weight, turned = _weight(factor, node.place, number)
        if weight is not None:
            return Slope(gap, factor, weight, up != turned)
    return None


def _signed(value: Value) -> tuple[Node | None, bool]:
    """The difference, and False where its negative is meant; bent at zero or not."""
    up = True
    for _ in range(8):
        if not isinstance(value, Node):
            break
        if value.op == "sub":
            return value, up
        if value.op == "neg":
            up = not up
        elif value.op not in BENT and value.op not in STRUCTURE:
            break
        value = value.inputs[0] if value.inputs else None
    return None, up


def _weight(factor: Value, place: Place, number: int) -> tuple[bool | None, bool]:
    """Is a factor one minus the quantile, and is it negative? ``q - 1`` is the negative of one minus the quantile."""
    interval = bounds(factor)
    negative = interval.high < 0
    if not negative and not _quantile(factor):
        return None, False
    if negative and interval.low <= -1:
        return None, False
    if isinstance(factor, int | float):
        written = place[0]
        side = (written.left, written.right)[number] if isinstance(written, ast.BinOp) else None
        if side is None:
            return None, False
        return any(isinstance(n, ast.BinOp) and isinstance(n.op, ast.Sub) for n in ast.walk(side)), negative
    return _less(factor), negative


def _quantile(value: Value) -> bool:
    interval = bounds(value)
    return 0 < interval.low <= interval.high < 1


def _less(value: Value) -> bool:
    """True for ``1 - q`` and ``q - 1``."""
    node = _plain(value)
    while node is not None and node.op == "neg":
        node = _plain(node.inputs[0])
    return node is not None and node.op == "sub" and (node.inputs[0] in (1, 1.0) or node.inputs[1] in (1, 1.0))


def _plain(value: Value) -> Node | None:
    """A value before it is reshaped or converted."""
    for _ in range(8):
        if not isinstance(value, Node) or value.op not in STRUCTURE or not value.inputs:
            break
        value = value.inputs[0]
    return value if isinstance(value, Node) else None
