"""Where training mode belongs, in a program that leaves a network in evaluation mode."""

from __future__ import annotations

import ast

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Place
from trainwreck.code.rehearsal.graph import ancestors


def among_batches(run: Rehearsing, cause: Event, event: Event) -> Place | None:
    """The call in the loop over the batches that led to evaluation mode: training mode belongs behind it. Where the
    network comes to the loop in evaluation mode too, it belongs to the beginning of each turn."""
    batches = event.turns[-1]
    if not any(t.node is batches.node for t in cause.turns):
        return None
    inside = {id(n) for n in ast.walk(batches.node)}
    if _came_quiet(run, cause, event) and isinstance(batches.node, ast.For | ast.While):
        return (batches.node.body[0], batches.scope)  # every turn begins so, the first one too
    return next((p for p in (*cause.stack, cause.place) if p is not None and id(p[0]) in inside), None)


def _came_quiet(run: Rehearsing, cause: Event, event: Event) -> bool:
    """True where the same network was set to evaluation mode before the loop over the batches, and never back."""
    batches = event.turns[-1].node
    modes = [e for e in run.tape if e.name in ("eval", "train") and e.subject is cause.subject]
    ahead = [e for e in modes if e.serial < event.serial and not any(t.node is batches for t in e.turns)]
    last = max(ahead, key=lambda e: e.serial, default=None)
    return last is not None and (last.name == "eval" or last.args[:1] == (False,)) and not last.maybe


def averaged(run: Rehearsing, trained: set[int]) -> set[int]:
    """``trained`` (ids of parameters), and those of copies that follow them: averages of the weights."""
    found = set(trained)
    for param in (n for n in run.nodes if n.op == "param"):
        written = [e for e in param.writes if e.turns]
        if any(id(n) in trained for event in written for n in ancestors(tuple(event.args))):
            found.add(id(param))
    return found


__all__ = ["among_batches", "averaged"]
