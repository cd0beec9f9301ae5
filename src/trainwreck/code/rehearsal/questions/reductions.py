"""How the errors of a batch become one number: summed, averaged, or averaged twice."""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place, Value, candidates
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.holding import is_optimizer
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.axes import batch_first
from trainwreck.code.rehearsal.questions.roles import backwards, bounds, learns, loss_place
from trainwreck.code.rehearsal.questions.signs import ERRORS, by_hand
from trainwreck.code.rehearsal.questions.terms import (
    REDUCED,
    Term,
    averaged,
    divergences,
    losses_of,
    squared_error,
)

SLOW = 2e-3
"""A rate of plain SGD at or below it may have been chosen for a sum (as in ``rules.loss.loss_reduction_sum``)."""

DROWNS = 20.0
"""So many times the weight of the averages beside it: VQ-VAE's terms are 0.1 to 2 of each other (arXiv:1711.00937)."""
BATCH = 32
"""A small batch, where the number of samples isn't known."""
POLICIES = frozenset(["log_softmax", "log_prob", "min", "minimum", "logsigmoid"])
"""What is raised where a policy or a likelihood is trained."""
SEVERAL = 8
"""Fewer rows than that may be something else than the samples of a batch."""
PENALTIES = frozenset(["pow", "square", "abs", "relu", "softplus", "clamp", "mul", "norm"])
"""What is summed where a penalty is written by hand."""


def summed(run: Rehearsing) -> Iterator[Answer]:
    """The sum of a batch's errors with plain SGD, or a mean that is divided by the size of the batch again."""
    steps = sum(e.name == "step" for e in run.tape)  # none where the weights are moved by hand
    accumulates = 0 < steps < sum(e.name == "backward" for e in run.tape)
    for event in backwards(run):
        node = event.subject
        for _ in range(12):
            if not isinstance(node, Node):
                break
            if node.op == "div" and len(node.inputs) > 1 and (_size(node.inputs[1]) or _size_written(node)):
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


def beside_means(run: Rehearsing) -> Iterator[Answer]:
    """A sum over the samples and all their elements is added to errors that are averages: it drowns them."""
    told: set[int] = set()
    for event, found in losses_of(run):
        means = [t for t in found if averaged(t) == "mean" and all(f.shape.dims for f in t.factors) and t.weight]
        if not means or divergences(found):
            continue
        least = max(abs(t.weight) for t in means)
        for term in found:
            if averaged(term) != "sum" or not term.sure or not of_samples(term) or not all(map(_marks, term.factors)):
                continue
            if _is_main(term) and not any(_is_main(m) for m in means):
                continue
            count = _elements(term)
            place = _reduced_at(term)
            if place is None or id(place[0]) in told or term.weight * count < DROWNS * least:
                continue
            told.add(id(place[0]))
            text = "this term is summed over the batch, and those that it is added to are averages"
            yield Answer(place, text, (event.place,) if event.place is not None else ())


def _marks(factor: Node) -> bool:
    """True for a mark of each sample that is zero or one: it picks those that count."""
    found = bounds(factor)
    return bool(factor.shape.dims) and not factor.shape.open and (found.low, found.high) == (0.0, 1.0)


def of_samples(term: Term) -> bool:
    """True for an error or a penalty of what was computed from samples, which are still apart when it is summed."""
    node = term.node
    if (node.op not in REDUCED and node.op not in PENALTIES) or not node.grad:
        return False
    seen = list(ancestors(node, through=lambda n: n.op != "param"))
    if not any(n.op in ("batch", "element", "argument", "getitem", "loaded") for n in seen):
        return False
    inner = next((i for i in node.inputs if isinstance(i, Node)), node) if node.op in REDUCED else node
    dims = inner.shape.dims
    if not dims or inner.shape.open or samples_gone(node):
        return False
    return dims[0] is None or (dims[0] >= SEVERAL and batch_first(inner))


def _is_main(term: Term) -> bool:
    """True for an error of an output against data: what the network is trained for."""
    pair = squared_error(term.node)
    if pair is not None:
        return any(not n.grad and not learns(n) for n in pair)
    if term.node.op in POLICIES and term.weight < 0:
        return True
    return term.node.op in REDUCED and len(term.node.inputs) > 1 and not learns(term.node.inputs[1])


def _elements(term: Term) -> float:
    """Of how many elements the sum is, as far as known: of classifications one for each sample."""
    node = term.node
    inner = next((i for i in node.inputs if isinstance(i, Node)), node) if node.op in REDUCED else node
    rows = inner.shape.dims[0] if inner.shape.dims else None
    each = 1 if node.op in ("cross_entropy", "nll_loss", "kl_div") else math.prod(d for d in inner.shape.dims[1:] if d)
    return float(each * (rows or BATCH))


def _reduced_at(term: Term) -> Place | None:
    for node in reversed(term.reductions):
        if node.op in ("sum", "nansum"):
            return node.place
    return loss_place(term.node) if term.node.owner is not None else term.node.place


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


def _size_written(node: Node) -> bool:
    """True for a division by a number that is the size of the batch whose mean it is of."""
    mean, count = node.inputs[:2]
    base = next((i for i in mean.inputs if isinstance(i, Node)), None) if isinstance(mean, Node) else None
    rows = base.shape.dims[0] if base is not None and not base.shape.open and base.shape.dims else None
    return isinstance(count, int) and not isinstance(count, bool) and count == rows and count >= SEVERAL


def rescaled(run: Rehearsing) -> bool:
    """True where gradients are divided or multiplied by hand between the backward and the step."""
    scaled = (n for n in run.nodes if n.op in ("div", "mul") and n.options.get("inplace") is True)
    return any(isinstance(n.inputs[0], Node) and n.inputs[0].op == "grad" for n in scaled if n.inputs)


def _scales(run: Rehearsing) -> bool:
    """True for plain SGD at an ordinary rate: its step is proportional to the gradient."""
    built = [o for o in run.objects if is_optimizer(o)]
    if len(built) != 1 or built[0].name != "SGD":
        return False
    rate = built[0].get("lr", 1)
    return isinstance(rate, int | float) and rate > SLOW
