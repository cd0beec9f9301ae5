"""Can the last activation of a network reach the values that it is to produce?"""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, graph
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import (
    Bounds,
    backwards,
    behind,
    bounds,
    core,
    learns,
    loss_place,
    made_at,
)
from trainwreck.code.rehearsal.questions.scale import LAYERS, REGRESSIONS, Size, size

SPREADS = 1.5
"""So many standard deviations from the centre: one value in seven of a normal distribution lies outside."""
SLACK = 0.1
"""Of the width of the interval: what lies so little outside is no fault (smoothed and jittered data)."""
ENDS = frozenset(["tanh", "sigmoid", "hardtanh", "hardsigmoid", "softsign", "sin", "cos"])
FITTED = frozenset("min max amin amax ptp quantile percentile aminmax minmax_scale clip clamp".split())
"""Scaling by what the data reach: the result fills an interval of which the spread says nothing."""


def out_of_reach(run: Rehearsing) -> Iterator[Answer]:
    """Outputs that end in a bounded activation, and data beyond its ends: as a target, or beside it in a critic."""
    memo: dict[int, Size | None] = run.memo.setdefault("sizes", {})
    told: set[int] = set()
    for output, data, node in (*_targets(run), *_beside(run)):
        reach, end = bounds(output), _end(output)
        known = size(data, memo)
        if end is None or known is None or not _beyond(reach, known, _own(data)) or not _open(data):
            continue
        place = _made(data) if node.op in LAYERS else loss_place(end)
        if place is None or id(place[0]) in told:
            continue
        told.add(id(place[0]))
        text = (
            f"the network's outputs lie within {reach.low:g}..{reach.high:g} ({end.op}), the data that they are to "
            f"match are about {known.centre:.2g} with a spread of {known.spread:.2g}: it saturates"
        )
        yield Answer(place, text, tuple(p for p in (end.place, node.place) if p is not None))


def below_zero(run: Rehearsing) -> Iterator[Answer]:
    """Outputs that end in a relu, and targets of which a good part lies below zero."""
    memo: dict[int, Size | None] = run.memo.setdefault("sizes", {})
    for output, data, node in _targets(run):
        last = next((n for n in core(output) if n.op == "relu"), None)
        known = size(data, memo)
        if last is None or known is None or len(core(output)) != 1 or not learns(last) or not _open(data):
            continue
        if max(known.centre - SPREADS * known.spread, _own(data).low) < -BELOW * known.spread:
            place = made_at(run, last) or node.place
            if place is not None:
                text = f"the outputs end in a relu, and the data that they are to match are about {known.centre:.2g}"
                text += f" with a spread of {known.spread:.2g}: what lies below zero is out of reach"
                yield Answer(place, text, (node.place,) if node.place is not None else ())
                return


BELOW = 0.5
"""Of the spread: of a normal distribution with such a centre three in ten lie below zero."""


def _own(data: Node) -> Bounds:
    """The interval of the data; of an array that is filled element by element, of all that is put into it."""
    low, high = math.inf, -math.inf
    at: Value = data
    for _ in range(24):
        if not isinstance(at, Node):
            break
        if at.op == "setitem" and len(at.inputs) > 1:
            part = bounds(at.inputs[1])
            low, high = min(low, part.low), max(high, part.high)
        elif at.op not in (
            "batch",
            "part",
            "getitem",
            "element",
            "from_numpy",
            "tensor",
            "as_tensor",
            "float",
            "astype",
        ):
            part = bounds(at)
            return Bounds(min(low, part.low), max(high, part.high))
        at = at.inputs[0] if at.inputs else None
    return bounds(data)


def _targets(run: Rehearsing) -> Iterator[tuple[Node, Node, Node]]:
    """Outputs and targets of squared and absolute errors."""
    for event in backwards(run):
        for node in graph(event.subject):
            if node.op in REGRESSIONS and len(node.inputs) > 1:
                yield from _sides(node)
            elif node.op in ("pow", "square", "abs") and node.inputs and isinstance(node.inputs[0], Node):
                difference = node.inputs[0]
                if difference.op == "sub" and len(difference.inputs) > 1:
                    yield from _sides(difference)


def _sides(node: Node) -> Iterator[tuple[Node, Node, Node]]:
    for output, data in (node.inputs[:2], node.inputs[1::-1]):
        if isinstance(output, Node) and isinstance(data, Node) and output.grad and not data.grad and not learns(data):
            yield output, data, node


def _beside(run: Rehearsing) -> Iterator[tuple[Node, Node, Node]]:
    """What a generator makes and real data, where both go into the same layer of a critic."""
    by_weight: dict[int, list[Node]] = {}
    for event in backwards(run):
        for node in graph(event.subject):
            if node.op in LAYERS and len(node.inputs) > 1 and isinstance(node.inputs[1], Node):
                by_weight.setdefault(id(node.inputs[1]), []).append(node)
    for layers in by_weight.values():
        given = [(n.inputs[0], n) for n in layers if isinstance(n.inputs[0], Node)]
        made = [(v, n) for v, n in given if learns(v)]
        real = [(v, n) for v, n in given if not learns(v)]
        for output, node in made[:2]:
            for data, _ in real[:2]:
                yield output, data, node


def _end(output: Value) -> Node | None:
    """The bounded activation that an output ends in, moved and scaled by numbers at most."""
    at = output
    for _ in range(12):
        if not isinstance(at, Node):
            return None
        if at.op in ENDS:
            return at if learns(at) else None
        inner = behind(at)
        if inner is None and at.op in ("detach", "data", "detach_") and at.inputs:
            inner = [at.inputs[0]]
        if inner is None and at.op in ("mul", "div", "add", "sub"):
            inner = [i for i in at.inputs[:2] if isinstance(i, Node)]
        if inner is None or len(inner) != 1:
            return None
        at = inner[0]
    return None


def _beyond(reach: Bounds, known: Size, own: Bounds) -> bool:
    """True if many of the data lie outside; a skewed distribution ends where its own bounds are, not its spread."""
    if not (math.isfinite(reach.low) and math.isfinite(reach.high)) or reach.high <= reach.low:
        return False
    slack = SLACK * (reach.high - reach.low)
    low, high = known.centre - SPREADS * known.spread, known.centre + SPREADS * known.spread
    low, high = max(low, own.low), min(high, own.high)
    return low < reach.low - slack or high > reach.high + slack


def _open(data: Node) -> bool:
    """True for data that nothing brings into an interval, as far as the program shows."""
    own = bounds(data)
    return not (math.isfinite(own.low) and math.isfinite(own.high) and own.high - own.low <= 2.01) and not any(
        n.op in FITTED for n in ancestors(data)
    )


def _made(data: Node) -> Place | None:
    """Where the program takes the data: the call of the function that makes them, else where they are made."""
    at = data
    while at.op in ("batch", "part", "element") and at.inputs and isinstance(at.inputs[0], Node):
        at = at.inputs[0]
    return at.stack[-1] if at.stack and at is data else at.place
