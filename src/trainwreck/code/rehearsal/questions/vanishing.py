"""Can a value be exactly zero in float32? Probabilities and densities that underflow, relus, what is made of them."""

from __future__ import annotations

import math

from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, Bounds, behind, bounds, core


def vanishes(value: Value, depth: int = 0) -> str:
    """Why a value can be exactly zero in float32, in words; empty where nothing is known or a floor is in sight."""
    if not isinstance(value, Node) or depth > 30:
        return ""
    inputs = value.inputs
    first = inputs[0] if inputs else None
    op = value.op
    if op in ("softmax", "sigmoid", "softmin", "expit"):
        return "" if op == "sigmoid" and _lifted(first) else f"a {op}"
    if op == "relu":
        return "a relu"
    if op == "exp":
        below = bounds(first)
        squares = below.high <= 0 and below.low == -math.inf
        return "a density" if (squares and _grows(first)) or _log_density(first) else ""
    if op in ("mul", "prod") or (op == "div" and isinstance(first, Node)):
        sides = inputs[:1] if op == "div" else inputs[:2]
        return next((why for side in sides if (why := vanishes(side, depth + 1))), "")
    if op == "sub" and len(inputs) == 2 and bounds(first) == Bounds(1.0, 1.0):
        return "1 - " + why if (why := vanishes(inputs[1], depth + 1)) and bounds(inputs[1]).high <= 1 else ""
    if op == "where" and len(inputs) > 2:
        chosen = [vanishes(i, depth + 1) for i in inputs[1:3]]
        return chosen[0] if all(chosen) else ""
    if op in ("add", "maximum", "clamp", "clip", "clamp_min", "masked_fill", "nan_to_num", "logsumexp"):
        if op == "add" and len(inputs) == 2:
            found = [vanishes(i, depth + 1) for i in inputs]
            return found[0] if all(found) else ""
        return ""
    if op in ("sum", "mean") and isinstance(first, Node):
        inner = core(first)
        if any(n.op in ("softmax", "softmin") for n in inner):
            return ""
        return vanishes(first, depth + 1)
    inner_values = behind(value)
    if inner_values is not None and len(inner_values) == 1 and op not in ("detach", "data", "detach_"):
        return vanishes(inner_values[0], depth + 1)
    if op == "pow" and len(inputs) > 1 and isinstance(inputs[1], int | float) and inputs[1] > 0:
        return vanishes(first, depth + 1)
    return ""


def _lifted(value: Value) -> bool:
    """``raw + 2`` before a sigmoid: a scale that starts near one (Kingma and Dhariwal, arXiv:1807.03039)."""
    return (
        isinstance(value, Node)
        and value.op == "add"
        and any(isinstance(i, int | float) and i >= 1 for i in value.inputs[:2])
    )


def _log_density(value: Value) -> bool:
    """True for a sum with a square of what a network computes taken off: it has no lower end."""
    at = value
    for _ in range(6):
        if not isinstance(at, Node) or at.op not in ("add", "sub", *STRUCTURE):
            return False
        sides = [i for i in at.inputs[:2] if isinstance(i, Node)]
        taken = at.inputs[1] if at.op == "sub" and len(at.inputs) > 1 else None
        if _squared(taken, 1) or any(_squared(s, -1) for s in sides):
            return True
        at = next((s for s in sides if s.op in ("add", "sub")), None)
    return False


def _squared(value: Value, sign: int) -> bool:
    """True for a square, times a number of this sign."""
    if isinstance(value, Node) and value.op == "neg":
        return _squared(value.inputs[0], -sign)
    if isinstance(value, Node) and value.op in ("mul", "div") and len(value.inputs) > 1:
        for number, rest in (value.inputs[:2], value.inputs[1::-1]):
            if isinstance(number, int | float) and isinstance(rest, Node) and value.op == "mul":
                return _squared(rest, sign if number > 0 else -sign)
        return isinstance(value.inputs[1], int | float) and _squared(value.inputs[0], sign)
    return (
        isinstance(value, Node)
        and sign > 0
        and value.grad
        and (value.op == "square" or (value.op == "pow" and value.inputs[1:2] == (2,)))
    )


def _grows(value: Value) -> bool:
    """True where a square or a distance of what a network computes stands in the exponent."""
    return any(n.op in ("pow", "square", "cdist", "mul") and n.grad for n in ancestors(value))
