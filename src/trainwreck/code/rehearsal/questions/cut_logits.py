"""Scores that an activation has cut off below zero before the loss that wants any real number."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import core, given, losses, made_at

CUTS = frozenset(["relu", "relu6"])
WANTS = ("cross_entropy", "binary_cross_entropy_with_logits")


def cut_at_zero(run: Rehearsing) -> Iterator[Answer]:
    """A ReLU makes the logits: no score can fall below zero, and where it is zero nothing is learned."""
    told: set[int] = set()
    for node in losses(run, *WANTS):
        scores = core(given(node, "input", 0))
        if not scores or not all(n.op in CUTS for n in scores):
            continue
        place = made_at(run, scores[0])
        if place is not None and id(place[0]) not in told:
            told.add(id(place[0]))
            text = "these logits come out of a ReLU: none can be negative, and those at zero get no gradient"
            yield Answer(place, text, (node.place,) if node.place is not None else ())


__all__ = ["cut_at_zero"]
