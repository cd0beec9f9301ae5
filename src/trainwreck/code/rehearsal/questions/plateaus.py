"""Does a schedule that watches a result wait for it to move in the right direction?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.schedules import moves, schedules
from trainwreck.code.rehearsal.questions.selection import direction


def watches_the_wrong_way(run: Rehearsing) -> Iterator[Answer]:
    """``ReduceLROnPlateau`` with ``mode="max"`` and an error, or ``"min"`` and a share of hits."""
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
