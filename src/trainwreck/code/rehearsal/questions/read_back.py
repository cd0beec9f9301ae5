"""Outputs that mean something other than they say: numbers of classes that were moved, and logarithms of counts.

Where the loss moved the labels (``grade - 1``), the class that is chosen has to be moved back before it is held against
a label; where the loss takes outputs for logarithms, an error has to be taken of their exponential."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, given, trained

ERRORS = frozenset(["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "sub"])
PASSES = STRUCTURE | frozenset(
    "batch element float long int double to cpu numpy tolist item astype from_numpy tensor as_tensor asarray".split()
)
MAX_CHAIN = 24


def labels_moved(run: Rehearsing) -> Iterator[Answer]:
    """``cross_entropy(net(x), grade - 1)`` and then ``net(x).argmax(1) == grade``: no grade but by chance is hit."""
    learned: dict[int, set[int]] = {}
    for loss in trained(run):
        target = given(loss, "target", 1) if loss.op in ("cross_entropy", "nll_loss") else None
        found = _moved(target)
        if found is not None:
            learned.setdefault(id(found[0]), set()).add(found[1])
    for node in run.nodes if learned else ():
        if node.op not in ("eq", "ne") or node.grad or len(node.inputs) < 2 or node.place is None:
            continue
        for one, other in (node.inputs[:2], node.inputs[1::-1]):
            chosen, label = _moved(one), _moved(other)
            if chosen is None or label is None or chosen[0].op not in ("argmax", "part", "max"):
                continue
            shifts = learned.get(id(label[0]), set())
            if len(shifts) == 1 and chosen[1] - label[1] != -next(iter(shifts)) and _learns(chosen[0]):
                text = "the labels were moved for the loss, and here the chosen class is held against them as they were"
                yield Answer(node.place, text)
                return


def _moved(value: Value) -> tuple[Node, int] | None:
    """Where numbers come from, and by how much they were moved on the way."""
    by = 0
    for _ in range(MAX_CHAIN):
        if not isinstance(value, Node) or not value.inputs or value.op in ("argmax", "max"):
            break
        first, second = (*value.inputs, None)[:2]
        if value.op == "part" and isinstance(first, Node) and first.op == "max":
            break
        if value.op in ("add", "sub") and isinstance(second, int) and not isinstance(second, bool):
            by, value = by + (second if value.op == "add" else -second), first
        elif value.op == "add" and isinstance(first, int) and not isinstance(first, bool):
            by, value = by + first, second
        elif value.op in PASSES and not (value.op == "to" and len(value.inputs) > 3):
            value = first
        else:
            break
    return (value, by) if isinstance(value, Node) else None


def logarithms_read(run: Rehearsing) -> Iterator[Answer]:
    """An error between counts and outputs that a Poisson loss takes for logarithms of their means."""
    layers: dict[int, set[int]] = {}
    for loss in trained(run):
        logs = loss.options.get("log_input", loss.owner.get("log_input", 0, True) if loss.owner is not None else True)
        output = _moved(given(loss, "input", 0)) if loss.op == "poisson_nll_loss" and logs is True else None
        counts = _moved(given(loss, "target", 1)) if output is not None else None
        if output is not None and counts is not None and output[0].op == "linear" and output[0].owner is not None:
            layers.setdefault(id(output[0].owner), set()).add(id(counts[0]))
    for node in run.nodes if layers else ():
        if node.op not in ERRORS or node.grad or len(node.inputs) < 2 or node.place is None:
            continue
        for one, other in (node.inputs[:2], node.inputs[1::-1]):
            told, truth = _moved(one), _moved(other)
            if told is None or truth is None or told[0].op != "linear" or told[0].owner is None:
                continue
            if id(truth[0]) in layers.get(id(told[0].owner), set()):
                text = (
                    "the loss takes these outputs for logarithms, and here they are held against the counts as they are"
                )
                yield Answer(node.place, text)
                return


def _learns(value: Node) -> bool:
    return any(n.op == "param" for n in ancestors(value))


__all__ = ["labels_moved", "logarithms_read"]
