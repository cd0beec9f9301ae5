"""Targets that are shares: do they add up to one along the axis along which the scores are compared?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.axes import along
from trainwreck.code.rehearsal.questions.paths import key_of
from trainwreck.code.rehearsal.questions.roles import given, trained

PASSES = frozenset(["detach", "float", "to", "getitem", "element", "batch", "clone", "clamp", "neg", "from_numpy"])
SOFT = frozenset(["softmax", "log_softmax"])
MAX_STEPS = 8


def along_another_axis(run: Rehearsing) -> Iterator[Answer]:
    """``softmax(grades, 0)`` as the target of ``log_softmax(scores, 1)``; shares of a column beside those of a row.

    Scores that are compared along the samples are another question's."""
    told: set[int] = set()
    for node in trained(run):
        if node.op == "kl_div":
            sides = given(node, "input", 0), given(node, "target", 1)
        elif node.op == "mul" and len(node.inputs) > 1:
            sides = (node.inputs[0], node.inputs[1])
        elif node.op == "cross_entropy":
            sides = given(node, "input", 0), given(node, "target", 1)
        else:
            continue
        for output, target in (sides, sides[::-1]):
            if not isinstance(output, Node) or not output.grad or not isinstance(target, Node) or target.grad:
                continue
            asked = _compared(output) if node.op != "cross_entropy" else 1
            share = _shared(target)
            if asked in (None, 0) or share is None or share[0].place is None or id(share[0].place[0]) in told:
                continue
            if asked is not None and _differ(asked, share[1], output):
                told.add(id(share[0].place[0]))
                text = f"these targets add up to one along axis {share[1]}, and the scores are compared along {asked}"
                yield Answer(share[0].place, text, (node.place,) if node.place is not None else ())


def _compared(value: Value) -> int | None:
    """The axis of the softmax behind the scores."""
    for _ in range(MAX_STEPS):
        if not isinstance(value, Node) or not value.inputs:
            return None
        if value.op in SOFT:
            dim = along(value)
            return dim if isinstance(dim, int) and not isinstance(dim, bool) else None
        if value.op not in PASSES:
            return None
        value = value.inputs[0]
    return None


def _shared(value: Value) -> tuple[Node, int] | None:
    """What makes shares, and along which axis they add up: a softmax, or a division by a sum of the same."""
    for _ in range(MAX_STEPS):
        if not isinstance(value, Node) or not value.inputs:
            return None
        if value.op == "softmax":
            dim = along(value)
            return (value, dim) if isinstance(dim, int) and not isinstance(dim, bool) else None
        if value.op == "div" and len(value.inputs) > 1:
            total = value.inputs[1]
            same = isinstance(total, Node) and total.op == "sum" and key_of(total.inputs[0]) == key_of(value.inputs[0])
            dim = along(total) if same and isinstance(total, Node) else None
            return (value, dim) if isinstance(dim, int) and not isinstance(dim, bool) else None
        if value.op not in PASSES or (value.op == "getitem" and isinstance(value.inputs[1], tuple)):
            return None
        value = value.inputs[0]
    return None


def _differ(one: int, other: int, scores: Node) -> bool:
    """True for two axes that are surely not the same, of values with an axis for the samples at least."""
    if (one < 0) == (other < 0):
        return one != other
    axes = len(scores.shape.dims) if not scores.shape.open else 0
    if axes:
        return one % axes != other % axes
    return {one, other} == {-1, 0}


__all__ = ["along_another_axis"]
