"""Boxes by their corners or by centre and size: are output and target laid out alike wherever they are compared?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Value
from trainwreck.code.rehearsal.graph import near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import key_of
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, given
from trainwreck.core.row import Row

COORDINATES = 4
DISTANCES = frozenset(["l1_loss", "smooth_l1_loss", "mse_loss", "huber_loss"])
OVERLAPS = frozenset(
    """maximum minimum max min box_iou generalized_box_iou distance_box_iou complete_box_iou generalized_box_iou_loss
    distance_box_iou_loss complete_box_iou_loss""".split()
)
JOINED = frozenset(["stack", "cat", "concatenate", "column_stack"])
KEEPS = STRUCTURE | frozenset(["cpu", "numpy", "float", "clamp", "clip", "detach", "to"])
MAX_CHAIN = 30
Layout = tuple[int, int]
"""How often centres, and left upper corners, were made corners on the way to a value (less the way back)."""


class Met(Row):
    """A comparison of a network's boxes with given ones: how much further the one was converted than the other."""

    layer: Obj
    target: object
    apart: Layout
    node: Node
    learned: bool


def two_layouts(run: Rehearsing) -> Iterator[Answer]:
    """Boxes of one layer that the loss compares as they are and the evaluation after a change of layout, or vice versa:
    one of the two takes centres for corners."""
    met = [m for node in run.nodes if (m := _met(node)) is not None]
    told: set[int] = set()
    for one in met:
        if not one.learned or one.node.op not in DISTANCES or one.node.place is None or id(one.node.place[0]) in told:
            continue
        same = [m for m in met if m.layer is one.layer and m.target == one.target and m.node.op in OVERLAPS]
        found = Counter(m.apart for m in same)
        if len(found) == 1 and one.apart not in found:
            told.add(id(one.node.place[0]))
            text = "the loss compares boxes of one layout with boxes of another: where they overlap, one is converted"
            proof = same[0].node.place
            yield Answer(one.node.place, text, (proof,) if proof is not None else ())


def _met(node: Node) -> Met | None:
    if node.op in DISTANCES:
        pair = (given(node, "input", 0), given(node, "target", 1))
    elif node.op in OVERLAPS and len(node.inputs) > 1:
        pair = node.inputs[:2]
    else:
        return None
    sides = [read(v) for v in pair if isinstance(v, Node)]
    if len(sides) != 2 or None in sides:
        return None
    known = [s for s in sides if s is not None]
    layers = [layer_of(base) for _, base in known]
    for (mine, _), (theirs, base), layer, other in (
        (known[0], known[1], layers[0], layers[1]),
        (known[1], known[0], layers[1], layers[0]),
    ):
        if layer is not None and other is None and base.shape.dims[-1:] == (COORDINATES,):
            apart = (mine[0] - theirs[0], mine[1] - theirs[1])
            return Met(layer, _origin(base), apart, node, any(i.grad for i in pair if isinstance(i, Node)))
    return None


def layer_of(base: Node) -> Obj | None:
    """The layer that the boxes come out of."""
    found = near(base, MAX_CHAIN)
    if not any(n.op == "param" for n in near(base, 400)):
        return None
    return next(
        (n.owner for n in found if n.op in ("linear", "lazylinear", "conv2d") and isinstance(n.owner, Obj)), None
    )


def _origin(base: Node) -> object:
    """Equal for the same field of data sets of one class."""
    inner = base
    while inner.op in ("batch", "element") and inner.inputs and isinstance(inner.inputs[0], Node):
        inner = inner.inputs[0]
    return id(inner.place[0]) if inner.place is not None and inner is not base else id(base)


