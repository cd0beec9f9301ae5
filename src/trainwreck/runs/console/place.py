"""Put the numbers of a line on the axis of the run: which step they belong to, and to which attempt."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trainwreck.core.run import StepUnit
from trainwreck.runs.console import words as w
from trainwreck.runs.console.attempt import Attempt
from trainwreck.runs.console.clock import Clock, Turn
from trainwreck.runs.console.learn import Plan
from trainwreck.runs.console.store import FINAL, Store
from trainwreck.runs.console.text import value

MAX_ATTEMPTS = 200
"""Older attempts are forgotten: nobody reads further back, and a loop that prints its inner steps has thousands."""
MAX_COPIES = 30
"""Resumes whose earlier part is kept apart; further ones only leave a seam."""
MAX_RESTARTS = 12
"""Unannounced restarts of one counter; more are the habit of an inner loop."""
MAX_RANK = 15
"""Ranks above are not kept apart."""
LEAD_ROWS = 2
"""Rows with a rising bare number at the start before the number is believed to be a step."""

IN_EPOCH = frozenset({"bracket", "bar", "mmcv", "imagenet"})
"""Structures whose step and total count within the epoch."""
BATCHES = frozenset({"batch", "minibatch", "batch_idx", "batches", "mb"})
"""Counters that begin again with each epoch, also where no line tells the epoch."""

Values = dict[str, float]


class Placer:
    """The attempt that is being read, its clock, and the place that lines without a step refer to (``context``)."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.attempt = Attempt(Store(path))
        self.done: list[Attempt] = []
        self.clock = Clock()
        self.context: tuple[float, StepUnit] | None = None
        self.bars: dict[float, float] = {}
        self.main_bar: float | None = None
        self._bar_epoch: dict[float, int] = {}
        self._held: tuple[float, Values, int] | None = None
        self._leads: dict[tuple[str, ...], list[tuple[float, Values, int]]] = {}
        self._restarts: dict[str, int] = {}
        self._first_rank: int | None = None
        self._labels: dict[str, tuple[str, frozenset[str]]] = {}
        self._turns: set[str] = set()
        self._copies = 0

    def take(self, plan: Plan, numbers: Sequence[str], line: int, rank: int | None) -> None:
        """The numbers of a line that ``plan`` explains."""
        if (
            plan.bar
            and not plan.points
            and self.main_bar is not None
            and plan.step is not None
            and plan.step_total is not None
        ):
            # Pictures of a progress bar are most of many logs: only its counter is of use.
            self.bars[value(numbers[plan.step_total])] = value(numbers[plan.step])
            return
        try:
            values = {name: float(numbers[at]) * scale for at, name, scale in plan.points}
        except ValueError:
            values = {p.name: value(numbers[p.at]) * p.scale for p in plan.points}
        if plan.rank is not None:
            told = value(numbers[plan.rank])
            rank = int(told) if 0 <= told < 1e6 else rank
        for name, at in plan.ratios:
            whole = value(numbers[at])
            values[name] = values[name] / whole if whole else math.nan
        if plan.closing or (plan.quoted and ("train_runtime" in values or "train_samples_per_second" in values)):
            self.final(values, line)
            return
        if plan.aside and not plan.bar:
            return
        if plan.lead:
            self._lead(plan, numbers, values, line)
            return
        if plan.label and values and self._takes_turns(plan):
            values = {f"{plan.label}/{name}": amount for name, amount in values.items()}
        epoch = value(numbers[plan.epoch]) if plan.epoch is not None else plan.fixed_epoch
        step = value(numbers[plan.step]) * plan.step_scale if plan.step is not None else plan.fixed_step
        total = value(numbers[plan.step_total]) if plan.step_total is not None else None
        if plan.epoch_total is not None:
            self.attempt.epoch_total = value(numbers[plan.epoch_total])
        if plan.keras:
            self._keras(step or 0.0, total, values, line)
        elif plan.key == "eval-progress":
            if total is not None and step is not None and (step >= total - 1 or not _finite(values)):
                self.put(values, self.context, line, rank)
        elif plan.bar and step is not None:
            self._bar(plan, step, total, epoch, values, line, rank)
        elif plan.quoted and self.main_bar is not None and plan.key not in ("step", "global step"):
            self.put(values, (self.bars[self.main_bar], "step"), line, rank)
        elif step is not None:
            unit: StepUnit = "env-step" if plan.key in w.ENV_STEP_KEYS else "step"
            judge = not plan.phase and bool(plan.points)
            place = self.step(step, epoch, total, plan, judge=judge)
            self.put(values, (place, unit), line, rank, evaluated=plan.evaluated)
        elif epoch is not None:
            self._flush(epoch)
            family = "epoch" if values else "epoch-header"
            self.epoch(epoch, family, judge=not plan.phase)
            self.put(values, (epoch, "epoch"), line, rank)
        else:
            self.put(values, self.context, line, rank)

    def _takes_turns(self, plan: Plan) -> bool:
        """True once lines of two labels ("gen step 10", "disc step 10") have taken turns with one metric."""
        name = plan.points[0].name
        last, known = self._labels.get(name, ("", frozenset()))
        if last != plan.label:
            if plan.label in known:
                self._turns.add(name)
            self._labels[name] = (plan.label, known | {plan.label} if len(known) < 16 else known)
        return name in self._turns

    def epoch(self, epoch: float, family: str, *, judge: bool = True) -> None:
        """A line at ``epoch``; opens another attempt where epochs began again."""
        turn = self.clock.epoch_line(epoch, family, judge=judge)
        if turn:
            self._turn(turn, epoch, "epoch")
            self.clock.epoch_line(epoch, family, judge=False)

    def step(self, step: float, epoch: float | None, total: float | None, plan: Plan, *, judge: bool) -> float:
        """The place of a line at ``step``; opens another attempt where steps began again."""
        family = plan.key + (f"|{plan.phase}" if plan.phase else "") + ("" if plan.points else "|header")
        judge = judge and self._restarts.get(family, 0) < MAX_RESTARTS
        announced = self.clock.announced
        within = total is not None and plan.key in (BATCHES if epoch is None else IN_EPOCH)
        place, turn = self.clock.step_line(step, epoch, total, family, judge=judge, within=within)
        if turn:
            if turn == "restart" and not announced:
                self._restarts[family] = self._restarts.get(family, 0) + 1
            self._turn(turn, place, "step")
            if turn == "restart":
                place, _ = self.clock.step_line(step, epoch, total, family, judge=False, within=within)
        state = self.clock.families[family]
        if plan.points:
            self.attempt.per_epoch = state.per_epoch if state.within else None
        if total is not None and not plan.phase:
            self.attempt.step_total = total
        return place

    def put(
        self,
        values: Values,
        place: tuple[float, StepUnit] | None,
        line: int,
        rank: int | None = None,
        *,
        evaluated: bool | None = None,
    ) -> None:
        """Add points at ``place`` and make it the place that lines without a step refer to. ``evaluated``: all of
        them are of a validation (None: look at their names)."""
        if place is None:
            return
        self.context = place
        if not values:
            return
        step, unit = place
        if rank is not None:
            self.attempt.ranks.add(rank)
            if self._first_rank is None:
                self._first_rank = rank
            if rank != self._first_rank:
                if rank > MAX_RANK:
                    return
                values = {f"{name} [rank{rank}]": amount for name, amount in values.items()}
        self.attempt.store.add_all(values, unit, step, line)
        self.attempt.last_line = line
        if evaluated is None:
            evaluated = all(map(w.EVALUATED.match, values))
        if not evaluated:
            self.attempt.train_line = line

    def final(self, values: Values, line: int) -> None:
        """A closing line: ends, kept apart from the curves."""
        step, unit = self.context or (0.0, "step")
        for name, amount in values.items():
            self.attempt.store.add(FINAL + name, unit, step, amount, line)
        self.attempt.summary_line = line

    def next(self) -> None:
        """Another attempt begins. A banner since the last point belongs to it."""
        old = self.attempt
        told = max([old.last_line, old.summary_line, *(at for kind, at in old.ends.items() if kind != "banner")])
        moved = [e for e in old.events if e.kind == "banner" and (e.where.line or 0) > told]
        old.events = [event for event in old.events if event not in moved]
        if old.telling:
            self.done.append(old)
            del self.done[:-MAX_ATTEMPTS]
        self.attempt = Attempt(Store(self.path))
        for event in moved:
            self.attempt.tell(event, event.where.line or 0)
        self.clock.reset()
        self.context = None
        self.bars.clear()
        self.main_bar = None
        self._bar_epoch.clear()
        self._labels.clear()
        self._turns.clear()

    def finish(self) -> list[Attempt]:
        """All attempts that have something to tell, oldest first."""
        self._flush(None)
        if self.attempt.telling:
            self.done.append(self.attempt)
        return self.done

    def _turn(self, turn: Turn, place: float, unit: StepUnit) -> None:
        if turn == "restart":
            self.next()
            return
        old = self.attempt
        if self._copies < MAX_COPIES:
            self._copies += 1
            seams = [s for s in old.seams if s < place]
            kept = old.store.upto(place, unit)
            self.done.append(old)
            self.attempt = Attempt(
                kept, seams=seams, ranks=set(old.ranks), step_total=old.step_total, epoch_total=old.epoch_total
            )
        if place not in self.attempt.seams:
            self.attempt.seams.append(place)

    def _lead(self, plan: Plan, numbers: Sequence[str], values: Values, line: int) -> None:
        """Lines that open with a bare number: believed once it has risen over three rows."""
        key = (plan.label, *values)
        if plan.step is None or (len(self._leads) >= 200 and key not in self._leads):
            return
        rows = self._leads.setdefault(key, [])
        step = value(numbers[plan.step])
        if len(rows) <= LEAD_ROWS and rows and step <= rows[-1][0]:
            rows.clear()
        if len(rows) < LEAD_ROWS:
            rows.append((step, values, line))
            return
        if len(rows) == LEAD_ROWS:
            for early, held, at in rows:
                self._lead_row(early, held, at, plan)
            rows.append((step, {}, line))
        self._lead_row(step, values, line, plan)

    def _lead_row(self, step: float, values: Values, line: int, plan: Plan) -> None:
        counter = Plan(points=plan.points, key=f"lead {plan.label}".strip())
        self.put(values, (self.step(step, None, None, counter, judge=True), "step"), line)

    def _bar(
        self,
        plan: Plan,
        step: float,
        total: float | None,
        epoch: float | None,
        values: Values,
        line: int,
        rank: int | None,
    ) -> None:
        """A progress bar: its own values, or the counter for the rows that a trainer prints between its pictures."""
        if plan.label.startswith(w.SIDE_BARS):
            return
        size = total if total is not None else -1.0
        before = self.bars.get(size)
        self.bars[size] = step
        if plan.quoted or not values:
            if self.main_bar is None and (total or 0) > 1 and not plan.phase:
                self.main_bar = size
                self.attempt.step_total = total
            if values and self.main_bar is not None:
                self.put(values, (self.bars[self.main_bar], "step"), line, rank)
            elif self.main_bar == size and not self.attempt.store.count:
                self.context = (step, "step")
            return
        if plan.phase:
            if total is not None and (step >= total or not _finite(values)):
                self.put(values, self.context, line, rank)
            return
        if epoch is None and before is not None and step < before and total is not None and before >= 0.95 * total:
            # A bar that begins again after it was full: the next epoch.
            self._bar_epoch[size] = self._bar_epoch.get(size, 0) + 1
        if epoch is None and size in self._bar_epoch:
            epoch = float(self._bar_epoch[size])
        self.put(values, (self.step(step, epoch, total, plan, judge=True), "step"), line, rank)

    def _keras(self, step: float, total: float | None, values: Values, line: int) -> None:
        """A Keras bar: the last state of an epoch counts, and whatever is not finite before."""
        epoch = self.clock.epoch if self.clock.epoch is not None else 1.0
        if not values:
            return
        if total is not None and step >= total:
            self._held = None
            self.put(values, (epoch, "epoch"), line)
        elif not _finite(values):
            self.put(values, (epoch - 1 + (step / total if total else 1.0), "epoch"), line)
        else:
            self._held = (epoch, values, line)

    def _flush(self, epoch: float | None) -> None:
        """The epoch of a Keras bar that never said it was full is over."""
        if self._held is not None:
            at, values, line = self._held
            if epoch is None or epoch != at:
                self._held = None
                self.put(values, (at, "epoch"), line)


def _finite(values: Values) -> bool:
    return all(map(math.isfinite, values.values()))
