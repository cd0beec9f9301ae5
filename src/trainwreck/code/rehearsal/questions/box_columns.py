"""The four numbers of a box that the program draws or paints itself: do they say corner, or centre, and size?"""

from __future__ import annotations

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Value
from trainwreck.code.rehearsal.graph import parts
from trainwreck.code.rehearsal.questions.boxes import COORDINATES
from trainwreck.code.rehearsal.questions.roles import JOINS, STRUCTURE
from trainwreck.code.rehearsal.questions.scale import Size, size
from trainwreck.code.rehearsal.questions.terms import number_of

KEEPS = STRUCTURE | frozenset(
    ["long", "int", "round", "tolist", "item", "float", "batch", "element", "to", "cpu", "numpy"]
)
MAX_CHAIN = 20
Column = tuple[int, int]
"""Where boxes are made (``id`` of the place), and which of their four numbers."""


def column(value: Value) -> Column | None:
    """Which number of which boxes a value is."""
    at, number = value, None
    for _ in range(MAX_CHAIN):
        if not isinstance(at, Node) or not at.inputs:
            break
        index = at.inputs[1] if len(at.inputs) > 1 else None
        inner = at.inputs[0]
        if number is None and at.op in ("part", "getitem"):
            last = index[-1] if isinstance(index, tuple) else index
            if isinstance(last, int) and not isinstance(last, bool):
                number = last % COORDINATES
                at = inner.inputs[0] if isinstance(inner, Node) and inner.op in ("unbind", "split", "chunk") else inner
                continue
        if at.op not in KEEPS and at.op not in ("part", "getitem", "unbind"):
            break
        at = inner
    whole = isinstance(at, Node) and at.place is not None and at.shape.dims[-1:] == (COORDINATES,)
    return (id(at.place[0]), number) if whole and number is not None else None


def painted_from_corner(run: Rehearsing, boxes: Node) -> bool:
    """True where the program marks ``x : x + w`` and ``y : y + h`` of these boxes in a picture."""
    found: set[tuple[Column, Column]] = set()
    for node in run.nodes:
        index = node.inputs[-1] if node.op in ("setitem", "getitem") and node.inputs else None
        for cut in index if isinstance(index, tuple) else (index,):
            begin, end = (*cut.args, None, None)[:2] if isinstance(cut, Obj) else (None, None)
            start = column(begin) if isinstance(end, Node) and end.op == "add" else None
            if start is not None and isinstance(end, Node):
                found |= {(start, other) for i in end.inputs[:2] if (other := column(i)) is not None and other != start}
    root = id(boxes.place[0]) if boxes.place is not None else 0
    return all(((root, n), (root, n + 2)) in found for n in (0, 1))


def used_as_centres(run: Rehearsing, boxes: Node) -> bool:
    """True where the program takes ``x - w / 2`` and ``y - h / 2`` of these boxes, number by number."""
    root, seen = (id(boxes.place[0]) if boxes.place is not None else 0), set[int]()
    for node in run.nodes:
        if node.op != "sub" or len(node.inputs) < 2 or node.grad:
            continue
        half = node.inputs[1]
        known = isinstance(half, Node) and half.op in ("div", "mul") and len(half.inputs) > 1
        if known and isinstance(half, Node) and number_of(half.inputs[1]) == (2.0 if half.op == "div" else 0.5):
            first, second = column(node.inputs[0]), column(half.inputs[0])
            if first is not None and second == (first[0], first[1] + 2) and first[0] == root:
                seen.add(first[1])
    return seen == {0, 1}


def no_corners(run: Rehearsing, boxes: Node) -> bool:
    """True for boxes that are drawn as four numbers of which the last two are the smaller ones on average: second
    corners would lie behind the first."""
    held = boxes.inputs[0] if boxes.op in JOINS and boxes.inputs else None
    items = list(held) if isinstance(held, tuple) else held.items if isinstance(held, Items) else []
    if len(items) not in (2, COORDINATES) or boxes.shape.dims[-1:] != (COORDINATES,):
        return False
    memo: dict[int, Size | None] = run.memo.setdefault("sizes", {})
    half = len(items) // 2
    pairs = [(size(a, memo), size(b, memo)) for a, b in zip(items[:half], items[half:], strict=True)]
    drawn = all(isinstance(i, Node) and len(list(parts(i))) == 1 for i in items)
    return drawn and all(a is not None and b is not None and b.centre < a.centre for a, b in pairs)


__all__ = ["no_corners", "painted_from_corner", "used_as_centres"]
