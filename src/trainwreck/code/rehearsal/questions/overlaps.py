"""Overlaps of boxes: formulas for corners that are given centres and sizes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Place, Value
from trainwreck.code.rehearsal.graph import near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.box_columns import no_corners, painted_from_corner, used_as_centres
from trainwreck.code.rehearsal.questions.boxes import COORDINATES, OVERLAPS, Layout, conversion, layer_of, read
from trainwreck.code.rehearsal.questions.paths import key_of
from trainwreck.code.rehearsal.questions.roles import JOINS, STRUCTURE
from trainwreck.code.rehearsal.questions.terms import number_of
from trainwreck.core.row import Row

CONVERTED: Layout = (1, 0)
PLAIN: Layout = (0, 0)
FROM_CORNER: Layout = (0, 1)
"""Corners that were made of one corner and a size."""
PASSES = STRUCTURE | frozenset(
    ["batch", "element", "astype", "array", "asarray", "float", "clamp", "clip", "cpu", "setitem"]
)


NEAR = 60


class Overlap(Row):
    """An overlap of a network's boxes with given ones."""

    layer: Obj
    layout: Layout
    given: Layout
    """The layout of the given ones."""
    target: Node
    node: Node


def overlap_of_centres(run: Rehearsing) -> Iterator[Answer]:
    """Boxes that are made corners for one overlap and not for another; or that the data give by centre and size."""
    found = [o for node in run.nodes if (o := _overlap(node)) is not None]
    alike = {id(o.layer) for o in found if o.layout == o.given}
    for one in found:
        if one.layout != one.given:
            place = _beside(one.node) or called(one.node) if id(one.layer) in alike else None
            other = next((o for o in found if o.layer is one.layer and o.layout == o.given == one.layout), None)
            if other is not None and {one.layout, one.given} == {CONVERTED, FROM_CORNER}:
                # both are corners here, each made in its own way: the other place takes the one for the other
                proof = tuple(p for p in (one.node.stack[-1:] or (one.node.place,)) if p is not None)
                text = "the given boxes are made corners in one way here, and in another way where they are judged"
                if (there := called(other.node)) is not None:
                    yield Answer(there, text, proof)
                return
            if place is not None and not _of_something_else(one, found):
                text = "one of the two is converted to another layout before they are compared here, the other is not"
                yield Answer(place, text, tuple(p for p in (one.node.place,) if p is not None))
                return
            continue
        if one.layout != PLAIN:
            continue
        other = next((o for o in found if o.layer is one.layer and o.layout == o.given == CONVERTED), None)
        root = _root(one.target)
        if other is None and not (by_centre(one.target) or used_as_centres(run, root) or no_corners(run, root)):
            continue
        place = _apart(one.node, other.node) if other is not None else called(one.node)
        if place is not None:
            text = "the overlap is computed from corners, and is given centres and sizes here"
            yield Answer(place, text, tuple(p for p in (one.node.place, other.node.place if other else None) if p))
            return


def _of_something_else(one: Overlap, found: list[Overlap]) -> bool:
    """True for given boxes that are worked out of what are none (corners of a mask): of what layout they are is not
    told by how other boxes are converted."""
    made = _root(one.target)
    others = [_root(o.target) for o in found if o.layer is one.layer and o.layout == o.given]
    return made.op in JOINS and not by_centre(one.target) and all(made.place != o.place for o in others)


def _root(value: Node) -> Node:
    """What boxes were before they were scaled and selected."""
    at = value
    for _ in range(20):
        scaled = at.op in ("div", "mul") and len(at.inputs) > 1 and number_of(at.inputs[1]) is not None
        inner = at.inputs[0] if at.inputs and (scaled or at.op in PASSES) else None
        if not isinstance(inner, Node):
            break
        at = inner
    return at


def corner_for_centre(run: Rehearsing) -> Iterator[Answer]:
    """Given boxes that are drawn from their corner on are made corners as if they were told by their centre.

    Silent where what the network tells is made corners in the same way, unless that meets other boxes somewhere."""
    found = [o for node in run.nodes if (o := _overlap(node)) is not None]
    for node in run.nodes:
        change = conversion(node)
        if change is None or change[0] != CONVERTED or node.grad or layer_of(change[1]) is not None:
            continue
        items = _columns(change[1])
        painted = items is not None and _drawn_from(run, items)
        if not painted and not painted_from_corner(run, _root(change[1])):
            continue
        told = [o for o in found if o.layout == CONVERTED]
        if told and all(o.given == CONVERTED for o in told):
            continue
        place = called(node)
        if place is not None:
            text = "these boxes are told by a corner and a size, and are made corners here as if by their centre"
            yield Answer(place, text, tuple(p for p in (node.place,) if p is not None))
            return


def _columns(value: Node) -> list[Value] | None:
    """The four numbers that boxes are put together from, one by one."""
    at: Value = _root(value)
    for _ in range(4):
        node = next(iter(parts(at)), None)
        held = node.inputs[0] if node is not None and node.inputs else None
        while isinstance(held, Items | tuple):
            items = list(held.items) if isinstance(held, Items) else list(held)
            if len(items) == COORDINATES and all(isinstance(i, Node) for i in items):
                return items
            held = items[0] if items else None
        if not isinstance(held, Node):
            return None
        at = held
    return None


