"""Points of one attempt, in bounded memory: when there are too many, the longest series are thinned.

Thinning keeps the smallest and the largest of every four points, the first and the last, and all that are not finite,
so that spikes and the onset of NaN stay where they were.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping

from trainwreck.core.run import Series, StepUnit
from trainwreck.runs.console.objective import roles
from trainwreck.runs.roles import in_context, role_of

MAX_POINTS = 3_000_000
"""Points of an attempt over all series, 24 bytes each: 72 MB. A judgement that leaves room below 400 MB in all."""
MAX_SERIES = 1500
"""More names than this are not names of metrics but words of a text."""
MIN_CURVE = 3
"""Points of an unknown name below which it is not taken for a metric."""
KEEP_NONFINITE = 20_000
PER_EPOCH = " (per epoch)"
FINAL = "final/"


class Column:
    """One growing series."""

    __slots__ = ("lines", "nonfinite", "steps", "thinned", "values")

    def __init__(self) -> None:
        self.steps: array[float] = array("d")
        self.values: array[float] = array("d")
        self.lines: array[int] = array("q")
        self.thinned = 0

    def __len__(self) -> int:
        return len(self.values)

    def repeats(self, step: float, value: float) -> bool:
        """True if the last point is the same."""
        if not self.steps or self.steps[-1] != step:
            return False
        before = self.values[-1]
        return before == value or (before != before and value != value)

    def thin(self) -> None:
        """Keep about half of the points."""
        import numpy as np

        values = np.array(self.values)
        total = len(values)
        whole = (total - 2) // 4 * 4
        groups = values[1 : 1 + whole].reshape(-1, 4)
        finite = np.isfinite(groups)
        first = 1 + 4 * np.arange(len(groups))
        lowest = first + np.where(finite, groups, np.inf).argmin(axis=1)
        highest = first + np.where(finite, groups, -np.inf).argmax(axis=1)
        broken = np.flatnonzero(~np.isfinite(values))[:KEEP_NONFINITE]
        rest = np.arange(1 + whole, total)
        keep = np.unique(np.concatenate([[0], lowest, highest, broken, rest]))
        self.thinned = self.thinned or total
        self.values = array("d", values[keep].tobytes())
        self.steps = array("d", np.array(self.steps)[keep].tobytes())
        self.lines = array("q", np.array(self.lines, dtype=np.int64)[keep].tobytes())

    def upto(self, step: float) -> Column:
        """A copy of the points before ``step``."""
        copy = Column()
        copy.thinned = self.thinned
        end = len(self.steps)
        while end and self.steps[end - 1] >= step:
            end -= 1
        copy.steps, copy.values, copy.lines = self.steps[:end], self.values[:end], self.lines[:end]
        return copy


class Store:
    """All series of one attempt, by name and unit of their steps."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.columns: dict[tuple[str, StepUnit], Column] = {}
        self._by_unit: dict[StepUnit, dict[str, Column]] = {}
        self.count = 0
        self.overfull = False

    def add(self, name: str, unit: StepUnit, step: float, value: float, line: int) -> None:
        """One point. The same value again at the same step (another rank, a repeated line) is the same point."""
        column = self.columns.get((name, unit))
        if column is None:
            if len(self.columns) >= MAX_SERIES:
                self.overfull = True
                return
            column = self.columns[(name, unit)] = Column()
        elif column.repeats(step, value) and not (unit == "epoch" and value != value):
            return  # NaN after NaN within one epoch is the next print, not the same one
        column.steps.append(step)
        column.values.append(value)
        column.lines.append(line)
        self.count += 1
        if self.count > MAX_POINTS:
            self._thin()

    def add_all(self, values: Mapping[str, float], unit: StepUnit, step: float, line: int) -> None:
        """The points of one line: ``add`` for each, written out because it runs for every line of a log."""
        known = self._by_unit.get(unit)
        if known is None:
            known = self._by_unit[unit] = {}
        for name, value in values.items():
            column = known.get(name)
            if column is None:
                self.add(name, unit, step, value, line)
                if (name, unit) in self.columns:
                    known[name] = self.columns[(name, unit)]
                continue
            steps = column.steps
            if steps[-1] == step and column.repeats(step, value) and not (unit == "epoch" and value != value):
                continue
            steps.append(step)
            column.values.append(value)
            column.lines.append(line)
            self.count += 1
        if self.count > MAX_POINTS:
            self._thin()

    def _thin(self) -> None:
        longest = max(len(c) for c in self.columns.values())
        for column in self.columns.values():
            if len(column) > max(longest // 2, 1000):
                column.thin()
        self.count = sum(len(c) for c in self.columns.values())

    @property
    def telling(self) -> bool:
        """True if a name is known as a metric, or one has points enough for a curve; prose has neither."""
        for (name, _), column in self.columns.items():
            bare = name.removeprefix(FINAL)
            if len(column) >= MIN_CURVE or role_of(bare) is not None or roles([bare], []):
                return True
        return False

    def upto(self, step: float, unit: StepUnit) -> Store:
        """A copy with the points before ``step``, for a run that resumed there. Series of other units are kept
        whole."""
        copy = Store(self.path)
        for (name, own), column in self.columns.items():
            part = column.upto(step if own == unit else math.inf)
            if len(part):
                copy.columns[(name, own)] = part
        copy.count = sum(len(c) for c in copy.columns.values())
        return copy

    def series(self) -> dict[str, Series]:
        """The series by name. Where one name has points per step and per epoch, the latter get a suffix."""
        found: dict[str, Series] = {}
        names = {name for name, unit in self.columns if unit != "epoch"}
        curves = [name for name, _ in self.columns if not name.startswith(FINAL) and " [rank" not in name]
        by_company = roles(curves, [name.removeprefix(FINAL) for name, _ in self.columns if name.startswith(FINAL)])
        company: dict[str, str | None] = {**in_context(curves), **by_company}
        for (name, unit), column in self.columns.items():
            shown = name + PER_EPOCH if unit == "epoch" and name in names else name
            while shown in found:
                shown += "'"
            if name.startswith(FINAL):
                role: str | None = "final"
            else:
                role = None if " [rank" in name else company.get(name)
            steps = spread(column.steps) if unit == "epoch" else column.steps
            found[shown] = Series(shown, role, unit, steps, column.values, self.path, column.lines)
        return found

    def notes(self) -> list[str]:
        """One sentence for each thing that was left out."""
        told = [
            f"{name}: {column.thinned} or more points were thinned to {len(column)}; extremes and non-finite poi"
            f"nts are kept"
            for (name, _), column in self.columns.items()
            if column.thinned
        ]
        if self.overfull:
            told.append(f"more than {MAX_SERIES} different names with numbers; further ones were left out")
        return told[:20]


def spread(steps: array[float]) -> array[float]:
    """Epochs that are repeated (several prints in one epoch) become fractions of it, if that is the habit of the
    series."""
    total = len(steps)
    repeats = sum(1 for i in range(1, total) if steps[i] == steps[i - 1])
    if total < 3 or repeats < 0.3 * total:
        return steps
    result = array("d")
    start = 0
    while start < total:
        end = start
        while end < total and steps[end] == steps[start]:
            end += 1
        width = steps[end] - steps[start] if end < total and steps[end] > steps[start] else 1.0
        width = min(width, 1.0)
        count = end - start
        result.extend(steps[start] + width * k / count for k in range(count))
        start = end
    return result
