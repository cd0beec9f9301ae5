"""``argsort`` says which element comes first, not which rank an element has (that is ``argsort`` of ``argsort``)."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import users

ARITHMETIC = frozenset(["add", "sub", "mul", "div", "true_divide"])
CASTS = frozenset(["float", "double", "astype", "to"])
VALUES = frozenset(["randperm", "permutation", "rand", "random", "arange", "argsort"])
"""What has no values of its own to be ranked by: an order of it is a draw, or is put back."""


def order_taken_for_rank(run: Rehearsing) -> Iterator[Answer]:
    """Numbers of elements in their order are scaled like ranks, and stand beside the elements they aren't of."""
    told: set[int] = set()
    for node in run.nodes:
        source: Value = node.inputs[0] if node.inputs else None
        if node.op != "argsort" or node.place is None or id(node.place[0]) in told or not isinstance(source, Node):
            continue
        if source.op in VALUES or node.shape.open or len(node.shape.dims) > 1:
            continue
        if _scaled(run, node):
            told.add(id(node.place[0]))
            yield Answer(node.place, "this is the order of the elements, and it is scaled as if it were their ranks")


def _scaled(run: Rehearsing, node: Node) -> bool:
    """True where all uses of the order are a cast and arithmetic with numbers: it picks nothing."""
    found = users(run).get(id(node), [])
    while found and all(u.op in CASTS for u in found):
        found = [v for u in found for v in users(run).get(id(u), ())]
    return bool(found) and all(u.op in ARITHMETIC and _with_number(u) for u in found)


def _with_number(node: Node) -> bool:
    return sum(isinstance(i, Node) and bool(i.shape.dims or i.shape.open) for i in node.inputs[:2]) == 1
