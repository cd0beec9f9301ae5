"""What a reward is made of: what it costs to leave a reference, taken off for each answer."""

from __future__ import annotations

from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import near, parts
from trainwreck.code.rehearsal.questions.roles import STRUCTURE
from trainwreck.code.rehearsal.questions.terms import number_of
from trainwreck.core.row import Row

LIKELIHOODS = frozenset(["log_prob", "log_softmax", "cross_entropy", "gather", "logsigmoid"])
MAX_CHAIN = 6


class Leash(Row):
    """``weight * (first - second)`` of log-probabilities."""

    weight: float
    first: Node
    second: Node


def leash(value: Value) -> Leash | None:
    """A difference of log-probabilities times a number: the divergence from a reference, in a reward."""
    node, weight = next(iter(parts(value)), None), 1.0
    for _ in range(MAX_CHAIN):
        if node is None:
            return None
        if node.op == "sub" and len(node.inputs) > 1:
            first, second = node.inputs[:2]
            logs = all(any(n.op in LIKELIHOODS for n in near(i, 6)) for i in (first, second))
            return (
                Leash(weight, first, second) if logs and isinstance(first, Node) and isinstance(second, Node) else None
            )
        if node.op == "mul" and len(node.inputs) > 1:
            number = next((n for i in node.inputs if (n := number_of(i)) is not None), None)
            if number is None:
                return None
            weight, node = weight * number, next((n for i in node.inputs for n in parts(i)), None)
        elif node.op in STRUCTURE or node.op in ("sum", "mean", "clamp"):
            node = next(iter(parts(node.inputs[:1])), None)
        else:
            return None
    return None


__all__ = ["Leash", "leash"]
