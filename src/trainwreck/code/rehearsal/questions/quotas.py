"""Means and shares over an evaluation: sums over the number of samples, or put together otherwise."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer

COUNTS = frozenset("add item sum float int long float_value counter either count_nonzero to cpu numpy detach".split())
"""What a running count goes through."""
MATCHES = frozenset(["eq", "compare"])
LENGTHS = frozenset(["len", "size", "numel", "attribute", "shape", "range"])


def turned_round(run: Rehearsing) -> Iterator[Answer]:
    """The number of samples over a sum, or times it: no mean and no share."""
    told: set[int] = set()
    for node in run.nodes:
        if node.op not in ("div", "mul") or len(node.inputs) < 2 or node.place is None or id(node.place[0]) in told:
            continue
        upper, lower = (_kind(i) for i in node.inputs[:2])
        if node.op == "div" and upper == "all" and lower in ("hits", "errors"):
            told.add(id(node.place[0]))
            yield Answer(node.place, f"the number of samples is divided by the sum of {lower}: it is upside down")
        elif node.op == "div" and (upper, lower) == ("shares", "all"):
            told.add(id(node.place[0]))
            yield Answer(node.place, "shares of batches are added and divided by the number of samples")
        elif node.op == "mul" and "all" in (upper, lower) and {"hits", "errors"} & {upper, lower}:
            told.add(id(node.place[0]))
            yield Answer(node.place, "a sum over samples is multiplied by their number: a mean divides by it")


def _kind(value: Value) -> str:
    """``hits`` for a running sum of comparisons, ``errors`` of losses, ``all`` of lengths, empty for anything else."""
    if not isinstance(value, Node) or value.op not in COUNTS | LENGTHS:
        return ""
    leaves = [n for n in ancestors(value, through=lambda n: n.op in COUNTS) if n.op not in COUNTS]
    if leaves and all(n.op in MATCHES for n in leaves):
        return "hits"
    summed = any(n.op in ("add", "counter") for n in ancestors(value, through=lambda n: n.op in COUNTS))
    if not leaves or not summed:
        return ""
    if all(_share(n) for n in leaves):
        return "shares"
    return "all" if all(n.op in LENGTHS for n in leaves) else "errors" if all(map(_error, leaves)) else ""


def _share(node: Node) -> bool:
    """True for the mean of a comparison."""
    if node.op != "mean" or not node.inputs:
        return False
    return any(n.op in MATCHES for n in ancestors(node.inputs[0], through=lambda n: n.op in COUNTS))


def _error(node: Node) -> bool:
    """True for a loss or a squared or absolute difference, also times the number of its samples."""
    if node.op == "mul" and len(node.inputs) > 1:
        return any(isinstance(i, Node) and (_error(i) or (i.op == "item" and _error_of(i))) for i in node.inputs[:2])
    if node.op in ("abs", "pow", "square"):
        inner = node.inputs[0] if node.inputs else None
        return isinstance(inner, Node) and inner.op == "sub"
    return node.op.endswith("_loss") or "cross_entropy" in node.op


def _error_of(node: Node) -> bool:
    return bool(node.inputs) and isinstance(node.inputs[0], Node) and _error(node.inputs[0])
