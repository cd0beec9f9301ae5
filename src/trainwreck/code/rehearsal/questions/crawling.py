"""Do low-rank matrices that start at zero get anywhere with the rate and the number of updates that they are given?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj
from trainwreck.code.rehearsal.graph import parts
from trainwreck.code.rehearsal.holding import is_scheduler
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.adapters import pairs, starts_at_zero
from trainwreck.code.rehearsal.questions.counts import number, times
from trainwreck.code.rehearsal.questions.gradients import steps
from trainwreck.code.rehearsal.questions.places import literal
from trainwreck.code.rehearsal.questions.rates import ADAPTIVE, groups

LOW = 5e-5
"""The upper end of what full fine-tuning takes with adaptive optimizers; adapters take 1e-4 to 5e-4 and small ones
more (arXiv:2305.14314, TRL's documentation)."""
WAY = 0.04
"""Rate times updates, the farthest that an adaptive optimizer moves a weight: a recipe of 1e-4 and 500 updates has
0.05."""
APART = 20
"""How much higher the rate of the network's own training is, where that of the adapter is surely no choice."""
FEW = 20
"""With fewer updates it is a trial, not a training."""


def crawling(run: Rehearsing) -> Iterator[Answer]:
    """A rate for full fine-tuning, for an adapter whose outer matrix starts at zero, beside a frozen network."""
    outer = {id(p.outer) for p in pairs(run) if starts_at_zero(p.outer) and p.inner.trainable is not False}
    for optimizer, group, value, _ in groups(run, "lr", 1) if outer else ():
        rate = number(run, value)
        held = list(parts(group.entries.get("params")))
        if optimizer.name not in ADAPTIVE or not rate or not 0 < rate <= LOW or optimizer.place is None:
            continue
        if not any(id(p) in outer for p in held) or _scheduled(run, optimizer) or _goes_on(run, held):
            continue
        done = times(run, [s for s in steps(run) if s.subject is optimizer])
        if done is None or done < FEW or rate * done >= WAY:
            continue
        where = literal(run, rate, ("lr", "learning_rate", "rate"), optimizer.place)
        text = (
            f"{done:.0f} updates of {rate:g} move a weight by {rate * done:.1g} at most, and the outer matrix of the "
            f"adapter starts at zero"
        )
        before = _trained_before(run, optimizer, rate)
        beside = (before.place,) if before is not None and before.place is not None else ()
        yield Answer(where, text, (optimizer.place, *beside), severity="warning" if beside else None)


def _trained_before(run: Rehearsing, optimizer: Obj, rate: float) -> Obj | None:
    """What trained the network itself before, in the same program and with a rate so much higher: an adapter takes no
    less than its network does."""
    for other, _, value, last in groups(run, "lr", 1):
        theirs = number(run, value)
        if other is optimizer or other.name not in ADAPTIVE or theirs is None or last.serial > optimizer.serial:
            continue
        done = times(run, [s for s in steps(run) if s.subject is other])
        if theirs >= APART * rate and done is not None and done >= FEW:
            return other
    return None


def _scheduled(run: Rehearsing, optimizer: Obj) -> bool:
    return any(is_scheduler(o) and o.get("optimizer", 0) is optimizer for o in run.objects)


def _goes_on(run: Rehearsing, held: list[Node]) -> bool:
    """True where the adapter's weights come from a file: it has been trained before."""
    last = max((e.serial for e in run.tape if e.name == "backward"), default=0)
    return any(e.name == "load_state_dict" and e.serial < last for p in held for e in p.writes)
