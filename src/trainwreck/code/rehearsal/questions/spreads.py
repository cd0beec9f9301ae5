"""Intervals around predictions: do they hold all of the spread that the network was taught to tell?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import ancestors, near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import trained

COMPARES = frozenset(["lt", "le", "gt", "ge"])
SPREADS = frozenset(["var", "std", "nanvar", "nanstd"])
SIDES = 2
FEW = 12
Params = frozenset[int]


def noise_left_out(run: Rehearsing) -> Iterator[Answer]:
    """Predictions are judged within so many deviations, which are how far draws of the network differ, and the noise
    that it tells beside its mean is no part of them.

    Only where no interval of the program holds it: both kinds are often shown beside each other."""
    heads = _heads(run)
    if heads is None:
        return
    mean, noise = heads
    found = [(n, s) for n in run.nodes if n.op in COMPARES and not n.grad for s in _widths(n, mean)]
    if not found or any(_params(s) & noise for _, s in found):
        return
    for node, width in found:
        made = next((n for n in near(width, FEW) if n.op in SPREADS), None)
        if made is not None and made.place is not None and _params(made) & mean:
            text = "this is how far the draws differ: the noise that the network is taught to tell is no part of it"
            yield Answer(made.place, text, (node.place,) if node.place is not None else (), severity="warning")
            return


def _heads(run: Rehearsing) -> tuple[Params, Params] | None:
    """The parameters behind the mean of a normal distribution alone, and those behind its variance alone."""
    for node in trained(run):
        pair = _gaussian(node)
        if pair is None:
            continue
        mean, noise = (_params(side) for side in pair)
        if mean - noise and noise - mean:
            return mean - noise, noise - mean
    return None


def _gaussian(node: Node) -> tuple[Node, Node] | None:
    """(error, variance) of ``error ** 2 * exp(-s)``, ``error ** 2 / v`` and the library's own loss."""
    if node.op == "gaussian_nll_loss" and len(node.inputs) > SIDES:
        one, _, scale = node.inputs[:3]
        return (one, scale) if isinstance(one, Node) and isinstance(scale, Node) else None
    if node.op not in ("mul", "div") or len(node.inputs) < SIDES:
        return None
    for error, scale in (node.inputs[:SIDES], node.inputs[1::-1]):
        if not isinstance(error, Node) or not isinstance(scale, Node) or not error.grad or not scale.grad:
            continue
        if error.op == "mul" and any(isinstance(i, int | float) for i in error.inputs[:SIDES]):
            error = next((i for i in error.inputs if isinstance(i, Node)), error)
        squared = error.op == "square" or (error.op == "pow" and error.inputs[1:2] == (2,))
        apart = error.inputs[0] if squared else None
        if not isinstance(apart, Node) or apart.op != "sub":
            continue
        if node.op == "div" and scale is not error:
            return apart, scale
        if node.op == "mul" and scale.op == "exp" and any(n.op == "neg" for n in near(scale, 4)):
            return apart, scale
    return None


def _widths(test: Node, mean: Params) -> Iterator[Node]:
    """How far from a prediction a label may be: of ``(y - m).abs() < k * s`` and of ``y < m + k * s``."""
    one, other = (*test.inputs, None, None)[:SIDES]
    for value, bound in ((one, other), (other, one)):
        if not isinstance(value, Node) or not isinstance(bound, Node):
            continue
        apart = value.inputs[0] if value.op == "abs" and value.inputs else None
        if isinstance(apart, Node) and apart.op == "sub" and _params(apart) & mean:
            yield bound
        elif bound.op in ("add", "sub") and len(bound.inputs) >= SIDES and not _params(value):
            middle, width = bound.inputs[:SIDES]
            if isinstance(middle, Node) and isinstance(width, Node) and _params(middle) & mean and _params(width):
                yield width


def _params(value: Value) -> Params:
    return frozenset(id(n) for n in ancestors(value) if n.op == "param")


__all__ = ["noise_left_out"]
