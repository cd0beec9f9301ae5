"""Windows of one series for training and for the evaluation, made by one function from spans that overlap."""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj, Place
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import feeding, meets, statistic
from trainwreck.code.rehearsal.questions.redrawn import held_out
from trainwreck.code.rehearsal.questions.roles import backwards, bounds


def spans_overlap(run: Rehearsing) -> Iterator[Answer]:
    """The elements that are forecast in the evaluation are targets of the training too.

    That windows reach back into the training is as it should be: only what is to be forecast counts."""
    taught: dict[int, list[Node]] = {}
    for event in backwards(run):
        for _, _, outside in meets(event.subject):
            for node in ancestors(tuple(outside), through=lambda n: not statistic(n)):
                if node.place is not None and _span(node) is not None:
                    taught.setdefault(id(node.place[0]), []).append(node)
    used = feeding(run) if taught else set()
    for node in run.nodes if taught else ():
        place = node.place if id(node) not in used else None
        mine = _span(node) if place is not None else None
        if mine is None or place is None:
            continue
        for other in taught.get(id(place[0]), ()):
            theirs = _span(other)
            call = _call(node, other)
            if theirs is None or call is None or _series(node) is not _series(other) or not held_out(run, call):
                continue
            if mine[0] < theirs[1] and theirs[0] < mine[1]:
                text = "what is forecast here reaches into the span that is trained on: those targets have been seen"
                yield Answer(call, text, (other.place,) if other.place is not None else ())
                return


def _span(node: Node) -> tuple[float, float] | None:
    """From which element to which one the windows of all turns reach that a slice cuts out."""
    index = node.inputs[1] if node.op == "getitem" and len(node.inputs) > 1 else None
    index = index[-1] if isinstance(index, tuple) and index else index
    if not isinstance(index, Obj) or index.kind != "builtins.slice" or len(index.args) < 2:
        return None
    if not all(isinstance(a, Node) for a in index.args[:2]):
        return None  # the first turn, or a cut that stays the same
    low, high = bounds(index.args[0]).low, bounds(index.args[1]).high - 1  # a count ends before its upper bound
    return (low, high) if math.isfinite(low) and math.isfinite(high) else None


def _series(node: Node) -> Node | None:
    """What the windows are cut from, of whichever row."""
    base = node.inputs[0]
    while isinstance(base, Node) and base.op in ("element", "part") and base.inputs:
        base = base.inputs[0]
    return base if isinstance(base, Node) else None


def _call(node: Node, other: Node) -> Place | None:
    """The call that one of them was made in, and the other was not."""
    theirs = {id(p[0]) for p in other.stack}
    return next((p for p in node.stack if id(p[0]) not in theirs), None)


__all__ = ["spans_overlap"]
