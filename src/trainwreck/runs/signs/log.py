"""What the log itself says: how it ended, how many attempts it holds, how long it is. Needs no arithmetic on curves.

Kinds of events come from ``runs/console/events.py``; attempts, seams and the outcome from ``runs/assemble.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwreck.core.evidence import Evidence, Where
from trainwreck.core.run import Run
from trainwreck.runs.signs._curve import View, seen, show

FAMILY = "log"
VERY_SHORT = 5
"""Points below which no trend can be told; a judgement."""
MANY = 3
"""Attempts in one file."""

_TOLD = {
    "time-limit": ("time-limit-message", "the scheduler ended the job at its time limit"),
    "cancelled": ("cancelled-message", "the job was cancelled"),
    "preempted": ("preempted", "the job was preempted"),
    "node-failure": ("node-failure", "a node failed"),
    "interrupted": ("interrupted-message", "the run was interrupted"),
    "killed": ("killed-message", "the process was killed from outside"),
    "host-oom-kill": ("killed-message", "the process was killed because memory ran out"),
    "terminated": ("killed-message", "the process was terminated by a signal"),
    "early-stopping": ("early-stopping-triggered", "early stopping ended the run"),
    "min-loss-scale": ("loss-scale-collapse", "the loss scale reached its minimum"),
    "nonfinite-skip": ("nonfinite-step-skipped", "a step with non-finite values was skipped"),
    "lr-reduced": ("lr-reduced-message", "the learning rate was reduced"),
}
"""Event kind to sign and sentence."""
_EXPLAIN_KILL = frozenset(("time-limit", "cancelled", "preempted", "node-failure", "interrupted"))
_HARMLESS = re.compile(r"^Terminated at |nan iterations: +0\b")
"""LSF's line about the end of any job, and Megatron's counter of NaN iterations while it is zero."""
_PASSED_ON = frozenset(
    (
        "appended-runs",
        "duplicated-epochs",
        "several-folds-in-one-log",
        "two-runs-one-dir",
        "many-attempts",
        "resume-clock-jump",
        "truncated",
        "traceback-not-fatal",
        "dist-child-failed",
    )
)
"""Kinds of events that are signs already: the readers and ``assemble`` found them."""


def find(view: View) -> Iterator[Evidence]:
    """Signs of events, outcome, attempts and length."""
    run = view.run
    yield from _ends(run)
    yield from _attempts(run)
    yield from _length(run)


def earlier(view: View) -> Iterator[Evidence]:
    """How an earlier attempt in the same log ended, where it says so itself."""
    kinds = {event.kind: event for event in reversed(view.run.events)}
    if "dist-child-failed" in kinds:
        event = kinds["dist-child-failed"]
        text = f"in an earlier attempt a child process failed: {event.text.strip()[:160]}"
        yield seen("dist-child-failed", text, event.where, event.value, cls="circumstantial")
    if "traceback" in kinds and view.run.outcome == "crashed":
        text = f"attempt {view.run.attempt} of {view.run.of_attempts} ended in a traceback"
        yield seen("crash-traceback", text, kinds["traceback"].where, cls="circumstantial")


def _ends(run: Run) -> Iterator[Evidence]:
    kinds = {event.kind for event in run.events}
    by_hand = bool(kinds & _EXPLAIN_KILL) or run.outcome in ("cancelled", "time-limit", "interrupted")
    told: set[str] = set()
    for event in run.events:
        sign, text = _TOLD.get(event.kind, ("", ""))
        if not sign or sign in told or _HARMLESS.search(event.text):
            continue
        if event.kind in ("killed", "terminated") and by_hand:
            continue
        told.add(sign)
        yield seen(sign, f"{text}: {event.text.strip()[:160]}", event.where, event.value)
    ending = run.outcome if run.outcome in ("cancelled", "killed", "interrupted", "time-limit") else ""
    if ending and not told & {sign for sign, _ in _TOLD.values() if sign.endswith("-message")} - {"lr-reduced-message"}:
        text = f"the run is recorded as {ending}"
        yield seen(f"{ending}-message", text, Where("log", path=run.path), run.exit_code)
    if run.outcome == "crashed" and run.exit_code not in (None, 0) and "traceback" not in kinds:
        text = f"the process ended with exit code {run.exit_code}"
        yield seen("nonzero-exit", text, Where("log", path=run.path), run.exit_code)
    last, planned = run.last_step, run.planned
    unit = next((s.unit for s in run.series.values()), "step")
    short = planned is not None and last is not None and unit == "step" and last < 0.95 * planned
    nearly = planned is not None and last is not None and last >= 0.97 * planned  # the last print before the end
    if not kinds & {"truncated", "early-stopping"} and (
        (run.outcome == "unfinished" and not nearly) or (run.outcome == "unknown" and short and run.format == "console")
    ):
        of = f" of {show(planned)} planned" if planned else ""
        at = f" at {unit} {show(last)}{of}" if last is not None else ""
        yield seen("truncated", f"the log stops{at} without an end", Where("log", path=run.path, step=last), last)


def _attempts(run: Run) -> Iterator[Evidence]:
    where = Where("log", path=run.path)
    told = set()
    for event in run.events:
        if event.kind in _PASSED_ON and event.kind not in told:
            told.add(event.kind)
            yield seen(event.kind, event.text, event.where, event.value)
    if run.of_attempts > 1 and not told & {"appended-runs", "several-folds-in-one-log"}:
        text = f"the log holds {run.of_attempts} runs one after another; the last one is judged"
        yield seen("appended-runs", text, where, run.of_attempts)
    if run.of_attempts >= MANY and not told & {"many-attempts", "several-folds-in-one-log"}:
        yield seen("many-attempts", f"the log holds {run.of_attempts} attempts", where, run.of_attempts)
    if run.seams and "resumed" not in told:
        more = f" and {len(run.seams) - 1} more times" if run.seams[1:] else ""
        text = f"the run was resumed at {show(run.seams[0])}{more}"
        yield seen("resumed", text, Where("log", path=run.path, step=run.seams[0]), len(run.seams))


def _length(run: Run) -> Iterator[Evidence]:
    longest = max(
        (len(s) for s in run.series.values() if s.role in ("loss", "eval-loss", "reward", "rl-loss", "loss-term")),
        default=0,
    )
    if longest == 2:
        yield seen("two-iterations-only", "only two points of the loss are logged", Where("log", path=run.path), 2)
    if 0 < longest < VERY_SHORT:
        text = f"only {longest} {'point is' if longest == 1 else 'points are'} logged: too few to tell a trend"
        yield seen("very-short-log", text, Where("log", path=run.path), longest)
