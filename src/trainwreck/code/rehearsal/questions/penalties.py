"""Gradient penalties: ``(norm - 1) ** 2`` of the gradient at each sample, minimised."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node
from trainwreck.code.rehearsal.graph import near
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.axes import along
from trainwreck.code.rehearsal.questions.gradients import held, ids, steps
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, backwards, trained
from trainwreck.code.rehearsal.questions.signs import terms

SIZES = frozenset(["norm", "vector_norm"])


def over_samples(run: Rehearsing) -> Iterator[Answer]:
    """The size of the gradients is taken over the samples instead of over what each of them holds."""
    for node in _sizes(run):
        if along(node) == 0 and node.place is not None:
            yield Answer(node.place, "the size of the gradient is taken over the samples of the batch, not for each")
        elif _of_all(node) and node.place is not None:
            yield Answer(node.place, "one size is taken of the gradients of all samples: each is to have its own")


def _of_all(node: Node) -> bool:
    """True for one number of gradients of which each sample has several."""
    of = node.inputs[0]
    rows = isinstance(of, Node) and not of.shape.open and len(of.shape.dims) > 1
    return rows and along(node) is None and not node.shape.open and not node.shape.dims


def wrong_way(run: Rehearsing) -> Iterator[Answer]:
    """The penalty is maximised, or pulls the size of the gradient to minus one."""
    sizes = {id(n): n for n in _sizes(run)}
    if not sizes:
        return
    for node in trained(run):
        squared = node.op == "square" or (node.op == "pow" and node.inputs[1:2] == (2,))
        inner = node.inputs[0] if squared and node.inputs else None
        if not isinstance(inner, Node) or inner.op != "add" or len(inner.inputs) < 2 or inner.place is None:
            continue
        numbers = [i for i in inner.inputs[:2] if isinstance(i, int | float)]
        if numbers and numbers[0] > 0 and any(isinstance(i, Node) and id(i) in sizes for i in inner.inputs[:2]):
            yield Answer(inner.place, "no gradient has a size of minus one: the number is to be taken off")
            return
    for event in backwards(run):
        for term in terms(event.subject):
            squared = term.node.op == "square" or (term.node.op == "pow" and term.node.inputs[1:2] == (2,))
            held = [n for n in near(term.node, 6) if id(n) in sizes]
            if squared and held and term.sign < 0 and not term.factors and term.place is not None:
                yield Answer(term.place, "the penalty on the gradient is taken off: large gradients are rewarded")
                return


def _sizes(run: Rehearsing) -> Iterator[Node]:
    """Sizes of gradients by samples that were asked for, and that go into what is trained."""
    weights = ids(p for s in steps(run) for p in held(s))
    for node in trained(run):
        if node.op in SIZES and node.inputs and isinstance(node.inputs[0], Node):
            at = node.inputs[0]
            for _ in range(4):
                if at.op not in STRUCTURE or not at.inputs or not isinstance(at.inputs[0], Node):
                    break
                at = at.inputs[0]
            if at.op == "grad" and not any(id(i) in weights for i in at.inputs[1:]):
                yield node
