"""Rows of a metrics file to runs: cut at restarts, resume seams closed, memory bounded.

What is decided here, for all formats with rows:

- The step goes back to (about) where the file began: a new attempt, or the next fold.
- The step goes back into the middle: a resume. What the resumed part tells again is dropped from the older part.
- The step goes back while the epoch goes on: steps count within the epoch; they are continued.
- The step goes back every few rows: the file is out of order (several writers); it is sorted.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trainwreck.core.evidence import Where
from trainwreck.core.run import Event, Outcome, Run, Setting, StepUnit
from trainwreck.runs.build import SeriesBuilder
from trainwreck.runs.roles import role_of, split_of

MISSING = -1.234567890123457e303
"""Stands for an absent cell in the row buffers; no metric has this value, and it is not NaN, which may be written."""
DRAIN_CELLS = 2_000_000
"""Cells (8 bytes each) in the row buffers before they are moved into series, which are bounded themselves."""
MANY_SEAMS = 0.02
"""More backward steps than this share of the rows (and more than ten) mean disorder; a job resumes a few times."""
SAME_LEVEL = 0.5
"""Epoch-wise counters against restarts: the loss goes on from where it was if it comes back by less than this share of
the way to its first value; a judgement."""


@dataclass
class _Layout:
    names: tuple[str, ...]
    steps: array[float] = field(default_factory=lambda: array("d"))
    lines: array[int] = field(default_factory=lambda: array("q"))
    cells: array[float] = field(default_factory=lambda: array("d"))
    last: float = -math.inf
    first: float = math.inf
    count: int = 0

    def interval(self) -> float:
        """Steps from one row to the next since the step began to count."""
        return (self.last - self.first) / (self.count - 1) if self.count > 1 else max(self.last, 1.0)


@dataclass
class _Attempt:
    builder: SeriesBuilder
    first: float = math.inf
    last: float = -math.inf
    rows: int = 0
    line: int = 0
    seams: list[tuple[int, float]] = field(default_factory=list)
    group: str | None = None
    dropped: dict[float, tuple[int, int]] = field(default_factory=dict)


class RunRecorder:
    """Takes rows in file order and gives back one Run an attempt."""

    def __init__(
        self, path: str, form: str, *, unit: StepUnit = "step", numbered: bool = True, cut: bool = True
    ) -> None:
        """``cut=False`` for formats in which the step can't restart within a file."""
        self.path, self.format, self.unit, self.numbered, self.cut = path, form, unit, numbered, cut
        self._attempts: list[_Attempt] = []
        self._layouts: dict[tuple[str, ...], _Layout] = {}
        self._cells = 0
        self._offset = 0.0
        self._epoch: float | None = None
        self._reasons: set[str] = set()

    def row(
        self,
        names: tuple[str, ...],
        values: Sequence[float],
        step: float,
        line: int,
        epoch: float | None = None,
        group: str | None = None,
    ) -> None:
        """One row: ``values[i]`` is that of ``names[i]`` or MISSING. ``group`` names the fold or seed of the row."""
        if not self._attempts:
            self._begin(line, group)
        current = self._attempts[-1]
        if group is not None and group != current.group:
            if current.rows:
                self._begin(line, group)
                self._reasons.add("fold")
                current = self._attempts[-1]
            current.group = group
        layout = self._layouts.get(names)
        if layout is None:
            layout = self._layouts[names] = _Layout(names)
        if step < layout.last and self.cut:
            self._back(step, layout, line, epoch)
            current = self._attempts[-1]
            layout = self._layouts.setdefault(names, _Layout(names))
        layout.last = step
        layout.first = min(layout.first, step)
        layout.count += 1
        step += self._offset
        layout.steps.append(step)
        layout.lines.append(line)
        layout.cells.extend(values)
        if current.rows == 0:
            current.first = step
        current.rows += 1
        if step > current.last:
            current.last = step
        if epoch is not None and epoch != MISSING:
            self._epoch = epoch
        self._cells += len(names)
        if self._cells > DRAIN_CELLS:
            self._drain()

    def rows(self, names: tuple[str, ...], cells: array[float], step_at: int | None, line: int) -> None:
        """Many rows at once, row after row in ``cells``. ``step_at``: index of the step in ``names``; None: the line is
        the step. Steps must not go back within them (the caller looks)."""
        if not cells:
            return
        if not self._attempts:
            self._begin(line, None)
        count = len(cells) // len(names)
        lines = array("q", range(line, line + count))
        steps = cells[step_at :: len(names)] if step_at is not None else array("d", lines)
        layout = self._layouts.setdefault(names, _Layout(names))
        layout.last = steps[-1]
        layout.first = min(layout.first, steps[0])
        layout.count += count
        if self._offset:
            steps = array("d", [step + self._offset for step in steps])
        current = self._attempts[-1]
        if current.rows == 0:
            current.first = steps[0]
        current.last = max(current.last, steps[-1])
        current.rows += count
        layout.steps.extend(steps)
        layout.lines.extend(lines)
        layout.cells.extend(cells)
        self._cells += len(cells)
        if self._cells > DRAIN_CELLS:
            self._drain()

    def block(self, name: str, steps: array[float], values: array[float], order: array[int]) -> None:
        """Many points of one metric whose steps do not go back."""
        if not self._attempts:
            self._begin(order[0], None)
        current = self._attempts[-1]
        current.first = min(current.first, steps[0])
        current.last = max(current.last, steps[-1])
        current.rows += len(steps)
        layout = self._layouts.setdefault((name,), _Layout((name,)))
        layout.last = steps[-1]
        current.builder.extend(name, steps, values, order)

    def last_of(self, names: tuple[str, ...]) -> float:
        """The last step of this layout in the current attempt, minus infinity if it has none."""
        layout = self._layouts.get(names)
        return layout.last if layout else -math.inf

    def restart(self, line: int) -> None:
        """Something else than the step says that a new run begins here: a repeated header, a banner."""
        if self._attempts and self._attempts[-1].rows:
            self._begin(line, None)

    def finish(
        self,
        *,
        skip: Sequence[str] = (),
        roles: Mapping[str, str | None] | None = None,
        settings: Mapping[str, Setting] | None = None,
        outcome: Outcome = "unknown",
        planned: float | None = None,
        notes: Sequence[str] = (),
    ) -> list[Run]:
        """The runs, in file order. ``skip`` are columns that are no metrics (the step itself)."""
        self._drain()
        attempts = [a for a in self._attempts if a.builder]
        for attempt in attempts:
            for name in skip:
                attempt.builder.columns.pop(name, None)
            self._close_seams(attempt)
        attempts = [a for a in attempts if a.builder]
        if "fold" not in self._reasons:
            attempts = _join_epochs(attempts)
        events = self._events(attempts)
        runs = []
        for index, attempt in enumerate(attempts):
            thinned = ("long series were thinned to their extremes",) if attempt.builder.thinned else ()
            last = index == len(attempts) - 1
            runs.append(
                Run(
                    path=self.path,
                    format=self.format,
                    series=attempt.builder.series(roles),
                    attempt=index + 1,
                    of_attempts=len(attempts),
                    settings=settings or {},
                    events=[*(events if last else ()), *self._seam_events(attempt)],
                    outcome=outcome if last else "unknown",
                    planned=planned,
                    seams=[step for _, step in attempt.seams],
                    files=(self.path,),
                    notes=(*notes, *thinned),
                )
            )
        return runs

    def _begin(self, line: int, group: str | None) -> None:
        if self._attempts:
            self._drain()
        self._layouts.clear()
        self._offset = 0.0
        self._epoch = None
        self._attempts.append(_Attempt(SeriesBuilder(self.path, self.unit, self.numbered), line=line, group=group))

    def _back(self, step: float, layout: _Layout, line: int, epoch: float | None) -> None:
        """The step of this layout went back to ``step``."""
        current = self._attempts[-1]
        interval = (current.last - current.first) / max(1, current.rows - 1)
        if epoch is not None and self._epoch is not None and epoch > self._epoch:
            self._offset = current.last + max(layout.interval(), 1.0) - step
            for other in self._layouts.values():
                other.last, other.first, other.count = -math.inf, math.inf, 0
        elif step <= current.first + 1.5 * interval or step <= 1:
            self._begin(line, current.group)
        else:
            current.seams.append((line, step))
            for other in self._layouts.values():
                other.last = min(other.last, step)

    def _drain(self) -> None:
        """Move the row buffers into the series of the current attempt, in the order of the file."""
        if not self._attempts:
            return
        builder = self._attempts[-1].builder
        pieces: dict[str, list[tuple[array[float], array[float], array[int]]]] = {}
        for layout in self._layouts.values():
            width = len(layout.names)
            for index, name in enumerate(layout.names):
                values = layout.cells[index::width]
                steps, lines = layout.steps, layout.lines
                if MISSING in values:
                    kept = [i for i, value in enumerate(values) if value != MISSING]
                    values = array("d", [values[i] for i in kept])
                    steps = array("d", [steps[i] for i in kept])
                    lines = array("q", [lines[i] for i in kept])
                if values:
                    pieces.setdefault(name, []).append((steps, values, lines))
            layout.steps, layout.lines, layout.cells = array("d"), array("q"), array("d")
        for name, parts in pieces.items():
            if len(parts) == 1:
                builder.extend(name, *parts[0])
                continue
            merged = sorted(
                (item for steps, values, lines in parts for item in zip(lines, steps, values, strict=True)),
                key=lambda item: item[0],
            )
            builder.extend(
                name,
                array("d", [item[1] for item in merged]),
                array("d", [item[2] for item in merged]),
                array("q", [item[0] for item in merged]),
            )
        self._cells = 0

    def _close_seams(self, attempt: _Attempt) -> None:
        if len(attempt.seams) > max(10, MANY_SEAMS * attempt.rows):
            attempt.seams.clear()
            for column in attempt.builder.columns.values():
                order = sorted(range(len(column.steps)), key=column.steps.__getitem__)
                column.steps = array("d", [column.steps[i] for i in order])
                column.values = array("d", [column.values[i] for i in order])
                column.lines = array("q", [column.lines[i] for i in order])
            return
        for line, step in attempt.seams:
            gone = broken = 0
            for column in attempt.builder.columns.values():
                old = {i for i, s in enumerate(column.steps) if s >= step and column.lines[i] < line}
                if old:
                    gone = max(gone, len(old))
                    broken += sum(not math.isfinite(column.values[i]) for i in old)
                    column.drop(old)
            attempt.dropped[step] = (gone, broken)

    def _seam_events(self, attempt: _Attempt) -> list[Event]:
        found = []
        for line, step in attempt.seams:
            gone, broken = attempt.dropped.get(step, (0, 0))
            text = f"resumed at {self.unit} {step:g}: {gone} rows of the earlier part are told again"
            if broken:
                text += f", with {broken} values in the earlier part that are not finite"
            where = Where("metric", path=self.path, line=line if self.numbered else None, step=step)
            found.append(Event("resume-seam", text, where, {"step": step, "dropped": gone, "nonfinite": broken}))
            if gone and self.unit == "epoch":
                again = f"{gone} epochs occur twice, from epoch {step:g} on"
                found.append(Event("duplicated-epochs", again, where, gone))
        return found

    def _events(self, attempts: Sequence[_Attempt]) -> list[Event]:
        if len(attempts) < 2:
            return []
        last = attempts[-1]
        where = Where("metric", path=self.path, line=last.line if self.numbered else None, step=last.first)
        count = len(attempts)
        found = []
        if "fold" in self._reasons:
            text = f"{count} folds or seeds stand one after another in this file"
            found.append(Event("several-folds-in-one-log", text, where, count))
        else:
            text = f"{count} runs stand one after another in this file; the {self.unit} starts again"
            found.append(Event("appended-runs", text, where, count))
        if self.unit == "epoch":
            text = f"epochs occur more than once in this file ({count} times from the start)"
            found.append(Event("duplicated-epochs", text, where, count))
        return found


