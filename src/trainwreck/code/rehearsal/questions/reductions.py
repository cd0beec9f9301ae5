"""How the errors of a batch become one number: summed, averaged, or averaged twice."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value, candidates
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.holding import is_optimizer
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import backwards, loss_place
from trainwreck.code.rehearsal.questions.signs import ERRORS, by_hand

SLOW = 2e-3
"""A rate of plain SGD at or below it may have been chosen for a sum (as in ``rules.loss.loss_reduction_sum``)."""


def summed(run: Rehearsing) -> Iterator[Answer]:
    """The sum of a batch's errors with plain SGD, or a mean that is divided by the size of the batch again."""
    accumulates = sum(e.name == "step" for e in run.tape) < sum(e.name == "backward" for e in run.tape)
    for event in backwards(run):
        node = event.subject
        for _ in range(12):
            if not isinstance(node, Node):
                break
            if node.op == "div" and len(node.inputs) > 1 and _size(node.inputs[1]):
                if _error(node.inputs[0]) == "mean" and not accumulates and node.place is not None:
                    yield Answer(node.place, "a mean over the batch is divided by the size of the batch again")
                break
            kind = _error(node)
            if kind == "sum" and _scales(run) and not samples_gone(node):
                given = node.owner is not None and "reduction" in node.owner.options
                place = loss_place(node) if given else node.place
                if place is not None:
                    proof = (event.place,) if event.place is not None else ()
                    yield Answer(place, "the loss is summed over the batch and divided by nothing", proof)
                break
            known = candidates(node) if node.op == "either" else node.inputs[:1] if node.op == "scale" else []
            if len(known) != 1:
                break
            node = known[0]


def _error(value: Value) -> str:
    """``mean`` or ``sum`` for an error that is reduced so, else empty."""
    if not isinstance(value, Node):
        return ""
    if value.op in ERRORS:
        reduction = value.options.get("reduction", "mean")
        return reduction if reduction in ("mean", "sum") else ""
    if value.op in ("mean", "sum") and len(value.inputs) == 1 and isinstance(value.inputs[0], Node):
        inner = value.inputs[0]
        unreduced = inner.op in ERRORS and inner.options.get("reduction") == "none"
        return value.op if unreduced or by_hand(inner) else ""
    return ""


def samples_gone(total: Node) -> bool:
    """True for a sum over sizes that are all known, of batches whose number of samples is not: a loss of statistics."""
    inner = total.inputs[0] if total.op in ("sum", "mean") and total.inputs else total
    values = [i for i in (inner, *(inner.inputs[:2] if isinstance(inner, Node) else ())) if isinstance(i, Node)]
    known = any(not v.shape.open and v.shape.dims and all(d is not None for d in v.shape.dims) for v in values)
    return known and any(n.op == "batch" for n in ancestors(total))


def lines_of_statistics(run: Rehearsing) -> set[int]:
    """The lines with sums that have no samples left in them."""
    sums = [n for n in run.nodes if n.op == "sum" and n.place is not None and samples_gone(n)]
    return {int(getattr(n.place[0], "lineno", 0)) for n in sums if n.place is not None}


def _size(value: Value) -> bool:
    return isinstance(value, Node) and value.op in ("size", "len") and value.inputs[1:2] in ((), (0,))


def _scales(run: Rehearsing) -> bool:
    """True for plain SGD at an ordinary rate: its step is proportional to the gradient."""
    built = [o for o in run.objects if is_optimizer(o)]
    if len(built) != 1 or built[0].name != "SGD":
        return False
    rate = built[0].get("lr", 1)
    return isinstance(rate, int | float) and rate > SLOW
