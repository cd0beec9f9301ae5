"""Cross entropies with soft targets, written out: are the scores logarithms, and are both sides told of the padding?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.axes import along
from trainwreck.code.rehearsal.questions.masks import padding
from trainwreck.code.rehearsal.questions.roles import STRUCTURE
from trainwreck.code.rehearsal.questions.terms import losses_of

SHARES = frozenset(["softmax", "log_softmax"])


def shares_for_logarithms(run: Rehearsing) -> Iterator[Answer]:
    """``-(softmax(target) * softmax(scores)).sum(dim)``: both sides are shares along the same axis."""
    for node, target, scores, sign in _products(run):
        if scores.op == "softmax" and target.op == "softmax" and sign < 0 and along(target) == along(scores):
            text = "a cross entropy takes the logarithm of the shares, and these are the shares themselves"
            place = scores.place or node.place
            if place is not None:
                yield Answer(place, text, (node.place,) if node.place is not None else ())
                return


def padding_has_a_share(run: Rehearsing) -> Iterator[Answer]:
    """One side of a cross entropy over the elements of a list leaves the padding out, and the other one doesn't."""
    for _, target, scores, _ in _products(run):
        if scores.op != "log_softmax" or target.op != "softmax" or target.grad:
            continue
        told = _hidden(scores)
        if told is None or _hidden(target) is not None or target.place is None:
            continue
        if _plain(target):
            text = "the scores leave the padding out, and here it gets a share of the target like the rest of the list"
            yield Answer(target.place, text, (scores.place or target.place,))
            return


def _plain(share: Node) -> bool:
    """True for a softmax of data that were written row by row into zeros, with nothing hidden afterwards."""
    inner = share.inputs[0] if share.inputs else None
    while isinstance(inner, Node) and (inner.op in STRUCTURE or inner.op in ("div", "mul", "float")) and inner.inputs:
        inner = inner.inputs[0]
    base = inner
    while isinstance(base, Node) and base.op == "setitem":
        base = base.inputs[0]
    return isinstance(inner, Node) and inner.op == "setitem" and isinstance(base, Node) and base.op == "zeros"


def _hidden(share: Node) -> Node | None:
    """The mask of padding that is hidden from a softmax."""
    inner = share.inputs[0] if share.inputs else None
    if isinstance(inner, Node) and inner.op in ("masked_fill", "where") and len(inner.inputs) > 2:
        mask = inner.inputs[1 if inner.op == "masked_fill" else 0]
        return mask if isinstance(mask, Node) and padding(mask) is not None else None
    return None


def _products(run: Rehearsing) -> Iterator[tuple[Node, Node, Node, int]]:
    """Products of two shares (or their logarithms) in a loss, of which one learns: product, target, scores, sign."""
    for _, found in losses_of(run):
        for term in found:
            node = term.node
            for factor in term.factors if node.op in SHARES else ():
                if factor.op == "softmax":
                    yield term.path[-1] if term.path else node, factor, node, term.sign
            sides = _sides(node) if node.op == "mul" else None
            if sides is not None:
                yield node, *sides, term.sign


def _sides(node: Node) -> tuple[Node, Node] | None:
    one, other = (_share(i) for i in node.inputs[:2])
    if one is None or other is None or one.grad is other.grad:
        return None
    return (other, one) if one.grad else (one, other)


def _share(value: Value) -> Node | None:
    return value if isinstance(value, Node) and value.op in SHARES else None


__all__ = ["padding_has_a_share", "shares_for_logarithms"]
