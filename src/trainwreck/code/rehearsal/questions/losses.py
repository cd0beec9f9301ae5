"""Losses of the library: what goes into them, by its role, and the axes of the two sides."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.own_losses import by_hand_at, soft_by_hand
from trainwreck.code.rehearsal.questions.roles import (
    PROBABILITIES,
    RAW,
    bounds,
    core,
    given,
    loss_place,
    losses,
    made_at,
)


def _places(*nodes: Node | None) -> tuple[Place, ...]:
    return tuple(n.place for n in nodes if n is not None and n.place is not None)


def _inputs(run: Rehearsing, *ops: str) -> Iterator[tuple[Node, list[Node]]]:
    """Losses of these kinds, with what their prediction was selected or reshaped from."""
    for loss in losses(run, *ops):
        found = core(given(loss, "input", 0))
        if found:
            yield loss, found


def _before(run: Rehearsing, ops: tuple[str, ...], wrong: Callable[[Node], bool], text: str) -> Iterator[Answer]:
    for loss, found in _inputs(run, *ops):
        if all(wrong(n) for n in found):
            for node in found:
                place = by_hand_at(node) or made_at(run, node)
                if place is not None:
                    yield Answer(place, text, _places(loss))


def _soft(node: Node) -> bool:
    return node.grad and (node.op in PROBABILITIES or soft_by_hand(node))


def _mixed(node: Node, depth: int = 0) -> bool:
    """True for probabilities that are weighted, added up or divided by their sum: no logarithm, which is below zero."""
    if not node.grad or depth > MIX:
        return False
    if _soft(node):
        return True
    inputs = [i for i in node.inputs if isinstance(i, Node)]
    if node.op in ("mul", "div", "einsum", "matmul", "bmm"):
        known = [_mixed(i, depth + 1) or bounds(i).low >= 0 for i in inputs]
        return all(known) and any(_mixed(i, depth + 1) for i in inputs)
    if node.op in ("add", "sum", "mean", "either", "stack", "clamp", "clamp_min"):
        return all(_mixed(n, depth + 1) for i in node.inputs[:2] for n in parts(i) if n.grad) and any(
            n.grad for i in node.inputs[:2] for n in parts(i)
        )
    inner = core(node)
    return len(inner) > 0 and inner != [node] and all(_mixed(n, depth + 1) for n in inner)


MIX = 8
"""Steps from a mixture of probabilities to what is mixed."""


def softmax_before_cross_entropy(run: Rehearsing) -> Iterator[Answer]:
    text = "softmax is applied here, and the cross entropy applies it again"
    yield from _before(run, ("cross_entropy",), lambda n: _soft(n) and n.op != "hardsigmoid", text)


def sigmoid_before_bce_with_logits(run: Rehearsing) -> Iterator[Answer]:
    text = "a sigmoid is applied here, and the loss applies it again"
    yield from _before(run, ("binary_cross_entropy_with_logits", "multilabel_soft_margin_loss"), _soft, text)


def nll_input(run: Rehearsing) -> Iterator[Answer]:
    """Softmax or raw outputs in the negative log-likelihood."""
    for loss, found in _inputs(run, "nll_loss", "ctc_loss"):
        if all(_soft(n) for n in found):
            place = made_at(run, found[0])
        elif all(n.op in RAW and n.grad for n in found) or all(_mixed(n) for n in found):
            # another criterion may be meant instead of the likelihood; of the one over all alignments there is no other
            place = loss.place if loss.op == "ctc_loss" else loss_place(loss)
        else:
            continue
        if place is not None:
            text = "no log-softmax lies between the network and the negative log-likelihood"
            yield Answer(place, text, _places(loss, found[0]))


def bce_on_logits(run: Rehearsing) -> Iterator[Answer]:
    for loss, found in _inputs(run, "binary_cross_entropy"):
        place = loss_place(loss)
        if place is not None and all(n.grad and bounds(n).free for n in found):
            text = "raw outputs of a layer reach a loss that takes probabilities"
            yield Answer(place, text, _places(loss, found[0]))


def kl_input(run: Rehearsing) -> Iterator[Answer]:
    """The first argument of ``kl_div`` is no logarithm."""
    for loss, found in _inputs(run, "kl_div"):
        if loss.place is None:
            continue
        if all(_soft(n) or _mixed(n) for n in found):
            text = "the first argument are probabilities, and log-probabilities are expected"
        elif all(n.op in RAW and n.grad for n in found):
            text = "the first argument are raw outputs, and log-probabilities are expected"
        else:
            continue
        yield Answer(loss.place, text, _places(found[0]))
    yield from _kl_target(run)


def kl_mean(run: Rehearsing) -> Iterator[Answer]:
    """``kl_div`` averaged over all elements instead of samples."""
    for loss, found in _inputs(run, "kl_div"):
        if loss.options.get("reduction", "mean") != "mean" or loss.options.keys() & {"reduce", "size_average"}:
            continue
        place = loss_place(loss)
        if place is not None and any(n.op in ("log_softmax", "log") for n in found):
            yield Answer(place, "the divergence is averaged over classes too, not summed over them", _places(loss))


def _kl_target(run: Rehearsing) -> Iterator[Answer]:
    """The second argument of ``kl_div`` is a logarithm without ``log_target``."""
    for loss, _ in _inputs(run, "kl_div"):
        target = core(given(loss, "target", 1))
        if loss.place is None or not target or loss.options.get("log_target", False) is not False:
            continue
        if all(n.op == "log_softmax" for n in target):
            yield Answer(loss.place, "the target is a logarithm, and probabilities are expected", _places(target[0]))


ORDERED = ("cross_entropy", "binary_cross_entropy", "binary_cross_entropy_with_logits", "nll_loss", "gaussian_nll_loss",
           "poisson_nll_loss", "ctc_loss", "multi_margin_loss", "multilabel_soft_margin_loss", "soft_margin_loss",
           "hinge_embedding_loss")  # fmt: skip
"""Losses in which prediction and target are not treated alike (``kl_div`` has a rule of its own)."""


def swapped(run: Rehearsing) -> Iterator[Answer]:
    """A loss whose first argument is data and whose second one the network computes."""
    for loss in losses(run, *ORDERED):
        first, second = given(loss, "input", 0), given(loss, "target", 1)
        if not isinstance(first, Node) or not isinstance(second, Node) or loss.place is None:
            continue
        if second.grad and not first.grad and not first.unknown and not any(n.op == "param" for n in ancestors(first)):
            yield Answer(loss.place, f"{loss.op} takes the prediction first, and here the labels stand there")
