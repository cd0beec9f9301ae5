"""Scores of two things that are looked up in two tables: are they two things?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place, Value
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import key_of
from trainwreck.code.rehearsal.questions.roles import trained, users

SCORED = frozenset(
    """logsigmoid softplus sigmoid binary_cross_entropy_with_logits mse_loss add sub neg squeeze view mul div
    mean""".split()
)


def same_numbers(run: Rehearsing) -> Iterator[Answer]:
    """``(left(i) * right(i)).sum(-1)``: rows of two tables, looked up by one and the same numbers, are scored as a
    pair."""
    for node in trained(run):
        if node.op != "mul" or len(node.inputs) < 2 or node.place is None:
            continue
        one, other = node.inputs[:2]
        if not _row(one) or not _row(other) or not isinstance(one, Node) or not isinstance(other, Node):
            continue
        tables = [
            next((i for i in n.inputs[1:] if isinstance(i, Node) and i.op == "param"), None) for n in (one, other)
        ]
        if tables[0] is tables[1] or None in tables or key_of(one.inputs[0]) != key_of(other.inputs[0]):
            continue
        if any(_summed(run, u) for u in users(run).get(id(node), ())):
            text = "both rows of the pair are looked up by the same numbers: each thing is scored with itself"
            yield Answer(_given_twice(node) or node.place, text, (node.place,))
            return


def _row(value: Value) -> bool:
    return isinstance(value, Node) and value.op == "embedding" and bool(value.inputs) and value.owner is not None


def _summed(run: Rehearsing, node: Node) -> bool:
    """True where the product is summed over the features, and what comes out is a score in the loss."""
    axis = node.options.get("dim", node.options.get("axis", (*node.inputs, None)[1]))
    return node.op == "sum" and axis in (-1, 1, 2) and any(u.op in SCORED for u in users(run).get(id(node), ()))


def _given_twice(node: Node) -> Place | None:
    """The call on the way that is given one expression for two of its arguments."""
    for at, scope in reversed(node.stack):
        given = [written(a) for a in at.args] if isinstance(at, ast.Call) else []
        if len(set(given)) < len(given):
            return at, scope
    return None


__all__ = ["same_numbers"]
