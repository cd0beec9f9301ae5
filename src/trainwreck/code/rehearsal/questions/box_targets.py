"""What a layer of boxes is taught, beside how its boxes and the given ones are read when they are judged."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Value
from trainwreck.code.rehearsal.graph import ancestors, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.boxes import (
    COORDINATES,
    DISTANCES,
    JOINED,
    MAX_CHAIN,
    OVERLAPS,
    Layout,
    conversion,
    layer_of,
    read,
)
from trainwreck.code.rehearsal.questions.roles import given, trained

FEW = 5
MOST = 200
CHOSEN = frozenset(["argmax", "argmin", "arange", "topk"])
"""Numbers of cells, which are no coordinates of a box."""
HALVES = 2


def taught_unconverted(run: Rehearsing) -> Iterator[Answer]:
    """The evaluation takes a layer's boxes for one layout and the given ones for another, and the layer is taught the
    given ones number by number: position from position, size from size. The one was never made the other."""
    judged = list(_judged(run))
    for node in trained(run) if judged else ():
        output, target = given(node, "input", 0), given(node, "target", 1)
        if node.op not in DISTANCES or not isinstance(output, Node) or not isinstance(target, Node):
            continue
        layer = layer_of(output)
        if layer is None or target.grad or not _number_by_number(target):
            continue
        behind = list(ancestors(target))
        for other, root, overlap in judged:
            if other is not layer or root.place is None:
                continue
            if not any(n.place is not None and n.place[0] is root.place[0] for n in behind):
                continue
            taken = next((n for n in behind if _columns(n) == set(range(COORDINATES))), target)
            place = taken.place or target.place
            if place is not None:
                text = "these boxes are taught as they are, and the evaluation reads them in another layout than what "
                text += "the layer tells: one of the two is to be converted"
                yield Answer(place, text, tuple(p for p in (overlap.place, node.place) if p is not None))
                return


def _judged(run: Rehearsing) -> Iterator[tuple[Obj, Node, Node]]:
    """(layer, given boxes, overlap) where the two are converted in different ways before they are compared."""
    for node in run.nodes:
        if node.op not in OVERLAPS or node.grad or len(node.inputs) < HALVES:
            continue
        for told, other in (node.inputs[:2], node.inputs[1::-1]):
            mine = next((c for p in parts(told) for n in near(p, FEW) if (c := conversion(n)) is not None), None)
            known = read(other) if isinstance(other, Node) else None
            if mine is None or known is None or known[0] == mine[0] or layer_of(known[1]) is not None:
                continue
            layout, base = mine
            layer = layer_of(base)
            if layer is not None and _absolute(layout, known[0]) and _number_by_number(base):
                yield layer, known[1], node


def _absolute(told: Layout, other: Layout) -> bool:
    return told in ((1, 0), (0, 1)) and other in ((0, 0), (1, 0), (0, 1))


def _number_by_number(boxes: Node) -> bool:
    """True where positions are made of positions alone, and sizes of sizes."""
    held = boxes.inputs[0] if boxes.op in JOINED and boxes.inputs else None
    items = list(held) if isinstance(held, tuple) else held.items if isinstance(held, Items) else []
    if len(items) not in (HALVES, COORDINATES):
        return False
    wide = COORDINATES // len(items)
    for number, item in enumerate(items):
        used = _used(item)
        if not used or not used <= set(range(number * wide, (number + 1) * wide)):
            return False
    return True


def _used(value: Value) -> set[int]:
    """The columns of boxes that a value is made of; none where it isn't known."""
    queue, seen, found = list(parts(value)), set[int](), set[int]()
    while queue:
        node = queue.pop()
        if id(node) in seen or node.op in CHOSEN or node.op == "param":
            continue
        seen.add(id(node))
        columns = _columns(node)
        if len(seen) > MOST:
            return set()
        if columns is not None and len(columns) < COORDINATES and not _put_together(node.inputs[0]):
            found |= columns
            continue
        queue += [n for i in node.inputs for n in parts(i)]
    return found


def _put_together(value: Value) -> bool:
    """True for boxes that were worked out of others: what is one of their columns may be made of several."""
    for _ in range(MAX_CHAIN):
        if not isinstance(value, Node) or not value.inputs:
            return False
        if value.op in JOINED:
            return conversion(value) is not None
        value = value.inputs[0]
    return False


def _columns(node: Node) -> set[int] | None:
    """The columns that a value takes of a table of boxes."""
    index = node.inputs[1] if node.op == "getitem" and len(node.inputs) > 1 else None
    last = index[-1] if isinstance(index, tuple) and len(index) > 1 else None
    if isinstance(last, int) and not isinstance(last, bool):
        return {last % COORDINATES} if -COORDINATES <= last < COORDINATES else None
    ends = last.args if isinstance(last, Obj) and last.kind == "builtins.slice" else ()
    if len(ends) < HALVES or not all(e is None or isinstance(e, int) for e in ends) or ends[:2] == (None, None):
        return None
    return set(range(COORDINATES)[slice(*ends[:2])])


__all__ = ["taught_unconverted"]
