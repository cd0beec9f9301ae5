"""Exponentials of values that a small temperature makes steep: weights ``exp(advantage / 0.05)`` without a bound."""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value, candidates
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import statistic
from trainwreck.code.rehearsal.questions.roles import HIGHEST, JOINS, RAW, STRUCTURE, bounds, core, users
from trainwreck.code.rehearsal.questions.scale import Size, size
from trainwreck.code.rehearsal.questions.terms import axes, losses_of, number_of

ENDS = 88.7
"""``exp`` of float32 is infinite beyond it."""
STEEP = 100.0
"""A factor that brings an output of 0.9 beyond that: the outputs of a layer are of this size from the start."""
SURELY = 2 * ENDS
"""Standard deviations times the factor: half a deviation is enough, which three in ten values are away."""
CAPS = frozenset("clamp clip clamp_max minimum tanh sigmoid log log1p where nan_to_num softmax".split())
MAX_PARTS = 24


def steep(run: Rehearsing) -> Iterator[Answer]:
    """``exp(x / t)`` in a loss where ``x`` is spread so far, or ``t`` so small, that it is infinite."""
    told: set[int] = set()
    for event, _ in losses_of(run):
        for node in ancestors(event.subject):
            if node.op != "exp" or node.place is None or id(node.place[0]) in told or not node.inputs:
                continue
            told.add(id(node.place[0]))
            if node.full.startswith(("numpy", "math")) or _capped(run, node) or bounds(node.inputs[0]).high < ENDS:
                continue
            why = _reaches(run, *_scaled(node.inputs[0]))
            if why:
                yield Answer(node.place, why, (event.place,) if event.place is not None else ())
                return


def _capped(run: Rehearsing, node: Node, depth: int = 0) -> bool:
    """True where something cuts the exponential off before it is used."""
    for user in users(run).get(id(node), ()):
        if user.op in CAPS or (user.op in ("min", "fmin") and len(user.inputs) > 1):
            return True
        if user.op in (*STRUCTURE, "either", "mul") and depth < MAX_PARTS and _capped(run, user, depth + 1):
            return True
    return False


def _scaled(value: Value) -> tuple[Value, float]:
    """What is scaled and the factor: of ``-x / 0.05`` it is x and -20."""
    factor = 1.0
    for _ in range(MAX_PARTS):
        if not isinstance(value, Node) or not value.inputs:
            break
        given = value.inputs
        if value.op == "neg":
            value, factor = given[0], -factor
        elif value.op in ("mul", "div") and len(given) > 1:
            number = number_of(given[1])
            if number:
                value, factor = given[0], factor * number if value.op == "mul" else factor / number
            elif value.op == "mul" and (number := number_of(given[0])):
                value, factor = given[1], factor * number
            else:
                break
        elif value.op in STRUCTURE or (value.op in JOINS and isinstance(given[0], Node)):
            value = given[0]
        else:
            break
    return value, factor


def _reaches(run: Rehearsing, value: Value, factor: float) -> str:
    """In words, why ``factor * value`` goes beyond where the exponential ends; empty where it isn't known to."""
    gain = abs(factor)
    if not isinstance(value, Node) or gain <= 1:
        return ""
    if any(n.op in HIGHEST for n in ancestors(value, through=_additive)):
        return ""
    if gain >= STEEP and _of_unit_vectors(value):
        return f"a similarity near 1 times {gain:g} is more than the {ENDS:g} where the exponential ends"
    if gain >= STEEP and value.op in RAW:
        return f"an output without a bound is multiplied by {gain:g}, and the exponential ends at {ENDS:g}"
    spread = _data_spread(run, value)
    if spread is not None and spread * gain >= SURELY:
        text = f"the values are spread by {spread:.2g} and multiplied by {gain:g} before the exponential"
        return f"{text}, which is infinite from {ENDS / gain:.2g} on: nothing cuts it off"
    return ""


def _additive(node: Node) -> bool:
    return node.op in STRUCTURE or node.op in ("add", "sub", "neg", "part", "attribute", "element")


def _of_unit_vectors(value: Node) -> bool:
    """A product of vectors that were normalised, or their cosine."""
    if value.op == "cosine_similarity":
        return True
    sides = value.inputs[:2] if value.op in ("matmul", "mm", "bmm") else ()
    return len(sides) == 2 and all(
        bool(core(side)) and all(n.op == "normalize" for n in core(side)) for side in sides if isinstance(side, Node)
    )


def _data_spread(run: Rehearsing, value: Node) -> float | None:
    """The standard deviation of what is no output of a network in a sum; None where it isn't known."""
    sizes: dict[int, Size | None] = run.memo.setdefault("sizes", {})
    total, known = 0.0, False
    for term in _terms(value):
        if statistic(term):
            continue
        if any(n.op == "param" for n in ancestors(term)):
            if not any(n.op == "param" for n in ancestors(term, through=lambda n: n.op not in NOT_OUTPUTS)):
                return None
            continue
        spread = _spread(term, sizes, 0)
        if spread is None:
            return None
        total, known = math.hypot(total, spread), True
    return total if known else None


NOT_OUTPUTS = frozenset("sample multinomial rsample argmax item".split())
"""Through these the numbers of a network go into what it does, and are no output any more."""


def _terms(value: Node, depth: int = 0) -> Iterator[Node]:
    if value.op in ("add", "sub") and depth < MAX_PARTS:
        for item in value.inputs[:2]:
            for inner in parts(item):
                yield from _terms(inner, depth + 1)
    elif value.op == "neg" or (value.op in STRUCTURE and value.op not in ("getitem", "gather", "tensor")):
        for inner in parts(value.inputs[:1]):
            yield from _terms(inner, depth + 1)
    else:
        yield value


def _spread(value: Value, sizes: dict[int, Size | None], depth: int) -> float | None:
    """The deviation of data, or what it is at least: summands that aren't known make it no smaller."""
    known = size(value, sizes)
    if known is not None:
        return known.spread
    if not isinstance(value, Node) or depth > MAX_PARTS or not value.inputs:
        return None
    given = value.inputs
    items: list[Value] = []
    factor = 1.0
    if value.op in STRUCTURE or value.op in JOINS or value.op in ("tensor", "array", "either"):
        items = candidates(value) if value.op == "either" else list(parts(given[:1]))
    elif value.op == "add":
        items = list(given[:2])
    elif value.op in ("mul", "div") and len(given) > 1:
        numbers = [(number_of(given[1]), given[0]), (number_of(given[0]) if value.op == "mul" else None, given[1])]
        scaled = next(((n, i) for n, i in numbers if n), None)
        if scaled is not None:
            items, factor = [scaled[1]], abs(scaled[0]) if value.op == "mul" else 1 / abs(scaled[0])
    elif value.op == "sum" and (axis := axes(value)) is not None and isinstance(given[0], Node):
        dims = [given[0].shape.dim(a) for a in axis]
        items, factor = [given[0]], math.sqrt(math.prod(d or 1 for d in dims))
    found = [s for i in items if (s := _spread(i, sizes, depth + 1)) is not None]
    return factor * max(found) if found else None


__all__ = ["steep"]
