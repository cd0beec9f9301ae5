"""Losses that are worked out in a step and that no backward goes through, while weights wait for them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Place
from trainwreck.code.rehearsal.graph import ancestors, graph, opaque
from trainwreck.code.rehearsal.graph import reached as behind
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import backwards, held, reached, same_turn, steps
from trainwreck.code.rehearsal.questions.optimizing import settled
from trainwreck.code.rehearsal.questions.signs import ERRORS
from trainwreck.code.rehearsal.questions.terms import divergences, reconstructions, terms


def never_added(run: Rehearsing) -> Iterator[Answer]:
    """Weights of an optimizer are reached by one loss alone, and it is only looked at: the sum has lost a term."""
    candidates = [n for n in run.nodes if n.op in ERRORS and n.grad and n.place is not None]
    events = backwards(run)
    if not candidates or not events or not settled(run) or any(opaque(e.subject) for e in events):
        return
    learned = {id(p) for e in events for p in reached(e)}
    waiting = {id(p) for s in steps(run) for p in held(s) if p.trainable is not False and id(p) not in learned}
    if not waiting:
        return
    used = [*events, *(e for e in run.tape if e.name == "grad")]  # of an inner loop the gradients are asked for
    inside = {id(n) for e in used for n in graph(e.subject)}
    for node in candidates:
        if id(node) in inside:
            continue
        event = next((e for e in events if e.serial > node.serial and e.turns and same_turn(e, node)), None)
        if event is None or event.place is None or len(node.turns) < len(event.turns):
            continue
        mine = [p for p in behind(node) if id(p) in waiting]
        if mine and node.place is not None:
            name = mine[0].name.rpartition(".")[0] or mine[0].name
            text = f"a loss is worked out in this step and is no part of what is learned from: {name} learns nothing"
            yield Answer(summed_at(run, event), text, (node.place, event.place))
            return


def divergence_left_out(run: Rehearsing) -> Iterator[Answer]:
    """The divergence from the prior is worked out beside the reconstruction, and is no part of what is minimised."""
    events = [e for e in backwards(run) if e.turns and not opaque(e.subject)]
    inside = {id(n) for e in events for n in graph(e.subject)}
    for node in run.nodes if events else ():
        left = node.grad and node.op in ("sum", "mean") and id(node) not in inside and node.place is not None
        if not left or node.shape.open or node.shape.dims or not divergences(terms(node)):
            continue
        event = next((e for e in events if e.serial > node.serial and same_turn(e, node)), None)
        if event is None or len(node.turns) < len(event.turns):
            continue
        found = terms(event.subject)
        noise = any(n.op in ("randn_like", "randn", "rsample") for n in ancestors(event.subject))
        if noise and not divergences(found) and reconstructions(found, []):
            text = "the divergence from the prior is worked out in this step and is no part of what is minimised"
            last = event.subject.place if isinstance(event.subject, Node) else None
            alone = last if last is not None and node.place is not None and last[1] is node.place[1] else None
            proof = (node.place,) if node.place is not None else ()
            yield Answer(_returned(alone) or summed_at(run, event), text, proof)
            return


def _returned(place: Place | None) -> Place | None:
    """The statement with which the function gives back what is minimised."""
    if place is None:
        return None
    last = [n for n in place[1].nodes if isinstance(n, ast.Return)]
    return (last[-1], place[1]) if last else None


def summed_at(run: Rehearsing, event: Event) -> Place:
    """Where the value of a backward was put together; the backward where it is written elsewhere."""
    assert event.place is not None
    call, scope = event.place
    target = call.func.value if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else None
    if not isinstance(target, ast.Name):
        return event.place
    line = getattr(call, "lineno", 0)
    written = [
        n for n in scope.nodes
        if isinstance(n, ast.Assign) and n.lineno <= line and any(isinstance(t, ast.Name) and t.id == target.id
                                                                 for t in n.targets)
    ]  # fmt: skip
    return (max(written, key=lambda n: n.lineno), scope) if written else event.place


__all__ = ["divergence_left_out", "never_added", "summed_at"]
