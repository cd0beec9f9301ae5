"""Overlaps of masks as losses: a share of what two masks have in common is to grow, not to fall."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import PROBABILITIES, backwards
from trainwreck.code.rehearsal.questions.shared_area import overlap_of
from trainwreck.code.rehearsal.questions.terms import terms

REDUCES = frozenset(["sum", "mean", "einsum"])
PLAIN = frozenset("add sub mul div clamp view reshape flatten float clamp_min maximum getitem squeeze part".split())


def overlap_falls(run: Rehearsing) -> Iterator[Answer]:
    """``2 * (p * t).sum() / (p.sum() + t.sum())`` is added to what is minimised; ``1 -`` it is meant."""
    told: set[int] = set()
    for event in backwards(run):
        for term in terms(event.subject):
            ratio = term.node
            if term.weight <= 0 or not term.sure or ratio.op != "div" or ratio.place is None or len(ratio.inputs) < 2:
                continue
            upper, lower = ratio.inputs[:2]
            known = (_common(upper) and _sizes(lower)) or overlap_of(ratio) is not None
            if id(ratio.place[0]) in told or not known or any(n.op == "log" for n in term.path):
                continue
            told.add(id(ratio.place[0]))
            text = "this share of what two masks have in common is made small: the loss is one minus it"
            yield Answer(ratio.place, text, (event.place,) if event.place is not None else ())


def _leaves(value: Value) -> list[Node]:
    """The sums over pixels that a number is put together from."""
    return [n for n in ancestors(value, through=lambda n: (n.op in PLAIN and n.op != "mul") or _scaled(n))
            if n.op in REDUCES]  # fmt: skip


def _scaled(node: Node) -> bool:
    return node.op == "mul" and any(isinstance(i, int | float) for i in node.inputs)


def _common(value: Value) -> bool:
    """A sum over the product of probabilities and of data, and nothing else."""
    sums = _leaves(value)
    return bool(sums) and all(_product(s.inputs[0] if s.inputs else None) for s in sums)


def _product(value: Value) -> bool:
    for _ in range(4):
        if isinstance(value, Node) and value.op in ("view", "reshape", "flatten", "float") and value.inputs:
            value = value.inputs[0]
    if not isinstance(value, Node) or value.op != "mul" or len(value.inputs) < 2:
        return False
    sides = [i for i in value.inputs[:2] if isinstance(i, Node)]
    if len(sides) != 2 or sides[0].grad == sides[1].grad:
        return False
    output = sides[0] if sides[0].grad else sides[1]
    return any(n.op in PROBABILITIES for n in ancestors(output, through=lambda n: n.op in PLAIN and n.op != "mul"))


def _sizes(value: Value) -> bool:
    """The size of the one mask and that of the other, added."""
    sums = _leaves(value)
    alone = [s for s in sums if s.inputs and not _product(s.inputs[0])]
    return any(s.grad for s in alone) and any(not s.grad for s in alone)


__all__ = ["overlap_falls"]
