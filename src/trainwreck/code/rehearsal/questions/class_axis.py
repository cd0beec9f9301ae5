"""Which axis holds the classes where the sizes of two axes agree, so that nothing refuses the wrong one?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import given, losses

KEPT = frozenset(["dropout", "float", "contiguous", "log_softmax", "clone", "div", "mul", "to", "double"])
TURNS = frozenset("permute transpose movedim swapaxes swapdims mT T rearrange conv1d conv2d conv3d einsum".split())
NEAR = 14


def classes_last(run: Rehearsing) -> Iterator[Answer]:
    """A linear layer gives the scores of the classes along the last axis, and the loss reads them along the second."""
    for loss in losses(run, "cross_entropy", "nll_loss"):
        head, target = _head(given(loss, "input", 0)), given(loss, "target", 1)
        if head is None or not isinstance(target, Node) or loss.place is None:
            continue
        shape, right = head.shape, target.shape
        if shape.open or right.open or len(shape.dims) < 3 or len(right.dims) != len(shape.dims) - 1:
            continue
        sizes = (shape.dims[1], shape.dims[-1], right.dims[-1])
        if None in sizes or len(set(sizes)) != 1:
            continue
        if not any(n.op in TURNS for n in near(head.inputs[0], NEAR)):
            text = f"the scores of the classes lie along the last axis, and the loss reads the second ({sizes[0]} each)"
            yield Answer(loss.place, text, (head.place,) if head.place is not None else ())


def _head(value: Value) -> Node | None:
    """The linear layer that gives these scores, as they are."""
    for _ in range(6):
        if not isinstance(value, Node) or value.op == "linear":
            break
        value = value.inputs[0] if value.op in KEPT and value.inputs else None
    return value if isinstance(value, Node) and value.inputs else None
