"""Loss scale and skipped steps of fp16 training."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.core.evidence import Evidence
from trainwreck.runs.signs._curve import Curve, View, at_step, seen, show

FAMILY = "precision"
MINIMUM = 1.0
"""DeepSpeed's smallest loss scale, at which it aborts (thresholds.tsv, partly verified)."""
LOW = 128.0
"""thresholds.tsv: below 128 for long is a collapse (derived from GradScaler's defaults)."""
FALL = 1024.0
"""Ten halvings with no recovery; the initial search of Megatron makes eight to nineteen, but at the start."""
INITIAL = 0.25
"""Share of the run in which the search for a scale is normal, and at least this many points: see below."""
INITIAL_POINTS = 5
SKIPPED = 0.05
"""thresholds.tsv: more than 5% skipped steps (healthy: less than one per growth interval)."""


def find(view: View) -> Iterator[Evidence]:
    """A collapse of the loss scale, skips in the settling phase, skips later."""
    for curve in view.all("loss-scale")[:1]:
        if curve.n >= 3:
            yield from _scale(view, curve)
    for curve in view.all("skipped")[:1]:
        yield from _skips(view, curve)
    if not view.all("skipped"):
        yield from _skip_events(view)


def _scale(view: View, curve: Curve) -> Iterator[Evidence]:
    if not (curve.v > 0).all() or float(curve.v.max()) < 2 * MINIMUM or float(curve.v[0]) < 2:
        return
    last = float(curve.v[-1])
    tail = curve.v[-max(2, curve.n // 20) :]
    top = float(curve.v[: max(1, curve.n // 2)].max())
    settled = curve.n >= 10 and float(curve.blocks(10)[-3:].min()) == float(curve.blocks(10)[-3:].max())
    at_bottom = float(tail.max()) <= MINIMUM
    if (at_bottom and top >= 16) or (top / last >= FALL and float(tail.max()) < LOW and not (settled and last >= LOW)):
        text = f"the loss scale falls from {show(top)} to {show(last)} at {at_step(curve, curve.n - 1)}"
        yield seen("loss-scale-collapse", text, curve.where(-1), last)
    elif top / last >= 4 and curve.n >= 3:
        falls = [i for i in range(1, curve.n) if curve.v[i] < 0.75 * curve.v[i - 1]]
        early = max(INITIAL_POINTS, INITIAL * curve.n)
        if falls and falls[-1] <= early:
            text = f"the loss scale settles from {show(top)} to {show(last)} in the first {falls[-1] + 1} logged points"
            yield seen("fp16-initial-skips", text, curve.where(0), last, cls="circumstantial")


def _skips(view: View, curve: Curve) -> Iterator[Evidence]:
    import numpy as np

    cumulative = bool((np.diff(curve.v) >= 0).all()) and float(curve.v[-1]) > 1 and curve.n >= 3
    each = np.diff(curve.v, prepend=curve.v[0] * 0) if cumulative and len(set(curve.v.tolist())) > 2 else curve.v
    places = np.flatnonzero(each > 0)
    if not len(places):
        return
    planned = view.run.planned
    late = places[places > max(INITIAL_POINTS, INITIAL * curve.n)]
    settled = curve.n >= 20 and int(places[0]) > INITIAL * curve.n  # no search for a scale begins after a clean quarter
    if planned and curve.series.unit == "step" and curve.step(-1) < 0.3 * planned and not settled:
        late = places[[curve.step(int(p)) > 0.1 * planned for p in places]] if len(places) else places
    if len(late) >= max(2, SKIPPED * curve.n):
        text = f"{len(late)} of {curve.n} logged points have skipped steps after the loss scale should have settled"
        yield seen("fp16-overflow-skips", text, curve.where(int(late[0])), len(late))
    else:
        text = f"steps are skipped up to {at_step(curve, int(places[-1]))} while the loss scale settles"
        yield seen("fp16-initial-skips", text, curve.where(int(places[0])), float(each[places].sum()))


def _skip_events(view: View) -> Iterator[Evidence]:
    """Messages of skipped steps (``overflow``, ``skipped-step`` and the like) counted over the log."""
    events = [e for e in view.run.events if "overflow" in e.kind or "skipped" in e.kind or e.kind == "loss-scale"]
    if not events:
        return
    last_line = max((e.where.line or 0 for e in view.run.events), default=0)
    lines = [e.where.line or 0 for e in events]
    first = events[0]
    late = [x for x in lines if x > 0.35 * last_line]
    if len(events) > 20 or (len(events) >= 3 and len(late) >= 2 and lines[-1] > 0.6 * last_line):
        text = f"{len(events)} messages say that a step was skipped because gradients overflowed"
        yield seen("fp16-overflow-skips", text, first.where, len(events))
    else:
        text = f"{len(events)} messages of skipped steps while the loss scale settles"
        yield seen("fp16-initial-skips", text, first.where, len(events), cls="circumstantial")
