"""One attempt while it is read, and how it ended."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from trainwreck.core.run import Event, Outcome, Run, StepUnit
from trainwreck.runs.console.events import EVENTS, MAX_EVENTS
from trainwreck.runs.console.settings import Settings
from trainwreck.runs.console.store import FINAL, Store

FORMAT = "console"
_ORDER = {rule.kind: place for place, rule in enumerate(EVENTS)}
_OUTCOMES: dict[str, Outcome] = {rule.kind: rule.outcome for rule in EVENTS if rule.outcome is not None}
_GOOD = ("completed", "clean-exit")
_TELLING = frozenset(kind for kind in _OUTCOMES if kind not in _GOOD) | {
    "traceback",
    "overflow-skip",
    "min-loss-scale",
    "nonfinite-skip",
}


@dataclass
class Attempt:
    """Series, events and totals of one attempt. ``last_line`` is the line of the last point of
    a curve, ``train_line`` that of the last point that is not from a validation."""

    store: Store
    events: list[Event] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)
    seams: list[float] = field(default_factory=list)
    ranks: set[int] = field(default_factory=set)
    last_line: int = 0
    train_line: int = 0
    summary_line: int = 0
    step_total: float | None = None
    epoch_total: float | None = None
    per_epoch: float | None = None
    exit_code: int | None = None
    settings_at: int = 0

    def tell(self, event: Event, line: int) -> None:
        """Keep an event. Of many of one kind the first and the newest are kept."""
        count = self.counts[event.kind] = self.counts.get(event.kind, 0) + 1
        if count > MAX_EVENTS:
            oldest = [i for i, e in enumerate(self.events) if e.kind == event.kind][MAX_EVENTS // 2]
            del self.events[oldest]
        self.events.append(event)
        self.ends[event.kind] = line
        if event.kind in (
            "nonzero-exit",
            "clean-exit",
            "killed",
            "terminated",
            "aborted",
            "segmentation-fault",
            "dist-child-failed",
        ):
            code = event.value
            if isinstance(code, float) and math.isfinite(code) and abs(code) < 100_000:
                self.exit_code = int(code)

    @property
    def telling(self) -> bool:
        """True if there is something to say about it."""
        return self.store.telling or any(e.kind in _TELLING for e in self.events)

    def outcome(self) -> Outcome:
        """How it ended: what was said after the last point; else whether the planned length was reached."""
        late = [
            kind
            for kind, line in self.ends.items()
            if line >= self.last_line or (kind in _GOOD and line >= self.train_line)
        ]
        bad = sorted((k for k in late if k in _OUTCOMES and k not in _GOOD), key=_ORDER.__getitem__)
        finished = max((self.ends.get(k, 0) for k in _GOOD), default=0)
        if bad and self.ends[bad[0]] >= min(finished or self.ends[bad[0]], self.ends[bad[0]]):
            return _OUTCOMES[bad[0]]
        if "traceback" in late and not (self.ends["traceback"] < finished):
            return "crashed"
        if any(k in late for k in _GOOD) or self.summary_line > self.last_line > 0:
            return "completed"
        planned, last = self.planned(), self.last()
        if planned and last is not None:
            return "completed" if last >= planned * 0.995 - 1 else "unfinished"
        return "unknown"

    def unit(self) -> StepUnit:
        """The unit of the longest series."""
        longest = max(self.store.columns.items(), key=lambda item: len(item[1]), default=None)
        return longest[0][1] if longest else "step"

    def last(self) -> float | None:
        unit = self.unit()
        steps = [
            c.steps[-1] for (n, u), c in self.store.columns.items() if u == unit and len(c) and not n.startswith(FINAL)
        ]
        return max(steps) if steps else None

    def planned(self) -> float | None:
        """The intended length in the unit of the longest series."""
        if self.unit() == "epoch":
            return self.epoch_total
        if self.per_epoch and self.epoch_total:
            return self.per_epoch * self.epoch_total
        return None if self.per_epoch else self.step_total

    def run(self, number: int, of: int, settings: Settings) -> Run:
        """The finished attempt."""
        said = [f"{n} lines of kind {k}, {MAX_EVENTS} of them kept" for k, n in self.counts.items() if n > MAX_EVENTS]
        return Run(
            path=self.store.path,
            format=FORMAT,
            series=self.store.series(),
            attempt=number,
            of_attempts=of,
            settings=dict(settings.found),
            events=tuple(self.events),
            outcome=self.outcome(),
            exit_code=self.exit_code,
            planned=self.planned(),
            seams=tuple(self.seams),
            ranks=tuple(sorted(self.ranks)),
            files=(self.store.path,),
            notes=(*self.store.notes(), *said),
        )
