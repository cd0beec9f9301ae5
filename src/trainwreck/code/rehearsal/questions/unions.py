"""Overlaps of boxes, and boxes that are turned round with their image: worked out for a few boxes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value, candidates
from trainwreck.code.rehearsal.graph import ancestors, near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.trial.bench import Array, Bench, Unknown

ROWS = ((10.0, 12.0, 20.0, 22.0), (30.0, 40.0, 41.0, 55.0), (6.0, 7.0, 18.0, 29.0))
"""Boxes by their corners, and as well by centre and size."""
FAR = ((100.0, 120.0, 130.0, 140.0), (200.0, 210.0, 230.0, 250.0), (300.0, 300.0, 310.0, 330.0))
"""Boxes that meet none of those, by their corners or by centre and size."""
FAR_BY_HALVES = ((900.0, 920.0, 10.0, 9.0), (990.0, 900.0, 12.0, 8.0), (930.0, 930.0, 7.0, 11.0))
"""The same by centre and half of the size."""

LINES = pattern(r"line|segment|wire|endpoint|points|ends$")
"""Names of lines by their two ends."""
MEETING = 0.02
"""An overlap above it is one; below it are formulas that add 1 to both areas, as FCOS does."""


def overlap_wrong(run: Rehearsing) -> Iterator[Answer]:
    """An intersection over union that is not one for a box with itself, or not zero for boxes apart."""
    told: set[int] = set()
    for node in run.nodes:
        if node.op != "div" or node.place is None or id(node.place[0]) in told or not of_intersection(node):
            continue
        told.add(id(node.place[0]))
        boxes = box_arrays(node)
        if len(boxes) != 2:
            continue
        same = worked(node, boxes, ROWS, ROWS)
        apart = worked(node, boxes, ROWS, FAR)
        if same is None or apart is None:
            continue
        if abs(same - 1).max() > 1e-3:
            text = f"the overlap of a box with itself is {float(same.reshape(-1)[0]):.3g} by this, and not 1"
            area = _other_area(node, boxes)
            yield Answer(area.place if area is not None and area.place is not None else node.place, text)
        elif abs(apart).max() > MEETING and not _by_sides(node, boxes) and not _right_by_halves(node, boxes):
            at = next((n.place for n in ancestors(node) if n.op in ("max", "maximum", "min", "minimum")), node.place)
            yield Answer(at or node.place, "boxes that lie apart overlap by this", (node.place,))


def _right_by_halves(node: Node, boxes: list[Boxes]) -> bool:
    """True where the boxes are centres and halves of their sizes: one of them is itself, and meets none far away."""
    same = worked(node, boxes, FAR_BY_HALVES, FAR_BY_HALVES)
    apart = worked(node, boxes, ROWS, FAR_BY_HALVES)
    return same is not None and apart is not None and abs(same - 1).max() < 1e-3 and abs(apart).max() < 1e-3


def _by_sides(node: Node, boxes: list[Boxes]) -> bool:
    """True where the boxes are distances from one point within both to their four sides: those never lie apart."""
    import numpy as np

    one, other = np.asarray(ROWS), np.asarray(FAR)
    meeting, first, second = ((b[:, 0] + b[:, 2]) * (b[:, 1] + b[:, 3]) for b in (np.minimum(one, other), one, other))
    true = meeting / (first + second - meeting)
    found = worked(node, boxes, ROWS, FAR)
    return found is not None and found.shape == true.shape and np.allclose(found, true, rtol=1e-3)


def of_intersection(node: Node) -> bool:
    """True for what divides a product of two lengths that are kept above zero."""
    top = node.inputs[0] if node.inputs else None
    if not isinstance(top, Node) or top.op not in ("mul", "prod", "add", "sum"):
        return False
    clamped = [n for n in ancestors(top, through=lambda n: n.shape.open or n.shape.dims[-1:] != (4,))
               if n.op in ("clamp", "clamp_min", "relu", "maximum", "clip")]  # fmt: skip
    return bool(clamped) and len(node.inputs) > 1 and isinstance(node.inputs[1], Node)


MEETS = frozenset(["max", "min", "maximum", "minimum"])
Boxes = list[Node]
"""One array of boxes: several values where branches met before it."""


def box_arrays(node: Node, behind_meeting: bool = False) -> list[Boxes]:
    """The arrays of four columns that it is computed from. ``behind_meeting``: the larger and smaller numbers of two
    such arrays, column by column, are no boxes either."""
    found: dict[tuple[int, ...], Boxes] = {}

    def through(inner: Node) -> bool:
        return inner is node or not _four_columns(inner) or (behind_meeting and inner.op in MEETS)

    for inner in ancestors(node, through=through):
        if not through(inner):
            where = (*inner.stack, inner.place) if inner.place is not None else ()
            found.setdefault(tuple(id(at[0]) for at in where) or (id(inner),), []).append(inner)
    return list(found.values())


def _four_columns(node: Node) -> bool:
    """True for boxes; not for the meeting of two, which is made of the larger and smaller of their corners."""
    if node.op in ("cat", "stack") and any(n.op in MEETS for n in near(node, 12)):
        return False
    known = [c for c in candidates(node) if isinstance(c, Node)]
    return bool(known) and all(not c.shape.open and c.shape.dims[-1:] == (4,) and len(c.shape.dims) == 2 for c in known)


def worked(node: Node, boxes: list[Boxes], first: object, second: object) -> Array | None:
    import numpy as np

    bench = Bench()
    for box, rows in zip(boxes, (first, second), strict=True):
        for one in box:
            bench.set(one, np.asarray(rows))
    try:
        found = bench.work(node)
    except Unknown:
        return None
    if found.ndim == 2 and found.shape[0] == found.shape[1]:
        found = np.diagonal(found)
    return found if found.size and np.isfinite(found).all() else None


def _other_area(node: Node, boxes: list[Boxes]) -> Node | None:
    """The area of one of the boxes, where that of the other is right and this one is not."""
    import numpy as np

    rows = np.asarray(ROWS)
    true = (rows[:, 2] - rows[:, 0]) * (rows[:, 3] - rows[:, 1])
    wrong: list[Node] = []
    right = False
    for inner in ancestors(node.inputs[1]):
        if inner.op not in ("mul", "prod"):
            continue
        behind = [b for b in boxes if any(n is one for n in ancestors(inner) for one in b)]
        if len(behind) != 1 or any(n.op in ("clamp", "relu", "max", "min") for n in ancestors(inner)):
            continue
        bench = Bench()
        for one in behind[0]:
            bench.set(one, rows)
        try:
            fits = bench.work(inner).reshape(-1)
        except Unknown:
            continue
        if fits.shape == true.shape and np.allclose(fits, true):
            right = True
        elif fits.shape == true.shape:
            wrong.append(inner)
    return wrong[0] if right and len(wrong) == 1 else None


# ---------------------------------------------------------------------- turned with the image
def turned_box_wrong(run: Rehearsing) -> Iterator[Answer]:
    """The two ends of a mirrored box are not exchanged, or it is mirrored along the other axis than its image."""
    told: set[int] = set()
    for node in run.nodes:
        if node.op not in ("stack", "cat") or node.place is None or id(node.place[0]) in told:
            continue
        told.add(id(node.place[0]))
        columns = _columns(node)
        if columns is None:
            continue
        mirrored = [at for at, (sign, _) in enumerate(columns) if sign < 0]
        for low, high in ((0, 2), (1, 3)):
            if columns[low] == (-1, low) and columns[high] == (-1, high) and _from_a_side(run, node, (low, high)):
                text = "the two ends of a mirrored box are not exchanged: its lower end lies above the upper one"
                yield Answer(node.place, text)
                return
        axes = {at % 2 for at in mirrored}
        flips = [n for n in run.nodes if n.op in ("flip", "fliplr") and n.place is not None
                 and n.place[1] is node.place[1] and abs(n.serial - node.serial) < 200]  # fmt: skip
        along = {_flipped(n) for n in flips}
        if len(axes) == 1 and len(along) == 1 and None not in along and axes != along:
            text = "the image is mirrored along one axis, and its boxes along the other"
            yield Answer(node.place, text, (flips[0].place,) if flips[0].place is not None else ())
            return


def _from_a_side(run: Rehearsing, node: Node, ends: tuple[int, int]) -> bool:
    """True where both ends are taken off a size: neither a quaternion whose axis is turned, nor the ends of a line,
    which have no order."""
    statement = run.project.statement(*node.place) if node.place is not None else None
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if any(LINES.search(written(t)) for t in targets):
        return False
    import numpy as np

    boxes = box_arrays(node)
    try:
        empty = _made(node, boxes[0], np.zeros((3, 4)))
    except (Unknown, ValueError):
        return False
    return bool(all((empty[:, end] != 0).all() for end in ends))


def _flipped(node: Node) -> int | None:
    """0 for a flip from left to right, 1 for one upside down, of an image with its sides last."""
    if node.op == "fliplr":
        return None
    rest = [i for i in (*node.inputs[1:2], *node.options.values())]
    axis: Value = rest[0] if rest else None
    axis = axis[0] if isinstance(axis, tuple) and len(axis) == 1 else axis
    return {-1: 0, -2: 1}.get(axis) if isinstance(axis, int) else None


def _columns(node: Node) -> list[tuple[int, int]] | None:
    """For each column of new boxes the sign and the column of the old ones that it is made of, with a size added."""
    boxes = box_arrays(node)
    if len(boxes) != 1:
        return None
    import numpy as np

    base = np.asarray(ROWS)
    found: list[tuple[int, int]] = []
    try:
        before = _made(node, boxes[0], base)
        for column in range(4):
            moved = base.copy()
            moved[:, column] += 1.0
            change = _made(node, boxes[0], moved) - before
            found.append((column, int(np.abs(change).sum(0).argmax())) if np.abs(change).sum() else (-1, -1))
            if change.shape != (3, 4) or (np.abs(change).sum(0) > 0).sum() != 1:
                return None
            found[-1] = (int(np.sign(change[0, found[-1][1]])), found[-1][1])
    except (Unknown, ValueError):
        return None
    columns = [(0, 0)] * 4
    for old, (sign, new) in enumerate(found):
        columns[new] = (sign, old)
    return columns if any(sign < 0 for sign, _ in columns) else None


def _made(node: Node, box: Boxes, rows: Array) -> Array:
    bench = Bench()
    for one in box:
        bench.set(one, rows)
    made: Array = bench.work(node).astype(float)
    return made
