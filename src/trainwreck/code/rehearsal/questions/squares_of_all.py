"""Distances that are worked out as ``|x|² - 2 x·c + |c|²``: is ``|c|²`` one number for each ``c``?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import key_of
from trainwreck.code.rehearsal.questions.roles import STRUCTURE
from trainwreck.code.rehearsal.questions.terms import terms

SQUARES = frozenset(["pow", "square", "mul"])
TURNS = frozenset(["t", "T", "mT", "transpose", "numpy_T", "permute"])


def one_square_for_all(run: Rehearsing) -> Iterator[Answer]:
    """The squares of all the vectors that are compared with are summed to a single number: it says nothing of which one
    is the nearest."""
    for node in run.nodes:
        if node.op not in ("add", "sub") or len(node.inputs) < 2 or node.place is None:
            continue
        found = terms(node)
        product = next((t.node for t in found if t.node.op in ("matmul", "mm") and t.sign < 0), None)
        if product is None or len(found) != 3 or len(product.inputs) < 2:
            continue
        goal = _bare(product.inputs[1])
        for term in found:
            outer = term.reductions[-1] if term.reductions else None
            if outer is None or outer.shape.dims or outer.shape.open or outer.place is None or term.sign < 0:
                continue
            squared = term.node if term.node.op in SQUARES else None
            if squared is not None and any(key_of(_bare(i)) == key_of(goal) for i in squared.inputs[:2]):
                text = "the squares of all vectors are summed to one number: the nearest can't be told by it"
                yield Answer(outer.place, text, (node.place,))
                return


def _bare(value: Value) -> Value:
    """A matrix before it was turned."""
    while isinstance(value, Node) and (value.op in TURNS or value.op in STRUCTURE) and value.inputs:
        value = value.inputs[0]
    return value