def read(value: Node) -> tuple[Layout, Node] | None:
    """The layout changes on the way to a value, and what they began with."""
    centres = corners = 0
    for _ in range(MAX_CHAIN):
        change = conversion(value)
        inner: Value = None
        if change is not None:
            (more, other), inner = change
            centres, corners = centres + more, corners + other
        elif value.op in JOINED:
            if _samples(value) or _made(value):
                break
            return None
        elif value.op in KEEPS or (value.op == "getitem" and len(value.inputs) > 1 and _sliced(value.inputs[1])):
            inner = value.inputs[0] if value.inputs else None
        elif value.op == "part" and value.inputs and getattr(value.inputs[0], "op", "") in ("unbind", "chunk", "split"):
            inner = value.inputs[0].inputs[0]
        if not isinstance(inner, Node):
            break
        value = inner
    return (centres, corners), value


def _samples(joined: Node) -> bool:
    """True for boxes of several samples that are put one below the other."""
    held = [n.shape.dims for n in parts(joined.inputs[:1])]
    return joined.op in ("stack", "cat", "concatenate") and bool(held) and all(d[-1:] == (COORDINATES,) for d in held)


def _made(joined: Node) -> bool:
    """True where boxes are put together for the first time: of numbers that were taken out of no other boxes, and that
    no network gave."""
    behind = near(joined, 200)[1:]
    return joined.shape.dims[-1:] == (COORDINATES,) and not any(
        n.op == "param" or n.shape.dims[-1:] == (COORDINATES,) for n in behind
    )


def _sliced(index: Value) -> bool:
    """True for a cut along axes (``[:, :2]``, ``[..., None]``) or a selection of rows by a mask."""
    items = index if isinstance(index, tuple) else (index,)
    if len(items) > 1 and isinstance(items[-1], int) and not isinstance(items[-1], bool):
        items = items[:-1]  # one coordinate
    return all(i is None or i is Ellipsis or (isinstance(i, Obj) and i.kind == "builtins.slice") for i in items)


def conversion(node: Node) -> tuple[Layout, Node] | None:
    """What a joining of computed coordinates does to the layout, and the boxes that it reads."""
    if node.op == "box_convert" and node.inputs and isinstance(node.inputs[0], Node):
        ways = {("cxcywh", "xyxy"): (1, 0), ("xyxy", "cxcywh"): (-1, 0), ("xywh", "xyxy"): (0, 1),
                ("xyxy", "xywh"): (0, -1)}  # fmt: skip
        way = ways.get((node.get("in_fmt", 1), node.get("out_fmt", 2)))
        return (way, node.inputs[0]) if way is not None else None
    listed = node.inputs[0] if node.op in JOINED and node.inputs else None
    items = list(listed.items) if isinstance(listed, Items) else list(listed) if isinstance(listed, tuple) else []
    if len(items) not in (2, COORDINATES) or not all(isinstance(i, Node) for i in items):
        return None
    first, second = items[0], items[len(items) // 2]
    layout: Layout | None = None
    if (first.op, second.op) == ("sub", "add") and _same(first.inputs, second.inputs):
        layout = (1, 0)
    elif second.op == "add" and any(key_of(first) == key_of(i) for i in second.inputs):
        layout = (0, 1)
    elif second.op == "sub" and first.op in ("div", "mul") and isinstance(middle := first.inputs[0], Node):
        if middle.op == "add" and {key_of(i) for i in middle.inputs} == {key_of(i) for i in second.inputs}:
            layout = (-1, 0)
    elif second.op == "sub" and len(second.inputs) > 1 and key_of(second.inputs[1]) == key_of(first):
        layout = (0, -1)
    base = _base(first)
    return (layout, base) if layout is not None and base is not None else None


def _same(one: tuple[Value, ...], other: tuple[Value, ...]) -> bool:
    return [key_of(i) for i in one] == [key_of(i) for i in other]


def _base(coordinate: Node) -> Node | None:
    """The boxes that a coordinate was taken from."""
    at: Value = coordinate
    for _ in range(6):
        if not isinstance(at, Node) or not at.inputs:
            return None
        if at.op in ("part", "getitem"):
            base = at.inputs[0]
            cut = isinstance(base, Node) and base.op in ("unbind", "chunk", "split", "tensor_split") and base.inputs
            found = base.inputs[0] if cut and isinstance(base, Node) else base
            return found if isinstance(found, Node) else None
        at = at.inputs[0]
    return None
