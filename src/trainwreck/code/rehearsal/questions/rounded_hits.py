"""Real numbers that are rounded and held against real numbers: whether they are equal says nothing."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import STRUCTURE

WHOLE = frozenset(["round", "floor", "ceil", "long", "int", "trunc", "rint"])
DRAWN = frozenset(["randn", "rand", "normal", "uniform", "standard_normal", "random", "gamma", "exponential"])
KEEPS = STRUCTURE | frozenset(
    """batch element float double to numpy cpu astype from_numpy tensor as_tensor asarray array log exp tanh sin cos
    sqrt abs""".split()
)
MAX_DEPTH = 30


def rounded_hits(run: Rehearsing) -> Iterator[Answer]:
    """``net(x).round() == y`` where ``y`` is drawn from all real numbers: never equal, however good the network."""
    for node in run.nodes:
        if node.op != "eq" or node.grad or len(node.inputs) < 2 or node.place is None:
            continue
        for one, other in (node.inputs[:2], node.inputs[1::-1]):
            told = isinstance(one, Node) and one.op in WHOLE and any(n.op == "param" for n in ancestors(one))
            if told and _real(other, 0):
                text = "a rounded output is held against real numbers: they are equal by chance at most"
                yield Answer(node.place, text)
                return


def _real(value: Value, depth: int) -> bool:
    """True for numbers that are surely not whole: something drawn from an interval is added to them."""
    if not isinstance(value, Node) or depth > MAX_DEPTH:
        return False
    if value.op in DRAWN:
        return True
    first = value.inputs[0] if value.inputs else None
    if value.op in ("add", "sub"):
        return any(_real(i, depth + 1) for i in value.inputs[:2])
    if value.op in ("mul", "div"):
        return _real(first, depth + 1) or (value.op == "mul" and _real(value.inputs[1], depth + 1))
    if value.op in ("matmul", "sum", "mean"):
        return _real(first, depth + 1)
    return value.op in KEEPS and _real(first, depth + 1)


__all__ = ["rounded_hits"]
