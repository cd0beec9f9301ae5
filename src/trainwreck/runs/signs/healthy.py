"""What speaks against a failure: a loss that falls and stays down, a score that rises, a disturbance overcome."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwreck.core.evidence import Evidence
from trainwreck.runs.signs._curve import Curve, View, seen, show

FAMILY = "healthy"
FALL = 0.05
"""Relative fall of the loss that counts as learning; a judgement, five times the "no learning" of thresholds.tsv."""
NOISY = 0.25
"""Scatter over level above which a curve looks alarming although its level is steady; a judgement."""
MIN_POINTS = 6


def find(view: View) -> Iterator[Evidence]:
    """Signs of health; told to the reasoning, not to the reader."""
    loss = view.loss if view.loss is not None else view.eval_loss
    if loss is not None and loss.n >= MIN_POINTS and not view.is_rl and not view.is_gan:
        yield from _loss(view, loss)
    for curve in view.all("eval-metric", "metric"):
        if (
            re.search(r"acc|f1|auc|map|r2|iou|dice|recall|precision|bleu|rouge|top1", curve.name.lower())
            and curve.n >= 4
        ):
            if (
                curve.end > curve.start + 3 * curve.noise
                and curve.end > 1.1 * curve.start
                and curve.end > 0.9 * float(curve.v.max())
            ):
                text = f"{curve.name} rises from {show(curve.start)} to {show(curve.end)}"
                yield seen("metric-improves", text, curve.where(-1), curve.end, cls="circumstantial")
            break
    if view.is_rl:
        for curve in view.all("rl-loss", "policy-loss")[:1]:
            if curve.n >= 3 and abs(float(curve.v[0])) < 1e-6 and bool(curve.v.any()):
                text = f"{curve.name} starts at zero, as it does for on-policy groups"
                yield seen("grpo-loss-zero", text, curve.where(0), 0.0, cls="circumstantial")


def _loss(view: View, loss: Curve) -> Iterator[Evidence]:
    lowest = float(loss.blocks(20).min())
    falls = loss.end < (1 - FALL) * loss.low_start or (loss.start < 0 and loss.end < loss.start)
    finite = len(loss.index) == loss.count
    if (
        falls
        and finite
        and loss.end <= max(1.1 * lowest, lowest + 2 * loss.scatter, lowest + 0.05 * (loss.start - lowest))
    ):
        text = f"{loss.name} falls from {show(loss.start)} to {show(loss.end)} and stays there"
        yield seen(
            "loss-falls", text, loss.where(-1), loss.end / loss.start if loss.start else None, cls="circumstantial"
        )
        if loss.scatter > NOISY * abs(loss.median):
            text = f"{loss.name} is noisy but its level is settled at {show(loss.end)}"
            yield seen("noisy-but-converged", text, loss.where(-1), loss.scatter, cls="circumstantial")
        ev = view.eval_loss
        if ev is not None and ev.n >= 3 and ev.end <= 1.03 * float(ev.v.min()):
            yield seen("eval-loss-at-best", f"{ev.name} ends at its best", ev.where(-1), ev.end, cls="circumstantial")
            yield seen("healthy-end", f"{ev.name} ends at its best", ev.where(-1), ev.end, cls="circumstantial")
    terms = [c for c in view.all("loss-term") if c.n >= MIN_POINTS]
    rising = [c for c in terms if c.end > 1.2 * c.start > 0]
    if falls and finite and rising:
        text = f"{rising[0].name} rises from {show(rising[0].start)} to {show(rising[0].end)} while the total falls"
        yield seen("healthy-component-rises", text, rising[0].where(-1), cls="circumstantial")
    if finite and rises_by_design(view, loss):
        text = f"{loss.name} rises evenly over the whole run while everything else goes as planned"
        yield seen("loss-rises-by-design", text, loss.where(-1), loss.end / loss.start, cls="circumstantial")


def rises_by_design(view: View, loss: Curve) -> bool:
    """An even rise from first to last, while the learning rate decays to its end or the validation loss falls.

    A divergence is neither even nor does it go on while the rate shrinks; a curriculum does.
    """
    steps = loss.blocks(20)
    even = len(steps) >= 10 and all(steps[i] >= 0.98 * steps[i - 1] for i in range(1, len(steps)))
    if not even or loss.start <= 0 or loss.end < 1.5 * loss.start:
        return False
    rates = view.all("lr")
    decays = bool(rates) and rates[0].n >= 4 and rates[0].end < 0.1 * float(rates[0].v.max())
    ev = view.eval_loss
    falls = ev is not None and ev is not loss and ev.n >= 4 and ev.end < 0.95 * float(ev.v[0])
    return decays or falls
