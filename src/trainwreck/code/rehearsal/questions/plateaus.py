"""Does a schedule that watches a result wait for it to move in the right direction?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Turn
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.counts import counts_batches, number, trips
from trainwreck.code.rehearsal.questions.gradients import backwards, steps
from trainwreck.code.rehearsal.questions.minimised import mark_objectives
from trainwreck.code.rehearsal.questions.paths import RANDOM
from trainwreck.code.rehearsal.questions.schedules import driven, moves, schedules
from trainwreck.code.rehearsal.questions.selection import direction

PATIENCE = 10
"""What ``ReduceLROnPlateau`` waits by default. Its own unit is the epoch; who counts batches gives it hundreds."""
WAITS = 2
"""So many times the patience is over within one epoch: the rate can fall more than once before all data were seen."""


def watches_the_wrong_way(run: Rehearsing) -> Iterator[Answer]:
    """``ReduceLROnPlateau`` with ``mode="max"`` and an error, or ``"min"`` and a share of hits."""
    mark_objectives(run)
    for scheduler in schedules(run):
        if scheduler.name != "ReduceLROnPlateau" or scheduler.place is None:
            continue
        mode = scheduler.get("mode", 1, "min")
        for move in moves(run, scheduler):
            better = direction(move.get("metrics", 0))
            if move.place is None or better is None or mode not in ("min", "max") or better is (mode == "max"):
                continue
            kind = "better the larger it is" if better else "a loss or an error"
            text = f"what it watches is {kind}, and with mode={mode!r} its improvement counts as none"
            yield Answer(scheduler.place, text, (move.place,))
            break


def plateau_without_metric(run: Rehearsing) -> Iterator[Answer]:
    """``ReduceLROnPlateau.step`` with a count of turns (or nothing) where its metric belongs."""
    for scheduler in schedules(run):
        if scheduler.name != "ReduceLROnPlateau":
            continue
        for move in moves(run, scheduler):
            given = move.get("metrics", 0)
            counter = isinstance(given, Node) and given.op == "counter"
            first = bool(move.turns) and isinstance(given, int) and not isinstance(given, bool)
            if (
                given is None or counter or (first and move.turns[0].index == 0 and given in (0, 1))
            ) and move.place is not None:
                what = "nothing" if given is None else "the number of the turn"
                yield Answer(move.place, f"the plateau schedule is given {what} instead of its metric", ())
                break


def plateau_in_batches(run: Rehearsing) -> Iterator[Answer]:
    """``ReduceLROnPlateau`` with a patience of a few epochs that is told its metric after every batch."""
    for scheduler in schedules(run):
        if scheduler.name != "ReduceLROnPlateau" or scheduler.place is None:
            continue
        patience = number(run, scheduler.get("patience", 3, PATIENCE))
        if patience is None or patience > PATIENCE or counts_batches(scheduler.get("patience", 3)):
            continue
        mine = [s for s in steps(run) if s.subject in driven(scheduler)]
        for move in moves(run, scheduler):
            if len(move.turns) < 2 or move.maybe or move.tests or move.place is None:
                continue
            inner = move.turns[-1]
            beside = [s for s in mine if s.turns[-1:] == (inner,) and not s.maybe and not s.tests]
            batches, epochs = trips(run, inner), trips(run, move.turns[-2])
            if not beside or batches is None or batches < WAITS * (patience + 1) or not _fed_anew(run, inner, beside):
                continue
            if epochs is not None and patience > epochs:
                continue
            text = f"the plateau schedule waits for {patience:g} calls without improvement, and an epoch has "
            text += f"{batches:g} batches with one call each"
            yield Answer(move.place, text, (scheduler.place,))
            break


def _fed_anew(run: Rehearsing, inner: Turn, beside: list[Event]) -> bool:
    """True where each turn of a loop trains on other data: one piece of what it goes through, or a draw."""
    written = [inner.node, *ast.walk(inner.node.iter)] if isinstance(inner.node, ast.For) else [inner.node]
    head = {id(n) for n in written}
    for backward in backwards(run):
        if backward.turns[-1:] != (inner,) or backward.serial > beside[-1].serial:
            continue
        data = [n for n in ancestors(backward.subject) if not n.grad]
        if any(n.op in ("batch", "element") and (inner in n.turns or id(_at(n)) in head) for n in data):
            return True
        taken = [n.inputs[1:] for n in data if n.op in ("getitem", "index_select") and inner in n.turns]
        if any(a.op in RANDOM or (a.op == "counter" and inner in a.turns) for t in taken for a in ancestors(t)):
            return True
    return False


def _at(node: Node) -> ast.AST | None:
    return node.place[0] if node.place is not None else None
