"""Summands of a loss that hang on nothing: the network that learns ran without a gradient, its copy with one."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import is_module
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import held, steps
from trainwreck.code.rehearsal.questions.roles import unknown
from trainwreck.code.rehearsal.questions.terms import losses_of


def exchanged(run: Rehearsing) -> Iterator[Answer]:
    """A term between a network and a frozen one, of which the wrong one ran with gradients switched off."""
    learning = {id(p) for s in steps(run) for p in held(s) if p.trainable is not False}
    for event, found in losses_of(run):
        if not any(t.node.grad for t in found):
            continue
        for term in found:
            behind = list(ancestors(term.node)) if not term.node.grad else []
            if not behind or any(unknown(n) or n.op in ("detach", "data") for n in behind):
                continue
            inside = {id(n) for n in behind}
            made = [e for e in run.tape if e.name == "forward" and is_module(e.subject) and not e.stack
                    and any(id(p) in inside for p in parts(e.result))]  # fmt: skip
            made = [e for e in made if e.serial < event.serial and e.turns == event.turns]
            off = [e for e in made if not e.grad_mode and any(id(p) in learning for p in run.parameters(e.subject)[0])]
            on = [e for e in made if e.grad_mode and not any(id(p) in learning for p in run.parameters(e.subject)[0])]
            if off and on and off[0].place is not None:
                text = "gradients are off for the network that learns, and on for its copy: this term trains nothing"
                places = (on[0].place, event.place)
                yield Answer(off[0].place, text, tuple(p for p in places if p is not None))
                return
