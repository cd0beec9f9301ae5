"""One axis from the counters of the lines, and where a run starts anew.

A step that goes back is one of three things: the step within an epoch began again (the epoch went on), the run began
anew (another attempt, fold or stage), or it was resumed from a checkpoint. Lines of several ranks that arrive out of
order are none of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Turn = Literal["", "restart", "resume"]

MIN_POINTS = 3
"""Fewer lines than this cannot be told from ranks that print out of order."""
JITTER = 3.0
"""Steps back of up to this many print intervals are lines out of order unless something announced a resume; a
judgement."""


@dataclass(slots=True)
class Family:
    """The state of one kind of counter lines."""

    first: float | None = None
    last: float | None = None
    epoch: float | None = None
    first_epoch: float | None = None
    raw: float | None = None
    top: float = 0.0
    lowest: float = 0.0
    gap: float = 0.0
    count: int = 0
    per_epoch: float = 0.0
    within: bool | None = None
    offset: float = 0.0
    gaps: int = 0


class Clock:
    """Turns (epoch, step) of a line into a place on the axis of its family.

    ``announced``: something since the last point said that the run starts or resumes (a banner, a resume, a traceback).
    ``gaps``: how often lines were left out so far: after a gap a higher step may stand in a later epoch.
    ``epoch``: the last epoch that any line told. ``step`` and ``unit``: the last place.
    """

    def __init__(self) -> None:
        self.families: dict[str, Family] = {}
        self.epoch: float | None = None
        self.place: float | None = None
        self.announced = False
        self.gaps = 0

    def reset(self) -> None:
        """Forget everything: another attempt begins."""
        self.families.clear()
        self.epoch = None
        self.place = None
        self.announced = False

    def epoch_line(self, epoch: float, family: str, *, judge: bool = True) -> Turn:
        """A line that tells an epoch and no step. ``judge``: False for validation lines, which never restart a run."""
        turn = self._turn(self._family(family), epoch, judge)
        self.epoch = epoch
        return turn

    def step_line(
        self,
        step: float,
        epoch: float | None,
        total: float | None,
        family: str,
        *,
        judge: bool = True,
        within: bool = False,
    ) -> tuple[float, Turn]:
        """A line that tells a step. Returns its place on the axis and what happened. ``within``: step and total are
        known to count inside of the epoch."""
        state = self._family(family)
        if within and epoch is not None and state.raw is None and total is not None:
            state.within, state.per_epoch = True, total
        known = epoch if epoch is not None else self.epoch
        turn: Turn = ""
        fractional = epoch is not None and not float(epoch).is_integer()
        if state.raw is not None and not fractional and known is not None and known != state.epoch:
            began_again = step <= state.raw
            forward = state.epoch is None or known > state.epoch
            if began_again and forward:
                if state.within is not False or step < state.raw / 2:
                    state.within = True
                    if not state.per_epoch:
                        exact = total is not None and total >= state.top
                        state.per_epoch = float(total) if exact and total is not None else self._length(state)
                    passed = known - state.epoch if state.epoch is not None else 1.0
                    state.offset += state.per_epoch * max(passed, 1.0)
                    state.top = 0.0
            elif not began_again and state.within is None:
                state.within = False
            elif forward and state.within and state.gaps != self.gaps:
                state.offset += state.per_epoch * max(known - (state.epoch or 0.0), 1.0)
                state.top = 0.0
        elif state.raw is not None and known is None and within and total is not None and step <= state.raw:
            # Batches of an epoch that no line tells: they begin again after the last one.
            if state.top + max(state.gap, 1.0) >= total and step <= state.lowest + state.gap:
                state.within, state.per_epoch = True, total
                state.offset += total
                state.top = 0.0
        elif state.raw is None and epoch is not None and total is not None and not fractional:
            state.first_epoch = epoch
        if state.raw is None:
            state.lowest = step
        elif step > state.raw:
            state.gap = step - state.raw if not state.gap else min(state.gap, step - state.raw)
        place = state.offset + step
        if state.within and known is not None and state.epoch is not None and known < state.epoch and judge:
            turn = "restart" if state.count >= MIN_POINTS else ""
        else:
            turn = self._turn(state, place, judge)
        state.raw, state.epoch, state.gaps = step, known, self.gaps
        state.top = max(state.top, step)
        if epoch is not None and not fractional:
            self.epoch = epoch
        return place, turn

    @staticmethod
    def _length(state: Family) -> float:
        """Steps of an epoch as far as the prints tell: one interval past the last, unless the first stood one
        interval in."""
        gap = state.gap or 1.0
        return state.top if state.lowest == gap and state.count > 1 else state.top + gap

    def _family(self, name: str) -> Family:
        family = self.families.get(name)
        if family is None:
            family = self.families[name] = Family()
        return family

    def _turn(self, state: Family, place: float, judge: bool) -> Turn:
        """What it means that the family is now at ``place``."""
        turn: Turn = ""
        if state.last is not None and state.first is not None and place < state.last and judge:
            back = state.last - place
            gap = max((state.last - state.first) / max(state.count - 1, 1), 1e-12)
            if place <= state.first + 0.01 * gap and (state.count >= MIN_POINTS or self.announced):
                turn = "restart"
            elif self.announced or (back > JITTER * gap and state.count >= MIN_POINTS):
                turn = "resume"
        if turn == "restart":
            return turn
        if state.first is None:
            state.first = place
        if state.last is None or place > state.last or turn == "resume":
            state.last = place
        state.count += 1
        self.announced = False
        return turn