def _drawn_from(run: Rehearsing, items: list[Value]) -> bool:
    """True where the program marks ``x : x + w`` and ``y : y + h`` in a picture."""
    marked = set()
    for node in run.nodes:
        if node.op not in ("setitem", "getitem"):
            continue
        index = node.inputs[-1] if isinstance(node.inputs[-1], tuple) else (node.inputs[-1],)
        for part in index:
            begin, end = (*part.args, None, None)[:2] if isinstance(part, Obj) else (None, None)
            if isinstance(begin, Node) and isinstance(end, Node) and end.op == "add":
                marked.add((key_of(begin), frozenset(key_of(i) for i in end.inputs[:2])))
    wanted = [(key_of(a), frozenset([key_of(a), key_of(b)])) for a, b in zip(items[:2], items[2:], strict=True)]
    return all(w in marked for w in wanted)


def _overlap(node: Node) -> Overlap | None:
    if node.op not in OVERLAPS or len(node.inputs) < 2:
        return None
    sides = [read(v) for v in node.inputs[:2] if isinstance(v, Node)]
    known = [s for s in sides if s is not None]
    if len(known) != 2:
        return None
    for (layout, base), (other, target) in (known, known[::-1]):
        layer = layer_of(base)
        if layer is not None and layer_of(target) is None and target.shape.dims[-1:] == (COORDINATES,):
            return Overlap(layer, layout, other, target, node)
    return None


def _apart(one: Node, other: Node) -> Place | None:
    """The innermost call on the way to the one that is not on the way to the other; the formula itself if it is
    another one."""
    if one.place is None or other.place is None or one.place[0] is not other.place[0]:
        return _handed(one.place, list(one.stack)) if one.place is not None and _outside(other) else one.place
    for mine, its in zip(reversed(one.stack), reversed(other.stack), strict=False):
        if mine[0] is not its[0]:
            before = list(one.stack[: one.stack.index(mine)])
            return _handed(mine, before) if _outside(other) else mine
    return one.place


def _outside(node: Node) -> bool:
    """True where boxes are made corners before they are handed to the formula, which takes them as they come."""
    converted = [n for n in near(node, NEAR) if conversion(n) is not None]
    depth = len(node.stack)
    return bool(converted) and all(len(n.stack) <= depth and n.stack[:-1] != node.stack for n in converted)


def _handed(at: Place, before: list[Place]) -> Place:
    """Up from a formula to the call that hands the boxes over: through functions that only pass on what they get."""
    while before:
        names = {n.id for n in ast.walk(at[0]) if isinstance(n, ast.Name)} & set(at[1].params)
        stored = {n.id for n in at[1].nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        if len(names) < PAIR or names & stored:
            return at
        at = before.pop()
    return at


PAIR = 2
"""Boxes that are compared."""


def called(node: Node) -> Place | None:
    """Where the function that holds the formula is called."""
    return node.stack[-1] if node.stack and node.place is not None and node.stack[-1][1] is not node.place[1] else (
        node.place
    )  # fmt: skip


def _beside(node: Node) -> Place | None:
    """The call that leads to the overlap in the function that converts one of the two."""
    converted = next((n for n in near(node, NEAR) if conversion(n) is not None), None)
    if converted is None:
        return None
    shared = 0
    while shared < min(len(node.stack), len(converted.stack)) and node.stack[shared][0] is converted.stack[shared][0]:
        shared += 1
    return node.stack[shared] if shared < min(len(node.stack), len(converted.stack)) else None


def by_centre(value: Node) -> bool:
    """True where the data are put together as centre and size: ``[x + w / 2, y + h / 2, w, h]``."""
    at: Value = value
    for _ in range(20):
        node = next(iter(parts(at)), None)
        if node is None:
            return False
        held = node.inputs[0] if node.inputs else None
        items = list(held.items) if isinstance(held, Items) else list(held) if isinstance(held, tuple) else []
        if node.op in JOINS | {"array", "asarray", "tensor"} and len(items) == COORDINATES:
            return _halved(items[0], items[2]) and _halved(items[1], items[3])
        if node.op in JOINS and len(items) == 2 and node.shape.dims[-1:] == (COORDINATES,):
            return _halved(items[0], items[1])
        if node.op in ("div", "mul") and len(node.inputs) > 1 and number_of(node.inputs[1]) is not None:
            at = node.inputs[0]
        elif node.op in PASSES | JOINS and node.inputs:
            at = node.inputs[1] if node.op == "setitem" else node.inputs[0]
        else:
            return False
    return False


def _halved(centre: Value, size: Value) -> bool:
    """``x + w / 2`` beside ``w``, or ``(x0 + x1) / 2`` beside ``x1 - x0``."""
    if not isinstance(centre, Node) or not isinstance(size, Node):
        return False
    if centre.op == "add":
        halves = [i for i in centre.inputs[:2] if isinstance(i, Node) and i.op in ("div", "mul")]
        return any(
            number_of(h.inputs[1]) == (2.0 if h.op == "div" else 0.5) and key_of(h.inputs[0]) == key_of(size)
            for h in halves if len(h.inputs) > 1
        )  # fmt: skip
    middle = centre.inputs[0] if centre.op in ("div", "mul") and centre.inputs else None
    if isinstance(middle, Node) and middle.op == "add" and size.op == "sub":
        return {key_of(i) for i in middle.inputs[:2]} == {key_of(i) for i in size.inputs[:2]}
    return False


__all__ = ["by_centre", "called", "corner_for_centre", "overlap_of_centres"]
