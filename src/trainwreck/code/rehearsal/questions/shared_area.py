"""Soft overlaps of a predicted and a given mask (Dice, Jaccard, Tversky): are they overlaps of shares?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node
from trainwreck.code.rehearsal.graph import ancestors, near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, bounds
from trainwreck.code.rehearsal.questions.terms import losses_of
from trainwreck.core.row import Row

NEAR = 40
ALONE = STRUCTURE | {"pow", "square", "float"}
LAYERS = frozenset(["linear", "conv1d", "conv2d", "conv3d", "conv_transpose2d", "conv_transpose3d"])


class Overlap(Row):
    """``2 * (p * t).sum() / (p.sum() + t.sum())``: the quotient, and the predicted side."""

    ratio: Node
    predicted: Node


def overlap_of_scores(run: Rehearsing) -> Iterator[Answer]:
    """An overlap of raw scores, which are neither between zero and one nor above zero, with a mask."""
    for _, found in losses_of(run):
        for term in found:
            overlap = overlap_of(term.node)
            if overlap is None:
                continue
            raw = overlap.predicted
            while raw.op in STRUCTURE | {"float", "mul"} and raw.inputs and isinstance(raw.inputs[0], Node):
                raw = raw.inputs[0]
            if raw.op in LAYERS and raw.grad and bounds(overlap.predicted).low < 0 and overlap.ratio.place is not None:
                text = "this overlap is worked out of raw scores: it means something for shares between zero and one"
                place = overlap.ratio.place if overlap.predicted is raw else overlap.predicted.place
                yield Answer(place or overlap.ratio.place, text, (overlap.ratio.place,))
                return


def overlap_of(node: Node) -> Overlap | None:
    if node.op != "div" or len(node.inputs) < 2 or not all(isinstance(i, Node) for i in node.inputs[:2]):
        return None
    above, below = node.inputs[:2]
    if not isinstance(above, Node) or not isinstance(below, Node):
        return None
    for shared in near(above, NEAR):
        sides = [i for i in shared.inputs[:2] if isinstance(i, Node)]
        if shared.op != "mul" or len(sides) != 2 or sides[0].grad == sides[1].grad or not _summed(above, shared):
            continue
        predicted, given = sides if sides[0].grad else sides[::-1]
        if _holds(below, predicted) and _holds(below, given):
            return Overlap(node, predicted)
    return None


def _summed(above: Node, shared: Node) -> bool:
    return any(n.op == "sum" and any(i is shared for i in ancestors(n.inputs[:1])) for n in near(above, NEAR))


def _holds(below: Node, side: Node) -> bool:
    """True where the sum of a side alone is part of what is divided by, and it is no length."""
    found = near(below, NEAR)
    if any(n.op in ("norm", "sqrt", "rsqrt") for n in found):
        return False
    for total in (n for n in found if n.op == "sum"):
        inner = total.inputs[0] if total.inputs else None
        while isinstance(inner, Node) and inner is not side and inner.op in ALONE and inner.inputs:
            inner = inner.inputs[0]
        if inner is side:
            return True
    return False


__all__ = ["overlap_of", "overlap_of_scores"]