def _join_epochs(attempts: list[_Attempt]) -> list[_Attempt]:
    """One attempt instead of many if they are epochs of one run whose step counts within the epoch.

    Told by equal lengths and by a loss that goes on from where it was instead of coming back to its first value.
    """
    if len(attempts) < 3:
        return attempts
    spans = [a.last - a.first for a in attempts[:-1]]
    rows = [a.rows for a in attempts[:-1]]
    if max(spans) != min(spans) or max(rows) != min(rows) or attempts[0].builder._unit == "epoch":
        return attempts
    if attempts[-1].last > attempts[0].last or not _goes_on(attempts):
        return attempts
    joined = attempts[0]
    interval = max(1.0, (joined.last - joined.first) / max(1, joined.rows - 1))
    for part in attempts[1:]:
        offset = joined.last + interval - part.first
        for name, column in part.builder.columns.items():
            steps = array("d", [step + offset for step in column.steps])
            joined.builder.extend(name, steps, column.values, column.lines)
        joined.rows += part.rows
        joined.last = part.last + offset
    return [joined]


def _goes_on(attempts: Sequence[_Attempt]) -> bool:
    names = [n for n in attempts[0].builder.columns if role_of(n) in ("loss", "loss-term") and split_of(n)[0] != "eval"]
    if not names:
        return False
    name = names[0]
    columns = [a.builder.columns.get(name) for a in attempts]
    starts = [_median(c.values[: max(1, len(c.values) // 10)]) for c in columns if c]
    ends = [_median(c.values[-max(1, len(c.values) // 10) :]) for c in columns if c]
    back = [abs(start - end) <= SAME_LEVEL * abs(starts[0] - end) for start, end in zip(starts[1:], ends, strict=False)]
    return len(back) > 1 and sum(back) > 0.7 * len(back)


def _median(values: Sequence[float]) -> float:
    ordered = sorted(value for value in values if math.isfinite(value))
    return ordered[len(ordered) // 2] if ordered else math.nan
