"""Are inputs brought to their scale twice, by the data and by the network, or by both of two helpers?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.levels import row
from trainwreck.code.rehearsal.questions.roles import STRUCTURE

BYTES = 255.0
"""The greatest pixel: nobody divides by it twice on purpose."""
KEEPS = STRUCTURE | frozenset(
    """batch element getitem float to astype tensor as_tensor from_numpy asarray array clamp clip flip
    fliplr flipud roll pad where either stack cat concatenate copy interpolate resize
    crop rot90 item part ascontiguousarray""".split()
)
"""What leaves the scale of the inputs as it is."""
NOISE = frozenset(["randn", "randn_like", "rand", "rand_like", "normal", "uniform", "standard_normal", "random"])


def scaled_twice(run: Rehearsing) -> Iterator[Answer]:
    """A subtraction and division by constants of values that have gone through the same before.

    Told is the one that other data do without; where both always come together, the second."""
    found = [(n, scale) for n in run.nodes if (scale := _scale(n)) is not None and n.place is not None]
    behind = {id(n): _before(n) for n, _ in found}
    scales = {id(n): scale for n, scale in found}
    pairs = [(b, n) for n, scale in found for b in behind[id(n)] if b is not n and scales.get(id(b)) == scale]
    told: set[int] = set()
    for first, second in pairs:
        assert first.place is not None
        assert second.place is not None
        if id(second.place[0]) in told:
            continue
        if first.place[0] is second.place[0]:  # one helper, called twice: in two places, or it is a loop
            if (called := _called(first, second)) is not None and id(called[0]) not in told:
                told.add(id(called[0]))
                text = "these values have been brought to this scale once already, by the same helper"
                yield Answer(called, text, tuple(p for p in first.stack[-1:]))
            continue
        alone = [n for n, _ in found if n.place is not None and n.place[0] is second.place[0]]
        without = any(not any(b is f for f, s in pairs if s is n for b in behind[id(n)]) for n in alone)
        place, other = (first.place, second.place) if without else (second.place, first.place)
        told |= {id(first.place[0]), id(second.place[0])}
        yield Answer(place, "these values have been brought to this scale once already, by the same numbers", (other,))


def _called(first: Node, second: Node) -> Place | None:
    """Where the helper is called the second time; None where one call does both, as in a loop."""
    one, other = ([p[0] for p in n.stack] for n in (first, second))
    if not one or not other or one[-1] is other[-1]:
        return None
    return second.stack[-1]


def _scale(node: Node) -> tuple[object, object] | None:
    """The numbers of ``(x - mean) / std``, or of ``x / 255``; None for anything else."""
    if node.op != "div" or len(node.inputs) != 2 or not isinstance(node.inputs[0], Node):
        return None
    spread, inner = _numbers(node.inputs[1]), node.inputs[0]
    if spread is None:
        return None
    if inner.op == "sub" and len(inner.inputs) == 2 and isinstance(inner.inputs[0], Node):
        mean = _numbers(inner.inputs[1])
        return (mean, spread) if mean is not None and any(mean) else None
    return ((0.0,), spread) if spread == (BYTES,) else None


def _numbers(value: Value) -> tuple[float, ...] | None:
    known = row(value)
    if known is None:
        return None
    return tuple(known) if isinstance(known, list) else (known,)


def _before(node: Node) -> list[Node]:
    """What the scaled values were, through all that leaves their scale as it is."""
    inner = node.inputs[0]
    if isinstance(inner, Node) and inner.op == "sub":
        inner = inner.inputs[0]
    return list(ancestors(inner, through=_keeps))


def _keeps(node: Node) -> bool:
    """True for what leaves the scale as it is, and for noise that is added to the values or multiplied with them."""
    if node.op in KEEPS:
        return True
    return node.op in ("add", "sub", "mul") and any(n.op in NOISE for i in node.inputs for n in ancestors(i, _product))


def _product(node: Node) -> bool:
    return node.op == "mul"
