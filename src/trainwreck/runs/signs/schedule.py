"""The learning rate: zero, dead long before the end, restarted at a resume, decaying far too fast, without warm-up."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.core.evidence import Evidence
from trainwreck.runs.signs._curve import Curve, View, at_step, seen, show

FAMILY = "schedule"
DEAD = 1e-4
"""Share of the peak below which nothing is learned; cosine floors of real recipes are 0.1 to 0.01 of the peak."""
DEAD_FOR = 0.25
"""Share of the run spent there. Rounded tails of a step schedule reach a sixth of a run; thresholds.tsv has > 10%
at the floor as too short (judgement)."""
TOO_FAST = 1e-6
"""Fall in the first quarter of a run that no intended schedule makes; a judgement (1e-3 a step interval is common)."""
TINY = 1e-6
"""Supervised recipes use 1e-5 and more; a millionth is for preference and reinforcement stages (TRL's defaults)."""
MIN_POINTS = 5


def find(view: View) -> Iterator[Evidence]:
    """Signs of the first learning rate that is logged with enough points."""
    rates = [c for c in view.all("lr") if c.n >= 3]
    if not rates:
        return
    curve = max(rates, key=lambda c: (float(c.v.max()), c.n))
    peak = float(curve.v.max())
    if peak <= 0:
        if curve.n >= MIN_POINTS:
            text = f"{curve.name} is 0 at all {curve.count} logged points"
            yield seen("lr-zero-throughout", text, curve.where(0), 0.0, end=curve.step(-1))
        return
    if peak <= TINY and not view.is_rl and not view.is_preference and curve.n >= MIN_POINTS:
        text = f"{curve.name} is never above {show(peak)}"
        yield seen("lr-tiny", text, curve.where(int(curve.v.argmax())), peak, cls="circumstantial")
    yield from _first_zero(view, curve, peak)
    yield from _dies(view, curve, peak)
    yield from _seams(view, curve, peak)
    yield from _end(view, curve, peak)
    yield from _warmup(view, curve, peak)


def _first_zero(view: View, curve: Curve, peak: float) -> Iterator[Evidence]:
    """Zero at more than the first point: a warm-up that does not rise."""
    zeros = 0
    while zeros < curve.n and curve.v[zeros] <= 1e-7 * peak:
        zeros += 1
    skipping = any(c.v.any() for c in view.all("skipped"))
    if zeros >= 3 and zeros >= 0.1 * curve.n and not skipping:
        text = (
            f"{curve.name} is 0 up to {at_step(curve, zeros - 1)}, then {show(float(curve.v[min(zeros, curve.n - 1)]))}"
        )
        yield seen("lr-zero-in-warmup", text, curve.where(0), curve.step(zeros - 1), end=curve.step(zeros - 1))


def _dies(view: View, curve: Curve, peak: float) -> Iterator[Evidence]:
    if curve.n < MIN_POINTS:
        return
    top = int(curve.v.argmax())
    below = [i for i in range(top, curve.n) if curve.v[i] <= DEAD * peak]
    if not below or below[-1] != curve.n - 1:
        return
    # The unbroken stretch at the end counts: a cyclic schedule touches zero and comes back.
    first = curve.n - 1
    while first > top and curve.v[first - 1] <= DEAD * peak:
        first -= 1
    start, end = curve.step(0), max(curve.step(-1), view.run.planned or 0.0 if curve.series.unit == "step" else 0.0)
    share = (end - curve.step(first)) / max(end - start, 1e-12)
    quarter = float(curve.v[min(curve.n - 1, max(1, curve.n // 4))])
    ratios = [float(curve.v[i] / curve.v[i - 1]) for i in range(1, curve.n) if curve.v[i - 1] > 0]
    falls = sum(1 for r in ratios if r < 0.05)
    returns = any(curve.v[i] > 0.5 * peak for i in range(below[0], curve.n))
    if returns:
        return
    if quarter < TOO_FAST * peak or (falls >= 3 and curve.v[-1] < 1e-8 * peak):
        text = f"{curve.name} falls from {show(peak)} to {show(quarter)} in the first quarter of the run"
        yield seen("lr-decays-too-fast", text, curve.where(0), quarter / peak)
    if share >= DEAD_FOR and curve.n - first >= 3:
        text = f"{curve.name} is practically 0 from {at_step(curve, first)} on, {share:.0%} of the run"
        yield seen("lr-zero-early", text, curve.where(first), share, end=curve.step(-1))


def _seams(view: View, curve: Curve, peak: float) -> Iterator[Evidence]:
    """A jump of the learning rate where a resume joined two parts."""
    seams = [
        *view.run.seams,
        *(e.where.step for e in view.run.events if "resum" in e.kind and e.where.step is not None),
    ]
    for seam in seams:
        before = [i for i in range(curve.n) if curve.step(i) <= seam]
        if not before or before[-1] + 1 >= curve.n:
            continue
        old, new = float(curve.v[before[-1]]), float(curve.v[before[-1] + 1])
        usual = max(
            (abs(float(curve.v[i] - curve.v[i - 1])) for i in range(1, curve.n) if i != before[-1] + 1), default=0
        )
        if abs(new - old) > 3 * usual and abs(new - old) > 0.15 * peak:
            text = f"{curve.name} jumps from {show(old)} to {show(new)} where the run was resumed"
            yield seen("lr-jump-at-resume", text, curve.where(before[-1] + 1), new / max(old, 1e-12))
            return


def _end(view: View, curve: Curve, peak: float) -> Iterator[Evidence]:
    """A decay that was under way and far from its end when the run completed as planned."""
    planned, last = view.run.planned, float(curve.v[-1])
    reached = planned is not None and curve.series.unit == "step" and curve.step(-1) >= 0.95 * planned
    top = int(curve.v.argmax())
    smooth = all(curve.v[i] <= curve.v[i - 1] * 1.0001 for i in range(top + 1, curve.n))
    distinct = len({float(x) for x in curve.v[top:]})
    if reached and smooth and distinct > 0.5 * (curve.n - top) and curve.n >= 10 and 0.3 * peak < last < 0.95 * peak:
        text = f"{curve.name} was still at {last / peak:.0%} of its peak when the planned steps were done"
        yield seen("lr-decay-unfinished", text, curve.where(-1), last / peak, cls="circumstantial")


def _warmup(view: View, curve: Curve, peak: float) -> Iterator[Evidence]:
    """Full rate from the first point, which says something only next to an early rise of the loss."""
    if curve.n >= 4 and float(curve.v[0]) >= 0.98 * peak and curve.step(0) <= 0.02 * max(curve.step(-1), 1.0) + 1:
        text = f"{curve.name} is at its peak {show(peak)} from the first logged point"
        yield seen("lr-without-warmup", text, curve.where(0), peak, cls="circumstantial")
