"""What a schedule that is a function of the program does to the rate over the run, in the unit that it is asked in."""

from __future__ import annotations

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Frame, Items, Node, Obj
from trainwreck.code.rehearsal.questions.counts import number
from trainwreck.code.rehearsal.state import Spent

NEVER_SEEN = 1e-6
"""A factor on the rate below which nothing is learned any more."""
APART = 3
"""So many times fewer (or more) steps than the schedule is long are no matter of taste."""
FUNCTIONS = ("LambdaLR",)
"""Schedules whose factor is a function of the program."""
MOST_ASKED = 400
SAMPLES = 12
"""At how many places a function is asked: it runs in the rehearsal."""
STILL = 0.95
"""A rate that has not come below this share of its start has not begun to fall."""


def factor(run: Rehearsing, scheduler: Obj, at: int) -> float | None:
    """What a function of the program gives for the factor on the rate after ``at`` moves."""
    function = scheduler.get("lr_lambda", 1)
    function = function.items[0] if isinstance(function, Items) and function.items else function
    if scheduler.place is None or function is None:
        return None
    before = len(run.tape), run.maybe
    found = run.call(function, [at], {}, scheduler.place, Frame(scheduler.place[1], {}))
    del run.tape[before[0] :]
    if isinstance(found, Node):
        return number(run, found)  # of the length of a loader, say
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else None


def asked(run: Rehearsing, scheduler: Obj, at: float) -> float | None:
    """``factor`` at no cost: what the rehearsal did for it is forgotten."""
    before = len(run.nodes), run.steps
    try:
        return factor(run, scheduler, int(at))
    except Spent:
        return None
    finally:
        del run.nodes[before[0] :]
        run.steps = before[1]


def faded(run: Rehearsing, scheduler: Obj, epochs: float | None, done: float | None) -> str:
    """What is wrong with a function of the program that is meant for counts of epochs and asked with counts of batches:
    all that it does to the rate happens within as many moves as there are epochs, or nothing is left of the rate
    before a third of the moves are made. Empty where neither is so, or its values aren't known."""
    if not epochs or not done or epochs < 2 or done < APART * epochs:
        return ""
    meant = [asked(run, scheduler, k) for k in range(int(min(epochs, MOST_ASKED)))]
    third, end = asked(run, scheduler, done / APART), asked(run, scheduler, done - 1)
    known = [v for v in meant if v is not None and v > 0]
    if len(known) < len(meant) or third is None or end is None:
        return ""
    top = max(known)
    if max(third, end) < NEVER_SEEN * top and known[-1] > 1e-4 * top:
        return f"counts epochs: after a third of {done:g} moves, one in each batch, the rate is gone"
    places = [epochs + (done - 1 - epochs) * k / SAMPLES for k in range(SAMPLES + 1)]
    later = [asked(run, scheduler, k) for k in places]
    level = all(v is not None and abs(v - end) <= 1e-9 * top for v in later)
    falls = end <= 0.5 * top and end <= known[-1] and known.index(top) < len(known) - 1
    if level and falls:
        return f"does all that it does in {epochs:g} moves, as many as there are epochs, and moves {done:g} times"
    return ""


def idle_for(run: Rehearsing, scheduler: Obj, done: float, updates: float) -> str:
    """What is wrong with a function of the program that falls over as many moves as there are updates, and is moved so
    rarely that it stays where it begins."""
    if updates < 2 * APART * done:
        return ""
    first, last, half, end = (asked(run, scheduler, k) for k in (0, done, updates / 2, updates - 1))
    if first is None or last is None or half is None or end is None or first <= 0:
        return ""
    if last > STILL * first and half >= 0.25 * first and end <= 0.1 * first:
        return f"falls over {updates:g} updates, and moves only {done:g} times: the rate stays what it is"
    return ""
