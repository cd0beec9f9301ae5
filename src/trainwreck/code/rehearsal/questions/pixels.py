"""One class for each pixel or frame: along which axis the classes lie, and labels that stand for no class."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.axes import along
from trainwreck.code.rehearsal.questions.classes import DEFAULT, KEEPS
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, core, given, losses, trained

CONVOLUTIONS = frozenset(["conv1d", "conv2d", "conv3d", "convtranspose1d", "convtranspose2d", "convtranspose3d"])
SOFT = frozenset(["softmax", "log_softmax"])
WALK = 200


def other_axis(run: Rehearsing) -> Iterator[Answer]:
    """Scores of a convolution whose classes the loss takes from axis 1, and a softmax over another axis."""
    classified = {id(n.owner): loss for loss in losses(run, "cross_entropy") for n in _scores(loss)}
    for node in trained(run):
        if node.op not in SOFT or node.place is None or not node.inputs:
            continue
        made = [n for n in core(node.inputs[0]) if n.op in CONVOLUTIONS and n.owner is not None]
        axis, shape = along(node), getattr(node.inputs[0], "shape", None)
        if len(made) != 1 or id(made[0].owner) not in classified or not isinstance(axis, int) or shape is None:
            continue
        at = shape.axis(axis)
        if at not in (None, 1) and len(shape.dims) >= 3 and shape.dims == made[0].shape.dims:
            loss = classified[id(made[0].owner)]
            text = f"the loss takes the classes from axis 1, and this softmax runs over axis {at}"
            yield Answer(node.place, text, (loss.place,) if loss.place is not None else ())
            return


def _scores(loss: Node) -> list[Node]:
    """The convolution whose outputs a cross entropy takes as they are."""
    made = core(given(loss, "input", 0))
    scores = given(loss, "input", 0)
    kept = isinstance(scores, Node) and len(made) == 1 and made[0].shape.dims == scores.shape.dims
    return made if kept and made[0].op in CONVOLUTIONS and len(made[0].shape.dims) >= 3 else []


def not_ignored(run: Rehearsing) -> Iterator[Answer]:
    """A number is written into the labels that is no class, and the loss does not pass over it."""
    for loss in losses(run, "cross_entropy", "nll_loss"):
        scores, labels = given(loss, "input", 0), given(loss, "target", 1)
        if not isinstance(scores, Node) or not isinstance(labels, Node) or loss.place is None:
            continue
        count = scores.shape.dims[1] if not scores.shape.open and len(scores.shape.dims) >= 3 else None
        if not isinstance(count, int) or count < 2:
            continue
        ignored = loss.owner.options.get("ignore_index", DEFAULT) if loss.owner is not None else DEFAULT
        ignored = loss.options.get("ignore_index", ignored)
        for number, where in written(labels):
            if (number < 0 or number >= count) and isinstance(ignored, int) and number != ignored:
                text = f"the label {number} stands for no class, and the loss passes over {ignored} only"
                yield Answer(loss.place, text, (where.place,) if where.place is not None else ())
                return


def written(labels: Value) -> Iterator[tuple[int, Node]]:
    """The whole numbers that are written into labels by a mask, or chosen by one, and where; less those replaced."""
    queue, seen, gone = list(parts(labels)), set[int](), set[int]()
    while queue and len(seen) < WALK:
        node = queue.pop(0)
        if id(node) in seen:
            continue
        seen.add(id(node))
        inputs, place = node.inputs, PUT.get(node.op, 0)
        if place and len(inputs) > 1:
            kept = inputs[1:3] if node.op == "where" else inputs[: place + 1]
            numbers = inputs[1:3] if node.op == "where" else inputs[place : place + 1]
            numbers = tuple(i.inputs[0] if isinstance(i, Node) and i.op in SINGLE and i.inputs else i for i in numbers)
            yield from ((i, node) for i in numbers if type(i) is int and i not in gone)
            gone |= _replaced(inputs[2] if node.op == "setitem" else inputs[0 if node.op == "where" else 1])
            queue += [n for i in kept for n in parts(i)]
        elif node.op in ("either", "batch"):
            queue += [n for i in inputs for n in parts(i)]
        elif node.op in KEEPS or node.op in STRUCTURE or node.op in ("stack", "copy", "clone"):
            queue += list(parts(inputs[:1]))


SINGLE = frozenset(["tensor", "as_tensor", "int64"])
"""What makes an array of one number."""
PUT = {"setitem": 1, "masked_fill": 2, "where": 1}
"""Where the operations hold what they write."""


def _replaced(mask: Value) -> set[int]:
    """The numbers that a mask looks for: what is written there stands in their place."""
    tests = [n for n in near(mask, 8) if n.op in ("eq", "ne", "ge", "gt", "lt", "le")]
    return {i for n in tests for i in n.inputs if type(i) is int}
