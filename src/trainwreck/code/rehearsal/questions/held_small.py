"""Penalties that hold weights small, or near to what they were: are they added to the loss, or taken off it?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj, Value
from trainwreck.code.rehearsal.holding import is_optimizer
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import RAW, backwards, bounds, core
from trainwreck.code.rehearsal.questions.signs import terms

SIZES = frozenset(["pow", "square", "abs", "norm", "vector_norm"])
LOOKS = frozenset(["embedding", "index_select", "getitem"])


def smallness_punished(run: Rehearsing) -> Iterator[Answer]:
    """The size of weights (or of their distance to fixed ones) is subtracted from what is minimised, beside another
    term that is added: they are driven away without bound.

    Not where an optimizer maximises, or where a size of weights is added as well (a contest between the two)."""
    if any(o.get("maximize") not in (None, False) for o in run.objects if is_optimizer(o)):
        return
    for event in backwards(run):
        found = [t for t in terms(event.subject) if t.node.grad and t.sign]
        sizes = [t for t in found if _of_weights(t.node)]
        wrong = [t for t in sizes if t.sign < 0 and all(bounds(f).low >= 0 for f in t.factors)]
        others = [t for t in found if not any(t is s for s in sizes)]
        if not wrong or len(wrong) < len(sizes) or not others:
            continue
        place = wrong[0].place or event.place
        if place is not None:
            text = "the size of the weights is taken off the loss: they are driven apart instead of held"
            yield Answer(place, text, (event.place,) if event.place is not None else ())
            return


def one_taken_off(run: Rehearsing) -> Iterator[Answer]:
    """Two cross entropies of the outputs of one layer, of which one is minimised and the other one raised: what the
    same head is taught by two kinds of samples."""
    if any(o.get("maximize") not in (None, False) for o in run.objects if is_optimizer(o)):
        return
    for event in backwards(run):
        found = [t for t in terms(event.subject) if t.node.op in CLASSES and t.node.grad and t.sign]
        added = {id(o) for t in found if t.sign > 0 for o in _heads(t.node)}
        for term in found:
            heads = _heads(term.node)
            marks = all(bounds(f).low >= 0 for f in term.factors)
            if any(t.node is term.node and t.sign > 0 for t in found):
                continue  # the same number added and taken off: its value alone is shown
            if term.sign < 0 and marks and heads and all(id(o) in added for o in heads):
                place = term.place or event.place
                if place is not None:
                    text = "this error is taken off the loss, and another one of the same outputs is added to it"
                    yield Answer(place, text, (event.place,) if event.place is not None else ())
                    return


CLASSES = frozenset(["cross_entropy", "nll_loss", "binary_cross_entropy_with_logits", "mse_loss"])


def _heads(loss: Node) -> list[Obj]:
    """The layers whose outputs a loss is given as they are."""
    return [n.owner for n in core(loss.inputs[0]) if n.op in RAW and n.owner is not None] if loss.inputs else []


def _of_weights(node: Node) -> bool:
    """True for the square, absolute value or norm of weights alone, or of their difference to what is no weight."""
    first = node.inputs[0] if node.inputs else None
    if node.op == "mul" and len(node.inputs) == 2:
        return node.inputs[0] is node.inputs[1] and _weights(first)
    if node.op not in SIZES or (node.op == "pow" and (len(node.inputs) < 2 or node.inputs[1] not in (2, 2.0))):
        return False
    return _weights(first)


def _weights(value: Value) -> bool:
    found = core(value)
    return bool(found) and all(_is_weight(n) or _moved(n) for n in found)


def _is_weight(node: Node) -> bool:
    """A parameter, or rows of a table."""
    if node.op == "param":
        return True
    return node.op in LOOKS and bool(node.inputs) and any(isinstance(i, Node) and i.op == "param" for i in node.inputs)


def _moved(node: Node) -> bool:
    """The difference of weights to values that hang in no graph."""
    if node.op != "sub" or len(node.inputs) < 2:
        return False
    sides = [i for i in node.inputs[:2] if isinstance(i, Node)]
    hung = [s for s in sides if s.grad]
    return len(sides) == 2 and len(hung) == 1 and all(_is_weight(n) for n in core(hung[0]))


__all__ = ["one_taken_off", "smallness_punished"]
