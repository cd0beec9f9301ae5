"""Boxes as a network learns them and as they are decoded: does what is learned perfectly come out where it belongs?

Both ways are worked out with boxes of ours: what the loss compares the outputs with (``log(w / stride)``) is put in the
place of the outputs in the evaluation, and what is decoded there is held against the same boxes, as the evaluation
converts them. Where the two are apart, and would be one if the loss had been given the boxes in another layout, the
loss reads them in the wrong one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.boxes import COORDINATES, DISTANCES, OVERLAPS, conversion
from trainwreck.code.rehearsal.questions.coordinates import spread
from trainwreck.code.rehearsal.questions.paths import key_of
from trainwreck.code.rehearsal.questions.roles import JOINS, RAW, STRUCTURE, core, given, learns, trained
from trainwreck.code.rehearsal.trial.bench import Array, Bench, Unknown
from trainwreck.core.row import Row

ROWS = 8
EXACT, APART = 1e-3, 0.05
"""Largest distance of a decoded box from the given one, in sizes of the box: rounding, and what no rounding gives."""
MOST_CELLS = 1024
LAYOUTS = ("xywh", "cxcywh", "xyxy")
DECLARED = {(0, 1): "xywh", (1, 0): "cxcywh"}
PASSES = STRUCTURE | frozenset(["batch", "element", "astype", "float", "cpu", "numpy", "to", "array", "asarray"])
MAX_CHAIN = 30


class Learned(Row):
    """An output of the network, and what the loss compares it with."""

    output: Node
    target: Node
    loss: Node


class Rows(Row):
    """Where annotations are taken whole: the value, and the place where their array comes from."""

    value: Node
    root: object


def read_in_another_layout(run: Rehearsing) -> Iterator[Answer]:
    learned = [pair for node in trained(run) if (pair := _learned(node)) is not None]
    for node in run.nodes if learned else ():
        if node.op not in OVERLAPS or node.grad or len(node.inputs) < 2:
            continue
        sides = [_boxes(i) for i in node.inputs[:2]]
        if sides[0] is None or sides[1] is None or learns(sides[0]) == learns(sides[1]):
            continue
        told, truth = (sides[0], sides[1]) if learns(sides[0]) else (sides[1], sides[0])
        with suppress(Unknown):
            found = _trip(told, truth, learned)
            if found is not None:
                place, layout, read = found
                text = f"the boxes are {layout}, and what the network learns of them reads them as {read}"
                yield Answer(place, text, (node.place,) if node.place is not None else ())
                return


def _learned(node: Node) -> Learned | None:
    if node.op not in DISTANCES and node.op != "sub":
        return None
    one, other = given(node, "input", 0), given(node, "target", 1)
    if not isinstance(one, Node) or not isinstance(other, Node) or one.grad == other.grad:
        return None
    output, target = (one, other) if one.grad else (other, one)
    return Learned(output, target, node) if not learns(target) else None


def _boxes(side: Value) -> Node | None:
    """The four columns that a coordinate or two were taken from."""
    for _ in range(8):
        if not isinstance(side, Node) or side.shape.dims[-1:] == (COORDINATES,):
            break
        side = side.inputs[0] if side.op in STRUCTURE | {"part"} and side.inputs else None
    return side if isinstance(side, Node) else None


def _trip(told: Node, truth: Node, learned: list[Learned]) -> tuple[Place, str, str] | None:
    layout, base = _layout(truth)
    here = _rows(base)
    if layout is None or here is None:
        return None
    first = _first_column(base, here.value)
    pairs = [(n, pair) for pair in learned for n in _places(told, pair)]
    entries = {id(pair.target): _rows(pair.target) for _, pair in pairs}
    known = [e for e in entries.values() if e is not None]
    if first is None or not pairs or len(known) < len(entries) or any(e.root != here.root for e in known):
        return None
    for size in (_extent(told), 1.0, 100.0):
        if size is None:
            continue
        boxes = _sample(size)
        width = here.value.shape.dims[-1]
        if width is None or width < first + COORDINATES:
            return None

        def apart(read: str, boxes: Array = boxes, width: int = width) -> float:
            rows = _annotated(_as(boxes, read), width, first)
            outputs = [(n, _worked(pair.target, entries[id(pair.target)], rows)) for n, pair in pairs]
            return _distance(told, truth, outputs, here, _annotated(_as(boxes, layout), width, first), boxes)

        if apart(layout) < APART:
            return None
        right = [r for r in LAYOUTS if r != layout and apart(r) < EXACT]
        if len(right) == 1:
            place = _taken(pairs[0][1].target, known[0].value, truth)
            return (place, layout, right[0]) if place is not None else None
    return None


def _layout(truth: Node) -> tuple[str | None, Node]:
    """The layout that the evaluation takes the given boxes for, and the boxes before they are converted."""
    at = truth
    for _ in range(MAX_CHAIN):
        change = conversion(at)
        if change is not None:
            return DECLARED.get(change[0]), change[1]
        if at.op not in PASSES or not at.inputs or not isinstance(at.inputs[0], Node) or _is_rows(at):
            break
        at = at.inputs[0]
    return ("xyxy" if _by_corners(at) else None), at


def _by_corners(value: Node) -> bool:
    """True where the data are put together as ``[x, y, x + w, y + h]``."""
    at: Value = value
    for _ in range(MAX_CHAIN):
        node = next(iter(parts(at)), None)
        if node is None:
            return False
        held = node.inputs[1] if node.op == "setitem" and len(node.inputs) > 1 else (*node.inputs, None)[0]
        items = _listed(held)
        while items and _listed(items[0]):
            items = _listed(items[0])  # row by row
        if len(items) >= COORDINATES and node.op in JOINS | {"array", "asarray", "tensor", "setitem", "column_stack"}:
            ends = [i for i in items[2:COORDINATES] if isinstance(i, Node) and i.op == "add"]
            return len(ends) == 2 and all(
                key_of(start) in {key_of(i) for i in end.inputs[:2]} for start, end in zip(items[:2], ends, strict=True)
            )
        if node.op not in PASSES | JOINS | {"setitem"}:
            return False
        at = held
    return False


def _listed(value: Value) -> list[Value]:
    return list(value.items) if isinstance(value, Items) else list(value) if isinstance(value, tuple) else []


def _is_rows(node: Node) -> bool:
    """True for a selection of whole rows of an array with at least four columns."""
    first = node.inputs[0] if node.inputs else None
    width = node.shape.dims[-1] if node.shape.dims and not node.shape.open else None
    if width is None or width < COORDINATES or node.op not in PASSES or not isinstance(first, Node):
        return False
    return node.op != "getitem" or first.shape.dims[-1:] == node.shape.dims[-1:]


def _rows(value: Value) -> Rows | None:
    """The first on the way back from which on whole rows are only moved and selected, and where their array is made."""
    for node in ancestors(value):
        at, moved = node, False
        for _ in range(MAX_CHAIN):
            if not _is_rows(at) or not isinstance(at.inputs[0], Node):
                break
            at, moved = at.inputs[0], True
        if moved and at.shape.dims[-1:] == node.shape.dims[-1:] and at.place is not None and not learns(at):
            return Rows(node, id(at.place[0]))
    return None


def _first_column(base: Node, rows: Node) -> int | None:
    """At which column of the annotations the boxes begin."""
    if base is rows:
        return 0
    at, first = base, 0
    for _ in range(MAX_CHAIN):
        if at is rows:
            return first
        inner = at.inputs[0] if at.inputs else None
        if not isinstance(inner, Node) or at.op not in PASSES:
            return None
        if at.op == "getitem":
            items = spread(at.inputs[1], len(inner.shape.dims)) if not inner.shape.open else None
            start = getattr(items[-1], "args", (None,))[0] if items else None
            if items is None or not (start is None or isinstance(start, int)):
                return None
            first += start or 0
        at = inner
    return None


def _places(told: Node, pair: Learned) -> list[Node]:
    """Where the evaluation takes the output that the loss compares: the same layer, as many columns, the same ones."""
    mine = core(pair.output)
    if len(mine) != 1:
        return []
    for node in ancestors(told, through=lambda n: n.op not in RAW and n.op != "param"):
        its = core(node) if node.shape.dims[-1:] == pair.output.shape.dims[-1:] else []
        if len(its) != 1 or len(node.shape.dims) != len(pair.output.shape.dims) or its[0].op != mine[0].op:
            continue
        same_layer = its[0].owner is not None and its[0].owner is mine[0].owner
        same_line = its[0].place is not None and mine[0].place is not None and its[0].place[0] is mine[0].place[0]
        if (same_layer or same_line) and _columns(node) == _columns(pair.output):
            return [node]
    return []


def _columns(node: Node) -> object:
    first = node.inputs[0] if node.inputs else None
    if node.op != "getitem" or not isinstance(first, Node) or first.shape.dims[-1:] == node.shape.dims[-1:]:
        return None
    items = node.inputs[1] if isinstance(node.inputs[1], tuple) else (node.inputs[1],)
    return key_of(items[-1]) if len(first.shape.dims) == len(node.shape.dims) else None


def _extent(told: Node) -> float | None:
    """How wide the pictures are that the boxes lie on."""
    for node in ancestors(told):
        if node.op == "conv2d" and not any(n.op == "param" for n in ancestors(node.inputs[0])):
            width = node.inputs[0].shape.dims[-1] if node.inputs[0].shape.dims else None
            return float(width) if isinstance(width, int) else None
    return None


def _sample(size: float) -> Array:
    """Boxes by centre and size that lie well inside a picture."""
    import numpy as np

    random = np.random.default_rng(5)
    sizes = random.uniform(0.15, 0.35, (ROWS, 2))
    return np.concatenate([random.uniform(0.3, 0.55, (ROWS, 2)), sizes], axis=1) * size


def _as(boxes: Array, layout: str) -> Array:
    import numpy as np

    centres, sizes = boxes[:, :2], boxes[:, 2:]
    if layout == "cxcywh":
        return boxes
    start = centres - sizes / 2
    return np.concatenate([start, sizes if layout == "xywh" else start + sizes], axis=1)


def _annotated(boxes: Array, width: int, first: int) -> Array:
    import numpy as np

    rows = np.zeros((len(boxes), width))
    rows[:, first : first + COORDINATES] = boxes
    return rows


def _worked(target: Node, entry: Rows | None, rows: Array) -> Array:
    """What the loss would compare the outputs with."""
    import numpy as np

    assert entry is not None
    if len(entry.value.shape.dims) > 1:
        bench = Bench()
        bench.set(entry.value, rows)
        return bench.work(target).astype(float)
    inner = target
    while inner.op in ("batch", "element") and inner.inputs and isinstance(inner.inputs[0], Node):
        inner = inner.inputs[0]
    found = []
    for row in rows:
        bench = Bench()
        bench.set(entry.value, row)
        found.append(bench.work(inner).astype(float))
    return np.stack(found)


def _distance(
    told: Node, truth: Node, outputs: list[tuple[Node, Array]], here: Rows, rows: Array, boxes: Array
) -> float:
    """The largest distance of a decoded box from the given one; of several cells that may be chosen the best counts."""
    import numpy as np

    inside = [n for n in ancestors(told, through=lambda n: all(n is not o for o, _ in outputs)) if n.op == "argmax"]
    cells = {n.inputs[0].shape.dims[-1] for n in inside if n.inputs[0].shape.dims and not n.inputs[0].shape.open}
    if len(inside) > 1 or (inside and len(cells) != 1):
        raise Unknown
    count = cells.pop() if inside else 1
    if not isinstance(count, int) or count > MOST_CELLS:
        raise Unknown
    bench = Bench()
    bench.set(here.value, rows)
    wanted = bench.work(truth).astype(float)
    best = np.full(len(rows), np.inf)
    for cell in range(count):
        bench = Bench()
        for node, array in outputs:
            bench.set(node, array)
        for node in inside:
            bench.set(node, np.full(len(rows), cell))
        found = bench.work(told).astype(float)
        if found.shape != wanted.shape:
            raise Unknown
        best = np.minimum(best, np.abs(found - wanted).max(axis=1) / boxes[:, 2:].min(axis=1))
    return float(best.max())


def _taken(target: Node, rows: Node, truth: Node) -> Place | None:
    """Where the loss takes its columns from the annotations: where a function is given them, in that function, unless
    it is one that only converts boxes or that the evaluation uses as well."""
    inside = list(ancestors(target, through=lambda n: n is not rows))
    taken = rows
    for _ in range(MAX_CHAIN):
        users = [n for n in inside if any(i is taken for i in n.inputs) and n.place is not None]
        if not users:
            return None
        taken = min(users, key=lambda n: n.serial)
        behind = [n for n in inside if any(i is taken for i in n.inputs) and n.place is not None]
        whole = taken.shape.dims[-1:] == (COORDINATES,) and taken.op in PASSES and taken.place is not None
        if not whole or any(n.place[1] is taken.place[1] for n in behind if n.place is not None and taken.place):
            break
    shared = {id(n.place[0]) for n in ancestors(truth) if n.place is not None}
    helpers = {id(n.place[1]) for n in inside if n.place is not None and conversion(n) is not None}
    if taken.place is not None and taken.stack and (id(taken.place[0]) in shared or id(taken.place[1]) in helpers):
        return taken.stack[-1]
    return taken.place
