"""The gradient norm: huge, exploding, vanishing, spiking, pinned, growing in a straight line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from trainwreck.core.evidence import Evidence
from trainwreck.runs.signs._curve import Curve, View, at_step, seen, show

FAMILY = "gradient"
HUGE = 1e3
"""thresholds.tsv: a gradient norm above 1e3 is an explosion (seed)."""
SPIKE = 5.0
"""thresholds.tsv: a spike is 5 to 10 times the median (judgement)."""
EXPLODES = 10.0
"""thresholds.tsv: above 10 times the trailing median for at least three points (seed and judgement)."""
VANISHED = 1e-8
"""thresholds.tsv: module gradient norm below 1e-8 (seed, heuristic)."""
FADED = 1e-4
"""thresholds.tsv: ratio of 1e-4 (judgement; there between layers, here over time)."""
CLIPPED = 0.9
"""thresholds.tsv: a norm above the threshold at more than 90% of the steps (judgement)."""
MIN_POINTS = 8


def find(view: View) -> Iterator[Evidence]:
    """Signs of the (total) gradient norm."""
    for curve in view.grad_norms[:1]:
        if curve.n < 5 or not curve.v.any():
            continue
        yield from _size(view, curve)
        if curve.n >= MIN_POINTS:
            yield from _spikes(view, curve)
            yield from _trend(view, curve)
            yield from _pinned(view, curve)


def _size(view: View, curve: Curve) -> Iterator[Evidence]:
    lower = curve.level(0.1, 1.0)
    limit = view.setting("max_grad_norm", "gradient_clip_val", "grad_clip", "clip_grad_norm", "clip_grad", "max_norm")
    loss = view.loss
    if lower > HUGE or (lower > 300 and loss is not None and abs(loss.median) < 100):
        text = f"{curve.name} is about {show(lower)} throughout"
        yield seen("grad-norm-huge", text, curve.where(0), lower, end=curve.step(-1))
    elif lower > 100 and loss is not None and loss.n >= 5 and 0.8 * loss.start < loss.end < 20:
        text = f"{curve.name} is about {show(lower)} throughout, and the loss does not fall"
        yield seen("grad-norm-huge", text, curve.where(0), lower, cls="circumstantial", end=curve.step(-1))
    if limit and limit > 0:
        share = float((curve.v > limit).mean())
        if share > CLIPPED and curve.n >= 20 and lower > 3 * limit:
            text = f"{curve.name} is above the clipping threshold {show(limit)} at {share:.0%} of the points"
            yield seen("grad-norm-clipped-always", text, curve.where(0), share, cls="circumstantial")
    still_high = loss is None or not loss.n or loss.end > 0.3 * loss.start
    if curve.n >= MIN_POINTS and 0 < curve.median < VANISHED and still_high:
        text = f"{curve.name} has a median of {show(curve.median)}"
        yield seen("grad-norm-vanishing", text, curve.where(0), curve.median)


def _spikes(view: View, curve: Curve) -> Iterator[Evidence]:
    places = [p for p in curve.spikes(SPIKE, skip=0.05) if curve.stands_out(p)]
    ended_well = curve.end < SPIKE * curve.median
    if not places or curve.n < 15 or not ended_well:
        return
    worst = max(places, key=lambda p: curve.top[p] / curve.smooth[p])
    ratio = float(curve.top[worst] / curve.smooth[worst])
    where = f"at {at_step(curve, worst)} ({show(float(curve.top[worst]))}, {ratio:.1f} times its level)"
    if len(places) <= 2:
        yield seen("grad-norm-spike-isolated", f"{curve.name} has an isolated spike {where}", curve.where(worst), ratio)
    else:
        text = f"{curve.name} spikes {len(places)} times, most {where}, and comes back each time"
        yield seen("grad-norm-spikes-recovered", text, curve.where(worst), ratio)


def _trend(view: View, curve: Curve) -> Iterator[Evidence]:
    import numpy as np

    blocks = curve.blocks(10)
    usual = float(np.median(blocks[: max(2, len(blocks) // 2)]))
    last = blocks[-max(1, len(blocks) // 5) :]
    if usual > 0 and float(last.min()) > EXPLODES * usual and _harmed(view):
        text = f"{curve.name} grows from {show(usual)} to {show(float(last[-1]))} and stays there"
        yield seen("grad-norm-exploding", text, curve.where(-1), float(last[-1]) / usual)
    loss = view.loss
    still_high = loss is None or not loss.n or loss.end > 0.3 * loss.start
    faded = float(blocks[0]) > 0 and float(last.max()) < FADED * float(blocks[0])
    if usual > 0 and faded and still_high and float(last.max()) < 1e-3:
        text = f"{curve.name} fades from {show(float(blocks[0]))} to {show(float(last[-1]))} while the loss stays high"
        yield seen("grad-norm-vanishing", text, curve.where(-1), float(last[-1]) / float(blocks[0]))
    early = curve.v[: max(12, curve.n // 2)] if curve.n >= 24 else curve.v
    if len(early) >= 10 and early[0] > 0:
        x = np.arange(len(early), dtype=np.float64)
        fit = float(np.corrcoef(x, early)[0, 1]) if float(np.ptp(early)) > 0 else 0.0
        if fit > 0.95 and float(early[-1]) > 5 * float(early[0]) and len(early) * 0.5 < float(early[-1] / early[0]) * 2:
            text = f"{curve.name} grows in a straight line from {show(float(early[0]))} to {show(float(early[-1]))}"
            yield seen("grad-norm-grows-linearly", text, curve.where(0), fit, cls="circumstantial")


def _harmed(view: View) -> bool:
    """The loss is unknown, became non-finite, or stands above its lowest level: a growing norm alone harms nobody."""
    loss = view.loss
    if loss is None or loss.n < 5 or len(loss.index) < loss.count:
        return True
    return loss.end > 1.05 * float(loss.blocks(20).min())


def _pinned(view: View, curve: Curve) -> Iterator[Evidence]:
    import numpy as np

    top = float(np.max(curve.top))
    middle = curve.median
    if middle <= 0 or curve.n < 10:
        return
    share = float((np.abs(curve.v - middle) <= 1e-3 * middle).mean())
    if share > 0.7 and top <= 1.01 * middle:
        text = f"{curve.name} is pinned at {show(middle)} at {share:.0%} of the points: it is logged after clipping"
        # Clipping at every step is how many runs are meant; by itself it costs nothing.
        yield replace(seen("grad-norm-pinned", text, curve.where(0), middle), severity="suggestion")
