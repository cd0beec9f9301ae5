"""Attempts that go on where the one before ended are one curve with a seam."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from trainwreck.core.run import Run, Series

NEAR = 3.0
"""Spacings between the last step of one attempt and the first of the next that still count as going on."""


def whole(runs: Sequence[Run]) -> list[Run]:
    """``runs`` with each chain of attempts that continue one another joined; attempts are numbered anew."""
    joined: list[Run] = []
    for run in runs:
        before = joined[-1] if joined else None
        follows = before is not None and run.attempt > 1 and before.path == run.path
        if before is not None and follows and _is_tail(run):
            ended = before.outcome if run.outcome == "unknown" else run.outcome
            joined[-1] = replace(before, attempt=run.attempt, outcome=ended, events=[*before.events, *run.events])
        elif before is not None and follows and _goes_on(before, run):
            joined[-1] = _join(before, run)
        else:
            joined.append(run)
    starts: dict[str, int] = {}
    for run in joined:
        starts[run.path] = starts.get(run.path, 0) + 1
    number: dict[str, int] = {}
    result = []
    for run in joined:
        number[run.path] = number.get(run.path, 0) + 1
        several = run.of_attempts > 1 and len(joined) < len(runs)
        result.append(replace(run, attempt=number[run.path], of_attempts=starts[run.path]) if several else run)
    return result


def _is_tail(after: Run) -> bool:
    """``after`` holds no curve and opens nothing of its own: the rest of a report of how the one before ended.

    A chain of exceptions and the tracebacks of several ranks look like starts of a program, and are none.
    """
    if any(len(s) for s in after.series.values()):
        return False
    return not {"banner", "restart", "resumed"} & {event.kind for event in after.events}


def _goes_on(before: Run, after: Run) -> bool:
    """The same longest metric continues right behind the last step of ``before``, which ended in a seam."""
    shared = [
        name for name in after.series if name in before.series and len(after.series[name]) and len(before.series[name])
    ]
    if not shared or not before.seams:
        return False
    name = max(shared, key=lambda n: len(before.series[n]))
    old, new = before.series[name].steps, after.series[name].steps
    spacing = min((b - a for a, b in pairwise([*old[-5:], *new[:5]]) if b > a), default=1.0)
    return 0 < new[0] - old[-1] <= NEAR * spacing


def _join(before: Run, after: Run) -> Run:
    series: dict[str, Series] = dict(before.series)
    for name, late in after.series.items():
        early = series.get(name)
        if early is None:
            series[name] = late
            continue
        lines = None
        if early.lines is not None and late.lines is not None:
            lines = array("q", [*early.lines, *late.lines])
        series[name] = replace(
            early,
            steps=array("d", [*early.steps, *late.steps]),
            values=array("d", [*early.values, *late.values]),
            lines=lines,
        )
    last = max((s.steps[-1] for s in before.series.values() if len(s)), default=0.0)
    seams = tuple(sorted({*before.seams, *after.seams, last}))
    settings = {**before.settings, **after.settings}
    events = [*before.events, *after.events]
    return replace(after, series=series, seams=seams, settings=settings, events=events)
