"""Predictions of one column that are compared with targets of none where a network is judged: each meets all."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import held, ids, steps
from trainwreck.code.rehearsal.questions.roles import users
from trainwreck.code.shapes.domain import Shape

ERRORS = frozenset(["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
HITS = frozenset(["eq", "ne"])
SHAPES = frozenset(["unsqueeze", "expand", "outer", "param", "buffer", "expand_as"])
"""Sides that were given an axis for all pairs, or that belong to no sample."""
GRIDS = frozenset(["arange", "linspace", "eye", "unique"])
SIZES = frozenset(["pow", "square", "abs", "abs_", "square_"])
WHOLE = frozenset(["mean", "sum", "item", "sqrt", "float"])


def errors_of_all_pairs(run: Rehearsing) -> Iterator[Answer]:
    """``mse_loss(net(x), y)`` or ``(net(x) - y).abs().mean()`` of (N, 1) and (N,), in an evaluation."""
    for node in _judging(run, ERRORS | {"sub"}):
        after = users(run).get(id(node), ())
        if node.op == "sub" and not any(u.op in SIZES and _to_one(run, u) for u in after):
            continue
        if node.place is not None:
            text = f"shapes {node.inputs[0].shape} and {node.inputs[1].shape}: each prediction meets all targets"
            yield Answer(node.place, text)
            return


def hits_of_all_pairs(run: Rehearsing) -> Iterator[Answer]:
    """``(net(x) > 0) == y`` of (N, 1) and (N,): hits of each prediction among all labels are counted."""
    for node in _judging(run, HITS):
        if node.place is not None and _to_one(run, node):
            text = (
                f"shapes {node.inputs[0].shape} and {node.inputs[1].shape}: each prediction is compared with all labels"
            )
            yield Answer(node.place, text)
            return


def _judging(run: Rehearsing, wanted: frozenset[str]) -> Iterator[Node]:
    """Comparisons outside of the graph of what learns with data, of which one has a column and the other none."""
    learned = ids(p for s in steps(run) for p in held(s))
    for node in run.nodes:
        if node.op not in wanted or node.grad or len(node.inputs) < 2:
            continue
        one, other = node.inputs[:2]
        if not isinstance(one, Node) or not isinstance(other, Node) or not _crossed(one.shape, other.shape):
            continue
        if any(n.op in SHAPES or _widened(n) for n in (one, other)) or any(n.op in GRIDS for n in ancestors(other)):
            continue
        mine, theirs = _learned(one, learned), _learned(other, learned)
        long, data = (one, other) if mine else (other, one)
        if mine != theirs and len(long.shape.dims) == 2 and len(data.shape.dims) == 1:
            yield node


def _crossed(one: Shape, other: Shape) -> bool:
    """True for (N, 1) and (N,) of the same number of samples, more than one, or both of a batch."""
    if one.open or other.open or {len(one.dims), len(other.dims)} != {1, 2}:
        return False
    long, short = (one, other) if len(one.dims) == 2 else (other, one)
    sizes = (long.dims[0], short.dims[0])
    return long.dims[1] == 1 and 1 not in sizes and sizes[0] == sizes[1]


def _widened(value: Node) -> bool:
    """``x[:, None]``: an axis for all pairs."""
    index = value.inputs[1] if value.op == "getitem" and len(value.inputs) > 1 else ()
    return index is None or (isinstance(index, tuple) and None in [i for i in index if i is None])


def _learned(value: Node, learned: set[int]) -> bool:
    return any(n.op == "param" and id(n) in learned for n in ancestors(value))


def _to_one(run: Rehearsing, node: Node) -> bool:
    """True where all of it is reduced to one number, without an axis."""
    at: list[Value] = [node]
    for _ in range(6):
        at = [u for n in at for u in users(run).get(id(n), ())]
        for user in at:
            if user.op in ("mean", "sum"):
                return not any(isinstance(i, int | tuple) for i in user.inputs[1:]) and not (
                    user.options.keys() & {"dim", "axis", "keepdim"}
                )
        at = [u for u in at if u.op in WHOLE]
    return False


__all__ = ["errors_of_all_pairs", "hits_of_all_pairs"]
