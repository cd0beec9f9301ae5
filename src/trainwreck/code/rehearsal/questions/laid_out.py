"""Samples of several classes laid out in one row: one class after the other, or in turns? And their labels?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import JOINS, given, losses

SAME = frozenset(
    "to long int cuda cpu clone detach contiguous tensor as_tensor from_numpy astype numpy array asarray type".split()
)
MERGES = frozenset(["flatten", "reshape", "view", "ravel"])
PAIR = 2


class Layout(NamedTuple):
    """``blocks``: all samples of a class behind each other. Otherwise one of each class, again and again."""

    blocks: bool
    classes: int
    each: int
    node: Node


def laid_out_otherwise(run: Rehearsing) -> Iterator[Answer]:
    """``x`` of (classes, samples, ...) is flattened class by class, and the labels are ``arange(classes).repeat(n)``.

    The sizes tell which axis is that of the classes: said only where the two differ."""
    for loss in losses(run, "cross_entropy", "nll_loss"):
        scores, target = given(loss, "input", 0), given(loss, "target", 1)
        labels = _of_labels(target)
        if labels is None or labels.node.place is None or not isinstance(scores, Node):
            continue
        merges = list(_merges(scores, labels))
        if not merges or any(blocks == labels.blocks for blocks, _ in merges):
            continue
        if labels.blocks:
            text = "these labels stand class by class, and the samples one of each class again and again"
        else:
            text = "these labels stand one of each class again and again, and the samples class by class"
        yield Answer(labels.node.place, text, tuple(n.place for _, n in merges[:1] if n.place is not None))
        return


def _of_labels(value: Value) -> Layout | None:
    """Of numbers ``0..classes`` that were repeated."""
    node = _bare(value)
    if node is None or not node.inputs:
        return None
    if node.op in MERGES and len(node.shape.dims) == 1 and isinstance(node.inputs[0], Node):
        return _of_a_table(node, node.inputs[0])
    classes, total = _counted(node.inputs[0]), node.shape.dim(0)
    if classes is None or node.shape.open or len(node.shape.dims) != 1 or total is None or total % classes:
        return None
    by_numpy = node.full.startswith("numpy.")
    blocks = {"repeat_interleave": True, "repeat": by_numpy, "tile": False}.get(node.op)
    return _layout(blocks, classes, total // classes, node) if blocks is not None else None


def _of_a_table(node: Node, table: Node) -> Layout | None:
    """Numbers along one axis of a table that is flattened, and repeated along the other."""
    at: Node | None = table
    while at is not None and at.op in ("expand", "repeat", "tile", "expand_as", "broadcast_to") and at.inputs:
        inner = at.inputs[0]
        if not isinstance(inner, Node) or inner.shape.open or at.shape.open or len(at.shape.dims) != PAIR:
            return None
        if inner.op in ("getitem", "unsqueeze", "view", "reshape") and inner.inputs:
            classes, upright = _counted(inner.inputs[0]), inner.shape.dims[-1] == 1
        else:
            classes, upright = _counted(inner), False
        rows, columns = at.shape.dims
        if classes is None or rows is None or columns is None or (rows if upright else columns) != classes:
            return None
        return _layout(upright, classes, columns if upright else rows, node)
    return None


def _layout(blocks: bool, classes: int, each: int, node: Node) -> Layout | None:
    return Layout(blocks, classes, each, node) if min(classes, each) > 1 and classes != each else None


def _bare(value: Value) -> Node | None:
    while isinstance(value, Node) and value.op in SAME and value.inputs:
        value = value.inputs[0]
    return value if isinstance(value, Node) else None


def _counted(value: Value) -> int | None:
    """How many there are of the numbers from 0 on."""
    node = _bare(value)
    if node is None or node.op != "arange" or node.shape.open or len(node.shape.dims) != 1:
        return None
    ends = node.inputs[: len(node.inputs) - len(node.options)]
    return node.shape.dims[0] if len(ends) == 1 or ends[:1] == (0,) else None


def _merges(scores: Node, labels: Layout) -> Iterator[tuple[bool, Node]]:
    """Where the rows of the scores were made of an axis of classes and one of samples; True where class by class."""
    total, pair = labels.classes * labels.each, (labels.classes, labels.each)

    def rows(node: Node) -> bool:
        return not node.shape.open and node.shape.dims[:1] == (total,) and node.op != "param"

    for node in ancestors(scores, through=lambda n: rows(n) and not _merged(n, pair)):
        if rows(node) and (found := _merged(node, pair)) is not None:
            yield found == pair, node


def _merged(node: Node, pair: tuple[int, int]) -> tuple[int, int] | None:
    """The two axes that became one here, if they are of these sizes."""
    if node.op in JOINS and node.op != "stack":
        return _behind_each_other(node, pair)
    inner = node.inputs[0] if node.op in MERGES and node.inputs else None
    if not isinstance(inner, Node) or inner.shape.open or len(inner.shape.dims) != len(node.shape.dims) + 1:
        return None
    one, other = (*inner.shape.dims, None, None)[:PAIR]
    return (one, other) if one is not None and other is not None and {one, other} == set(pair) else None


def _behind_each_other(node: Node, pair: tuple[int, int]) -> tuple[int, int] | None:
    """Of a list of classes with equally many samples each, that are put one behind the other along the first axis."""
    listed = node.inputs[0] if node.inputs else None
    axis = node.options.get("dim", node.options.get("axis", (*node.inputs, 0)[1]))
    if not isinstance(listed, Items) or not listed.items or (axis != 0 and node.op != "vstack"):
        return None
    count = listed.length if listed.more else len(listed.items)
    rows = {
        i.shape.dims[0] if isinstance(i, Node) and not i.shape.open and i.shape.dims else None for i in listed.items
    }
    each = rows.pop() if len(rows) == 1 else None
    return (count, each) if count is not None and each is not None and {count, each} == set(pair) else None
