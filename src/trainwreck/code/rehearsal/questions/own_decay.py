"""Weights that a program shrinks itself at every step: by how much?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import backwards, reached
from trainwreck.code.rehearsal.questions.terms import number_of

STRONG = 0.992
"""Half of a weight is gone after 90 updates. The usual share is a rate of 1e-3 (SGD: 0.05) times a decay of 0.1."""
MOVES = frozenset(["add_", "sub_", "addcdiv_", "inplace"])


def shrunk(run: Rehearsing) -> Iterator[Answer]:
    """``p.mul_(1 - decay)`` without the rate, in the step that also moves ``p`` along its gradient."""
    learned = {id(p) for e in backwards(run) for p in reached(e)}
    for param in run.nodes:
        if param.op != "param" or id(param) not in learned:
            continue
        for event in param.writes:
            share = number_of(event.args[0]) if event.name == "mul_" and event.args else None
            if share is None or not 0 < share <= STRONG or not event.turns or event.place is None:
                continue
            beside = [w for w in param.writes if w.name in MOVES and w.turns[:1] == event.turns[:1]]
            along = [w for w in beside if any(_from_gradient(a) for a in w.args)]
            if along and all(w.place is not None and w.place[1] is event.place[1] for w in along):
                text = f"each update leaves {share:g} of the weights: they are gone after some dozens of steps"
                yield Answer(event.place, text, (along[0].place,) if along[0].place is not None else ())
                return


def _from_gradient(value: object) -> bool:
    return isinstance(value, Node) and any(n.op == "grad" for n in ancestors(value))


__all__ = ["shrunk"]
