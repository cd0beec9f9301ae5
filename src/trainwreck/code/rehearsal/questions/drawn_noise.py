"""Noise that a data set draws for its samples, and that a network is to tell."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import STRUCTURE
from trainwreck.code.rehearsal.questions.terms import fits, number_of

NOISE = frozenset(["randn", "randn_like", "normal", "standard_normal"])


def of_samples(run: Rehearsing) -> Iterator[Answer]:
    """The target is noise that was never added to the input, where a data set draws it, for its samples or for all at
    once."""
    for _, term, output, target in fits(run):
        told = _drawn(target)
        if told is None or told.place is None or any(n is told for n in ancestors(output)):
            continue
        for batch in ancestors(output, through=lambda n: n.op not in ("param", "batch")):
            added = _added(batch) if batch.op == "batch" else None
            if added is not None:
                text = "the network is to tell a noise that was not added to what it is given"
                yield Answer(told.place, text, tuple(n.place for n in (added, term.node) if n.place is not None))
                return


def _drawn(value: Value) -> Node | None:
    """The noise that a batch of targets consists of, times a number at most."""
    node, batched = next(iter(parts(value)), None), False
    for _ in range(20):
        if node is None or node.op in NOISE:
            return node if batched and node is not None else None
        batched = batched or node.op == "batch"
        if node.op == "mul" and len(node.inputs) == 2:
            rest = [i for i in node.inputs if number_of(i) is None]
            node = next(iter(parts(rest)), None) if len(rest) == 1 else None
        else:
            node = next(iter(parts(node.inputs[:1])), None) if node.op == "batch" or _scaled(node) else None
    return None


def _added(batch: Node) -> Node | None:
    """The noise that is added to computed data in what a batch holds."""
    for node in ancestors(batch, through=lambda n: n.op == "batch" or n.op in ("add", "sub") or n.op in STRUCTURE):
        if node.op not in ("add", "sub") or not all(isinstance(i, Node) for i in node.inputs[:2]):
            continue
        for one, other in (node.inputs[:2], node.inputs[1::-1]):
            scaled = [n for n in ancestors(one, through=_scaled) if n.op in NOISE]
            if scaled and not any(n.op in NOISE for n in ancestors(other, through=_scaled)):
                return scaled[0]
    return None


def _scaled(node: Node) -> bool:
    return node.op in ("mul", "div", "neg") or (node.op in STRUCTURE and node.op not in ("getitem", "index_select"))
