"""Overlaps of boxes with a penalty for their distance (GIoU, DIoU, CIoU): does it pull boxes together?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node
from trainwreck.code.rehearsal.graph import near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import trained
from trainwreck.code.rehearsal.questions.unions import ROWS, Boxes, box_arrays, of_intersection, worked
from trainwreck.code.rehearsal.trial.bench import Array

CORNERS = (1.0, 1.0, 1.0, 1.0)
CENTRES = (1.0, 1.0, 0.0, 0.0)
NEAR, FAR, FURTHER = 3.0, 60.0, 600.0
"""How far a box is moved along both axes: so that it meets its old place, not any more, and far less still."""
LEAST = 0.01
"""A change that is none of rounding or of an epsilon."""
CLOSE = 30
"""Values between a score and the overlap that it is made of."""


def penalty_turned(run: Rehearsing) -> Iterator[Answer]:
    """A score that is one for a box with itself, or a loss that is zero for it, and that gets better the further two
    boxes apart are moved away from each other."""
    for node in sorted(trained(run), key=lambda n: n.serial):
        if node.op not in ("add", "sub") or node.place is None or not node.grad:
            continue
        overlap = next((n for n in near(node, CLOSE) if n.op == "div" and of_intersection(n)), None)
        boxes = box_arrays(node, True) if overlap is not None else []
        way = _layout(overlap, box_arrays(overlap, True)) if overlap is not None and len(boxes) == 2 else None
        if way is None:
            continue
        same, far, further = (_at(node, boxes, way, by) for by in (0.0, FAR, FURTHER))
        if same is None or far is None or further is None:
            continue
        score = abs(same - 1).max() < LEAST and (far > LEAST).all() and (further > far + LEAST).all()
        loss = abs(same).max() < LEAST and (further > -LEAST).all() and (further < far - LEAST).all()
        if score or loss:
            by = "rises" if score else "falls"
            text = f"this {by} the further two boxes apart are moved away from each other: the penalty's sign is wrong"
            yield Answer(node.place, text, (overlap.place,) if overlap is not None and overlap.place else ())
            return


def _layout(overlap: Node, boxes: list[Boxes]) -> tuple[float, ...] | None:
    """What moves a box in the layout that the overlap is right for: by corners, or by centre and size."""
    import numpy as np

    if len(boxes) != 2:
        return None
    rows = np.asarray(ROWS)
    for way, wide in ((CORNERS, rows[:, 2:] - rows[:, :2]), (CENTRES, rows[:, 2:])):
        meeting = (wide - NEAR).prod(1)
        true = meeting / (2 * wide.prod(1) - meeting)
        found = _at(overlap, boxes, way, NEAR)
        if (
            found is not None
            and found.reshape(-1).shape == true.shape
            and np.allclose(found.reshape(-1), true, atol=LEAST)
        ):
            return way
    return None


def _at(node: Node, boxes: list[Boxes], way: tuple[float, ...], by: float) -> Array | None:
    """What comes out for boxes and the same ones moved."""
    import numpy as np

    rows = np.asarray(ROWS)
    return worked(node, boxes, rows, rows + by * np.asarray(way))


__all__ = ["penalty_turned"]
