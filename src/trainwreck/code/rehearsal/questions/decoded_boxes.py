"""Boxes that a network tells by centre and size and a program decodes: are they made corners where overlaps of corners
are computed?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import OPAQUE, ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.boxes import COORDINATES, DISTANCES, OVERLAPS, conversion, layer_of, read
from trainwreck.code.rehearsal.questions.overlaps import by_centre, called
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, trained
from trainwreck.code.rehearsal.questions.terms import number_of
from trainwreck.core.row import Row

PASSES = STRUCTURE | frozenset(["batch", "element", "part", "astype", "float", "clamp", "clip", "cpu", "numpy", "to"])
MAX_CHAIN = 40


class Compared(Row):
    """An overlap of what a network told with given boxes."""

    node: Node
    told: Node
    root: Node
    """Where the given boxes come from."""
    layout: int
    """How often their centres were made corners on the way, less the way back."""
    halved: bool
    """Whether half of a size was taken off what the network told: it was made corners."""


def decoded_centres(run: Rehearsing) -> Iterator[Answer]:
    """The network learns centres and sizes, and what is decoded of them meets corners as it is."""
    every = [c for node in run.nodes if (c := _compared(node)) is not None]
    found = [c for c in every if not c.halved and not c.node.grad]
    yield from _once_converted(every)
    if not found:
        return
    learned = list(_learned(run))
    for one in found:
        params = _params(one.told)
        mine = [(root, layout, node) for root, layout, node, theirs in learned
                if _same(root, one.root) and params & theirs]  # fmt: skip
        if not mine:
            continue
        # given as corners and learned as centres, or given as centres and made corners for the overlap alone
        away = all(layout == -1 for _, layout, _ in mine) and one.layout == 0
        alone = all(layout == 0 for _, layout, _ in mine) and one.layout == 1
        both = all(layout == 0 for _, layout, _ in mine) and one.layout == 0 and by_centre(one.root)
        place = called(one.node)
        if place is not None and (away or alone or both):
            text = "the network learned centres and sizes of boxes, and this overlap takes what it tells for corners"
            yield Answer(place, text, tuple(p for p in (one.node.place, mine[0][2].place) if p is not None))
            return


def _once_converted(every: list[Compared]) -> Iterator[Answer]:
    """Overlaps with the same boxes, before which what the network tells is made corners in training or in evaluation
    alone."""
    for one in every:
        params = _params(one.told)
        others = [
            o
            for o in every
            if o.node.grad is not one.node.grad and _same(o.root, one.root) and params & _params(o.told)
        ]
        if one.halved or one.layout or not others or not all(o.halved and not o.layout for o in others):
            continue
        place, proof = called(one.node), others[0].node.place
        if place is not None:
            text = "this overlap takes what the network tells for corners, and another one makes corners of it first"
            yield Answer(place, text, (proof,) if proof is not None else ())
            return


def _compared(node: Node) -> Compared | None:
    """Of a network's decoded boxes and given ones."""
    if node.op not in OVERLAPS or len(node.inputs) < 2:
        return None
    sides = [i for i in node.inputs[:2] if isinstance(i, Node)]
    if len(sides) != 2:
        return None
    known = [_params(s) for s in sides]
    if bool(known[0]) == bool(known[1]):
        return None
    told, given = sides if known[0] else sides[::-1]
    if (plain := read(told)) is not None and layer_of(plain[1]) is not None:
        return None  # nothing is decoded: ``boxes.two_layouts`` knows both layouts
    root, layout = _root(given)
    if root is None or _boxes(given) is None or _boxes(told) is None or layout not in (0, 1):
        return None
    behind = list(ancestors(told, through=lambda n: n.owner is None and n.op not in ("param", "batch")))
    if any(n.op in OPAQUE and n.op != "attribute" for n in behind):
        return None
    return Compared(node, told, root, layout, any(_halves(n) for n in behind))


def _boxes(side: Node) -> Node | None:
    """The four columns that a coordinate or two were taken from."""
    at = side
    for _ in range(8):
        if at.shape.dims[-1:] == (COORDINATES,):
            return at
        if at.op not in STRUCTURE | {"part"} or not at.inputs or not isinstance(at.inputs[0], Node):
            return None
        at = at.inputs[0]
    return None


def _params(value: Node) -> set[int]:
    return {id(n) for n in ancestors(value) if n.op == "param"}


def _halves(node: Node) -> bool:
    """``centre - size / 2``, however the half is written."""
    if node.op == "box_convert":
        return True
    if node.op not in ("sub", "add", "stack", "cat") or len(node.inputs) < 2:
        return False
    for item in node.inputs[:2]:
        at: Value = item
        for _ in range(4):
            if not isinstance(at, Node) or not at.inputs:
                break
            if at.op in ("div", "mul", "floor_divide") and len(at.inputs) > 1:
                numbers = [number_of(i) for i in at.inputs[:2]]
                if 0.5 in numbers or -0.5 in numbers or (at.op != "mul" and numbers[1] == 2.0):
                    return True
            at = at.inputs[0] if at.op in STRUCTURE else None
    return False


def _root(value: Node) -> tuple[Node | None, int]:
    """(where boxes come from, how often their centres were made corners on the way)."""
    at, layout = value, 0
    for _ in range(MAX_CHAIN):
        change = conversion(at)
        if change is not None and change[0][1] == 0:
            layout += change[0][0]
            at = change[1]
            continue
        goes_on = at.op in PASSES and at.inputs and isinstance(at.inputs[0], Node)
        if not goes_on:
            return (at if at.place is not None else None), layout
        at = at.inputs[0]
    return None, layout


def _learned(run: Rehearsing) -> Iterator[tuple[Node, int, Node, set[int]]]:
    """(where the boxes come from, their layout as the loss takes it, the loss, the parameters) of what is fitted."""
    for node in trained(run):
        if node.op not in DISTANCES and node.op != "sub":
            continue
        sides = [i for i in node.inputs[:2] if isinstance(i, Node)]
        if len(sides) != 2 or sides[0].grad == sides[1].grad:
            continue
        output, target = sides if sides[0].grad else sides[::-1]
        changes = [c for n in ancestors(target) if (c := conversion(n)) is not None and c[0][1] == 0]
        params = _params(output)
        if any(_halves(n) for n in ancestors(output, through=lambda n: n.owner is None and n.op != "param")):
            continue
        if changes:
            for change in changes:
                root, layout = _root(change[1])
                if root is not None:
                    yield root, layout + change[0][0], node, params
        else:
            behind = [n for n in ancestors(target) if n.shape.dims[-1:] == (COORDINATES,) and n.op in PASSES]
            for base in behind[:4]:
                root, layout = _root(base)
                if root is not None:
                    yield root, layout, node, params


def _same(one: Node, other: Node) -> bool:
    if one is other:
        return True
    return one.place is not None and other.place is not None and one.place[0] is other.place[0] and one.op == other.op


__all__ = ["decoded_centres"]
