"""Weights of losses that are learned (``exp(-s) * loss + s``): does the term beside them keep them from running off?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place, Value
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, bounds, core
from trainwreck.code.rehearsal.questions.signs import ERRORS, by_hand
from trainwreck.code.rehearsal.questions.terms import Term, losses_of


def unbounded(run: Rehearsing) -> Iterator[Answer]:
    """``exp(-s) * error - s``, or ``error / v ** 2 - log(v)``: falls without end as the weight goes to nothing."""
    for event, summands in losses_of(run):
        found = [t for t in summands if (t.node.grad or t.node.op == "param") and t.sure]
        for term in found:
            for weight, other in _products(term.node) if term.sign > 0 else ():
                known = _grows(weight)
                if known is None or not _error(other):
                    continue
                logarithmic, of, rises = known
                beside = [t for t in found if t is not term and _is(t, of, logarithmic)]
                if not beside or any(t.sign != rises for t in beside):
                    continue
                place = _minus(beside[0]) or (term.node.place if rises > 0 else None) or event.place
                if place is not None:
                    text = "the weight of this term is learned, and what should bound it has the wrong sign"
                    yield Answer(place, f"{text}: the loss falls without end", (event.place,) if event.place else ())
                    return


def _minus(term: Term) -> Place | None:
    """Where the term is taken off, or turned round."""
    return next((n.place for n in reversed(term.path) if n.op in ("sub", "neg") and n.place is not None), None)


def _products(node: Node) -> Iterator[tuple[Value, Value]]:
    """Weight and weighed, both ways round; of a quotient the weight is one over the denominator."""
    if node.op not in ("mul", "div") or len(node.inputs) < 2:
        return
    one, other = node.inputs[:2]
    if node.op == "mul":
        yield one, other
        yield other, one
    else:
        yield Node("div", (1.0, other), grad=True), one


def _error(value: Value) -> bool:
    """A loss: never below zero."""
    if not isinstance(value, Node) or not value.grad:
        return False
    at = value
    for _ in range(8):
        passes = at.op in ("mean", "sum", "scale") or at.op in STRUCTURE
        if not passes or not at.inputs or not isinstance(at.inputs[0], Node):
            break
        at = at.inputs[0]
    return at.op in ERRORS or by_hand(at) or (bounds(at).low >= 0 and at.op not in ("exp", "softmax", "sigmoid"))


def _grows(value: Value, depth: int = 0) -> tuple[bool, frozenset[int], int] | None:
    """Of what a positive weight is made, and +1 where it grows with that, -1 where it falls. True first: it is a power
    (its logarithm stands beside it), False: an exponential."""
    if not isinstance(value, Node) or depth > 8 or not value.inputs:
        return None
    first, second = (*value.inputs, None)[:2]
    if value.op == "exp":
        return _straight(first)
    if value.op in ("mul", "div") and len(value.inputs) == 2:
        if isinstance(first, int | float) and first > 0:
            inner = _grows(second, depth + 1) or _base(second)
            if inner is not None:
                return inner[0], inner[1], inner[2] if value.op == "mul" else -inner[2]
        if isinstance(second, int | float) and second > 0:
            return _grows(first, depth + 1)
        if value.op == "mul" and first is second:
            return _base(first)
    if value.op in ("pow", "square", "reciprocal"):
        inner = _grows(first, depth + 1) or _base(first)
        power = second if value.op == "pow" else 2 if value.op == "square" else -1
        if inner is not None and isinstance(power, int | float) and power:
            return inner[0], inner[1], inner[2] if power > 0 else -inner[2]
    if value.op in STRUCTURE and value.op not in ("detach", "detach_", "data"):
        return _grows(first, depth + 1)
    return None


def _base(value: Value) -> tuple[bool, frozenset[int], int] | None:
    """A value that is learned, as it is."""
    made = core(value)
    return (True, frozenset(id(n) for n in made), 1) if made and all(n.op in LEARNED for n in made) else None


LEARNED = frozenset(["param", "linear", "part", "softplus"])


def _straight(value: Value) -> tuple[bool, frozenset[int], int] | None:
    """What stands in an exponential, times a number."""
    sign = 1
    for _ in range(6):
        if not isinstance(value, Node):
            return None
        if value.op == "neg":
            value, sign = value.inputs[0], -sign
        elif value.op in ("mul", "div") and any(isinstance(i, int | float) for i in value.inputs[:2]):
            number = next(i for i in value.inputs[:2] if isinstance(i, int | float))
            rest = [i for i in value.inputs[:2] if isinstance(i, Node)]
            if not number or len(rest) != 1 or (value.op == "div" and rest[0] is not value.inputs[0]):
                return None
            value, sign = rest[0], sign if number > 0 else -sign
        else:
            break
    made = core(value)
    return (
        (False, frozenset(id(n) for n in made), sign) if made and all(n.grad or n.op == "param" for n in made) else None
    )


def _is(term: Term, of: frozenset[int], logarithmic: bool) -> bool:
    """The value itself, or its logarithm, as a term of the loss."""
    if term.factors:
        return False
    node: Value = term.node
    if logarithmic:
        if not isinstance(node, Node) or node.op not in ("log", "log1p", "prod") or not node.inputs:
            return False
        node = node.inputs[0]
        if isinstance(node, Node) and node.op in ("pow", "square"):
            node = node.inputs[0]
    made = {id(n) for n in core(node)}
    return bool(made) and made == set(of)
