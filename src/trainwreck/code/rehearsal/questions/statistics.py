"""Running statistics in buffers (means, counts and sums of codes, centres): what each update keeps of the old ones."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place, Value
from trainwreck.code.rehearsal.graph import near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.averaging import SLIGHT, SWAPPED
from trainwreck.code.rehearsal.questions.terms import number_of


def swapped_statistics(run: Rehearsing) -> Iterator[Answer]:
    """A running mean that is nearly all of the newest batch, with a decay at hand that says otherwise."""
    told: set[int] = set()
    for kept, new, place in _updates(run):
        if id(place[0]) in told or abs(kept + new - 1) > SLIGHT or not 0 < kept < SWAPPED:
            continue
        told.add(id(place[0]))
        yield Answer(place, f"this running mean keeps {kept:g} of its old value: the two shares are swapped", (place,))


def _updates(run: Rehearsing) -> Iterator[tuple[float, float, Place]]:
    """The shares of the old and the new value at each update of a buffer in a loop."""
    for node in run.nodes:
        if node.op == "buffer" and node.writes:
            yield from _written(node)
    for event in run.tape:
        old, value = event.options.get("old"), event.args[1] if len(event.args) > 1 else None
        if event.name == "set" and event.turns and isinstance(old, Node) and _buffered(old) and event.place:
            shares = _shares(value, old)
            if shares is not None:
                yield *shares, event.place


def shares_of(run: Rehearsing) -> Iterator[tuple[int, float, float, Place]]:
    """(the function by its ``id``, the shares of old and new, where) for each update of a buffer in a loop."""
    for node in run.nodes:
        if node.op == "buffer" and node.writes:
            for kept, new, place in _written(node):
                yield id(place[1]), kept, new, place


def _written(buffer: Node) -> Iterator[tuple[float, float, Place]]:
    scaled: float | None = None
    for event in buffer.writes:
        if event.place is None or not event.turns:
            continue
        args = event.args
        if event.name == "mul_" and args:
            scaled = number_of(args[0])
        elif event.name == "add_" and args and scaled is not None:
            share, (value, factor) = event.options.get("alpha", 1.0), _factor(args[0])
            if isinstance(share, int | float) and factor is not None and isinstance(value, Node):
                yield scaled, share * factor, event.place
            scaled = None
        elif event.name == "lerp_" and len(args) > 1 and (share := number_of(args[1])) is not None:
            yield 1 - share, share, event.place
        elif event.name in ("copy_", "inplace") and args and (shares := _shares(args[0], buffer)) is not None:
            yield *shares, event.place


def _buffered(value: Node) -> bool:
    """True for a buffer, or what an earlier turn made of it."""
    return any(n.op == "buffer" for n in near(value, 12))


def _factor(value: Value) -> tuple[Value, float | None]:
    if isinstance(value, Node) and value.op == "mul" and len(value.inputs) > 1:
        for number, rest in ((value.inputs[1], value.inputs[0]), (value.inputs[0], value.inputs[1])):
            if (known := number_of(number)) is not None:
                return rest, known
        return value, None
    return value, 1.0


def _shares(value: Value, old: Node) -> tuple[float, float] | None:
    """Of ``a * old + b * new``, or of ``old.lerp(new, b)``."""
    if not isinstance(value, Node):
        return None
    if value.op == "lerp" and len(value.inputs) > 2 and value.inputs[0] is old:
        share = number_of(value.inputs[2])
        return None if share is None else (1 - share, share)
    if value.op != "add" or len(value.inputs) < 2:
        return None
    shares: dict[bool, float] = {}
    for item in value.inputs[:2]:
        inner, factor = _factor(item)
        if factor is None or not any(True for _ in parts(inner)):
            return None
        shares[inner is old] = factor
    return (shares[True], shares[False]) if len(shares) == 2 else None
