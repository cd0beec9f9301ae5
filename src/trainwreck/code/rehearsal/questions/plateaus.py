"""Does a schedule that watches a result wait for it to move in the right direction?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
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
            kind = "a share of hits" if better else "a loss or an error"
            text = f"what it watches is {kind}, and with mode={mode!r} its improvement counts as none"
            yield Answer(scheduler.place, text, (move.place,))
            break
