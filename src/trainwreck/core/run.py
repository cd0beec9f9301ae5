"""What was recorded of a training: series, configuration, events, how it ended."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from trainwreck.core.evidence import Where

StepUnit = Literal["step", "epoch", "row", "sample", "token", "env-step", "update"]
Outcome = Literal["completed", "crashed", "killed", "interrupted", "cancelled", "time-limit", "unfinished", "unknown"]


@dataclass(frozen=True, slots=True)
class Series:
    """One metric over a run attempt, in the order in which it was written.

    ``name`` is the framework's own key; ``role`` is ours (``loss``, ``eval-loss``, ``lr``, ``grad-norm`` …, see
    ``runs/roles.py``) or None. ``steps[i]`` belongs to ``values[i]``; ``lines[i]`` is its line in ``path`` where known.
    Cells that were absent are absent here; a written ``nan`` is kept as NaN.
    """

    name: str
    role: str | None
    unit: StepUnit
    steps: array[float]
    values: array[float]
    path: str
    lines: array[int] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def where(self, index: int) -> Where:
        """The place of one point."""
        line = self.lines[index] if self.lines is not None and self.lines[index] > 0 else None
        return Where("metric", path=self.path, line=line, step=self.steps[index], metric=self.name)


@dataclass(frozen=True, slots=True)
class Event:
    """A line of a log that says something of its own: a skipped step, a scheduler message, a restart."""

    kind: str
    text: str
    where: Where
    value: Any = None


@dataclass(frozen=True, slots=True)
class Setting:
    """One configured value and the place that decided it. ``key`` is dotted: ``optimizer.lr``."""

    key: str
    value: Any
    where: Where


@dataclass(frozen=True, slots=True)
class Run:
    """One attempt at one run, possibly assembled from several files.

    ``attempt`` counts from 1 within ``of_attempts``; the last attempt is judged first. ``planned`` is the number of
    steps (in the unit of the series) that was intended, where something says so. ``seams`` are steps at which a resume
    joined two parts. ``ranks`` are the ranks whose lines went in.
    """

    path: str
    format: str
    series: Mapping[str, Series]
    attempt: int = 1
    of_attempts: int = 1
    settings: Mapping[str, Setting] = field(default_factory=dict)
    events: Sequence[Event] = ()
    outcome: Outcome = "unknown"
    exit_code: int | None = None
    planned: float | None = None
    seams: Sequence[float] = ()
    ranks: Sequence[int] = ()
    files: Sequence[str] = ()
    notes: Sequence[str] = ()

    def by_role(self, *roles: str) -> list[Series]:
        """Series with one of these roles, in the order of ``roles``, then longest first."""
        found = [s for s in self.series.values() if s.role in roles]
        return sorted(found, key=lambda s: (roles.index(s.role or ""), -len(s), s.name))

    @property
    def last_step(self) -> float | None:
        steps = [s.steps[-1] for s in self.series.values() if len(s)]
        return max(steps) if steps else None
