"""Infinity times zero: a mask of zeros and ones that is multiplied by an infinite number is NaN where it is zero."""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, users

TESTS = frozenset(
    """eq ne lt gt le ge and or not invert logical_and logical_or logical_not logical_xor isnan isinf isin isfinite
    bernoulli one_hot eye tril triu diag_embed zeros zeros_like new_zeros bitwise_and bitwise_or bitwise_not
    generate_square_subsequent_mask""".split()
)
"""What gives zeros (and ones)."""
CLEANS = frozenset(["nan_to_num", "nan_to_num_", "where", "masked_fill", "nansum", "nanmean"])
SAFE = frozenset(["tril", "triu"])


def times_zero(run: Rehearsing) -> Iterator[Answer]:
    """A product of something infinite and a mask that holds zeros."""
    told: set[int] = set()
    for node in run.nodes:
        if node.op != "mul" or len(node.inputs) < 2 or node.place is None or id(node.place[0]) in told:
            continue
        one, other = node.inputs[:2]
        if not ((_infinite(one) and _zeros(other)) or (_infinite(other) and _zeros(one))):
            continue
        following = users(run).get(id(node), [])
        if following and all(u.op in CLEANS for u in following):
            continue
        told.add(id(node.place[0]))
        yield Answer(node.place, "0 times infinity is NaN: every element that the mask leaves alone becomes NaN here")


def _infinite(value: Value, depth: int = 0) -> bool:
    """True where elements are infinite."""
    if isinstance(value, float):
        return math.isinf(value)
    if not isinstance(value, Node) or depth > 8:
        return False
    first = value.inputs[0] if value.inputs else None
    if value.op in ("full", "full_like", "new_full", "masked_fill"):
        return any(isinstance(i, float) and math.isinf(i) for i in (*value.inputs[1:], *value.options.values()))
    if value.op == "fill" and len(value.inputs) > 1:
        return _infinite(value.inputs[1], depth + 1)
    return (value.op in STRUCTURE or value.op in ("tensor", "neg", "buffer")) and _infinite(first, depth + 1)


def _zeros(value: Value, depth: int = 0) -> bool:
    """True for a mask of zeros and ones."""
    if not isinstance(value, Node) or depth > 8:
        return False
    first = value.inputs[0] if value.inputs else None
    if value.op in SAFE:
        return not any(_infinite(n) for n in near(first, 6))  # a triangle of infinities holds zeros elsewhere
    if value.op in TESTS:
        return True
    if value.op == "sub" and len(value.inputs) > 1 and first in (1, 1.0) and not isinstance(first, Node):
        return _zeros(value.inputs[1], depth + 1)
    return (value.op in STRUCTURE or value.op in ("bool", "int", "buffer", "diag")) and _zeros(first, depth + 1)
