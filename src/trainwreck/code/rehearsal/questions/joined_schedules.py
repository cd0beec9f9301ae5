"""Schedules one behind the other: does each get as many steps as it is made for?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Obj, Place, Value
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.counts import number, times
from trainwreck.code.rehearsal.questions.gradients import in_legs
from trainwreck.code.rehearsal.questions.schedules import granularity, moves, schedules

CUT = 2.0
"""A warm-up that is left before half of it: the rate jumps to more than twice of what it had reached."""
FEW = 8
"""Steps below which no schedule is judged."""
RISES = 0.6
LONG = 2.5
"""As for a schedule alone (``spans``): a cosine that is over before this share of its steps rises again, and one that
takes so many times as long hardly falls."""


def out_of_turn(run: Rehearsing) -> Iterator[Answer]:
    """A warm-up that is cut off, a schedule whose turn never comes, and a cosine that does not fit what is left."""
    other = {id(a.place[0]) for a in granularity(run)}
    for joined in (s for s in schedules(run) if s.name == "SequentialLR"):
        parts, ends = _listed(joined.get("schedulers", 1)), _listed(joined.get("milestones", 2))
        moved = [e for e in moves(run, joined) if e.turns and e.place is not None]
        known = [number(run, m) for m in ends]
        if not moved or id(moved[-1].place[0] if moved[-1].place else None) in other or joined.place is None:
            continue
        if not known or len(parts) != len(known) + 1 or not all(isinstance(p, Obj) for p in parts):
            continue
        done = times(run, moved)
        told = _cut_off(run, parts[0], known[0])
        if told is None and done and not in_legs(run):
            told = _at_the_end(run, parts[-1], known[-1], done)
        if told is not None:
            yield Answer(told[0] or joined.place, told[1], (joined.place,))


def _listed(value: Value) -> list[Value]:
    return list(value.items) if isinstance(value, Items) and not value.more else []


def _cut_off(run: Rehearsing, first: Obj, end: float | None) -> tuple[Place | None, str] | None:
    start, last = number(run, first.get("start_factor", 1, 1 / 3)), number(run, first.get("end_factor", 2, 1.0))
    takes = number(run, first.get("total_iters", 3, 5))
    if first.name != "LinearLR" or start is None or last is None or takes is None or not end or start >= last:
        return None
    if takes > CUT * end:
        return first.place, f"the warm-up takes {takes:g} steps, and the next schedule begins after {end:g} of them"
    return None


def _at_the_end(run: Rehearsing, last: Obj, begins: float | None, done: float) -> tuple[Place | None, str] | None:
    if begins is None or done < FEW:
        return None
    if begins >= done:
        return (
            None,
            f"{last.name} is to begin after {begins:g} steps, and there are {done:g} in all: its turn never comes",
        )
    length, rest = number(run, last.get("T_max", 1)), done - begins
    if last.name != "CosineAnnealingLR" or not length or rest < FEW:
        return None
    if length < RISES * rest:
        return last.place, f"the cosine is at its end after {length:g} of {rest:g} steps, and the rate rises again"
    if length > LONG * rest:
        return last.place, f"the cosine takes {length:g} steps, and {rest:g} are left for it: the rate hardly decays"
    return None
