"""Norms written by hand: the axis that the size is taken over, and the one that the gain belongs to."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.axes import along
from trainwreck.code.rehearsal.questions.roles import trained

SPREADS = frozenset(["mean", "var", "std", "norm", "sum", "var_mean"])
OVER_FEATURES = pattern(r"rms|layer_?norm|scale_?norm", 2)
"""Names of norms over the features of each token."""


def other_axis(run: Rehearsing) -> Iterator[Answer]:
    """A size that is taken over another axis than the features that the gain is for.

    Not said of norms over the batch or over time, which take the mean off as well and are named otherwise."""
    told: set[int] = set()
    for node in trained(run):
        if node.op not in SPREADS or node.place is None or id(node.place[0]) in told or not node.inputs:
            continue
        given, axis = node.inputs[0], along(node)
        if not isinstance(given, Node) or not isinstance(axis, int) or isinstance(axis, bool):
            continue
        count = _rank(given)
        at = axis if axis >= 0 or count is None else axis + count
        owner = node.place[1].owner
        named = OVER_FEATURES.search(owner.name if owner is not None else node.place[1].name)
        if not named or axis == -1 or count is None or count < 2 or at == count - 1 or not _divides(run, node):
            continue
        told.add(id(node.place[0]))
        yield Answer(node.place, f"this norm is taken over axis {at}, and its features lie along the last of {count}")


def _rank(node: Node) -> int | None:
    for value in ancestors(node):
        if not value.shape.open:
            return len(value.shape.dims)
        if value.op not in ("pow", "square", "mul", "sub", "abs", "float", "to"):
            return None
    return None


def _divides(run: Rehearsing, size: Node) -> bool:
    """True where what is normalised is divided by the size, and a gain of one axis is multiplied on."""
    gains = [
        n
        for n in trained(run)
        if n.op == "mul"
        and any(
            isinstance(i, Node)
            and i.op == "param"
            and not i.shape.open
            and len(i.shape.dims) == 1
            and i.shape.dims[0] != 1  # one gain for all features
            for i in n.inputs[:2]
        )
    ]
    return any(any(a is size for a in ancestors(gain, through=_near)) for gain in gains)


NEAR = frozenset("mul div rsqrt sqrt add clamp clamp_min sub pow reciprocal type_as to float".split())


def _near(node: Node) -> bool:
    return node.op in NEAR
