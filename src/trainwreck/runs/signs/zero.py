"""Quantities that are exactly zero although they cannot be."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwreck.core.evidence import Evidence
from trainwreck.runs.signs._curve import Curve, View, at_step, seen

FAMILY = "zero"
MIN_POINTS = 5
"""Fewer points can be a coincidence of rounding (two decimals printed); a judgement."""
MIN_EVALS = 3
"""Evaluations are rarer and printed with more digits; three exact zeros are enough (a judgement)."""


def find(view: View) -> Iterator[Evidence]:
    """Loss, gradient norm, validation loss, detection score, KL or format reward that is exactly zero throughout."""
    yield from _training(view)
    yield from _evaluation(view)
    yield from _reinforcement(view)


def _zero(curve: Curve, minimum: int) -> bool:
    return curve.count >= minimum and curve.n == curve.count and not curve.top.any() and not curve.low.any()


def _training(view: View) -> Iterator[Evidence]:
    for curve in view.all("loss"):
        if _zero(curve, MIN_POINTS):
            yield _said("zero-loss", "the loss", curve)
            break
        falls = _falls_to_zero(curve)
        if falls is not None:
            where = curve.where(falls)
            text = f"{curve.name} is exactly 0 from {at_step(curve, falls)} on, straight from {curve.v[falls - 1]:.4g}"
            yield seen("zero-loss", text, where, 0.0, end=float(curve.series.steps[-1]))
            yield seen("loss-drops-to-zero", text, where, float(curve.v[falls - 1]), cls="circumstantial")
            break
    for curve in view.grad_norms:
        if _zero(curve, MIN_POINTS):
            yield _said("zero-grad-norm", "the gradient norm", curve)
            break
    for curve in view.part_norms:
        if _zero(curve, MIN_POINTS):
            yield _said("part-grad-norm-zero", "the gradient norm of one part", curve)
            break
    classes = view.named(r"^train[/_ ]?.*cls_?loss$")
    if classes and all(_zero(c, MIN_POINTS) for c in classes):
        others = [c for c in view.named(r"^train[/_ ]?.*(box|obj|dfl)_?loss$") if not _zero(c, MIN_POINTS)]
        if others:
            yield _said("single-class-cls-loss-zero", "the classification loss", classes[0])


def _evaluation(view: View) -> Iterator[Evidence]:
    losses = view.all("eval-loss", "eval-loss-term")
    dead = [c for c in losses if _zero(c, MIN_EVALS)]
    only_classes = dead and all(re.search(r"cls", c.name, re.IGNORECASE) for c in dead)
    if dead and not only_classes:
        yield _said("val-loss-zero", "the validation loss", dead[0])
    scores = view.named(r"m?AP([_@ -]?[0-9.:-]+|\(|$)|bbox_mAP|coco/|map50")
    scores = [c for c in scores if not re.search(r"loss|^lr|step|mape|map(e|ping)", c.name, re.IGNORECASE)]
    if scores and all(_zero(c, MIN_EVALS) for c in scores):
        yield _said("zero-map", "the detection score", scores[0])


def _reinforcement(view: View) -> Iterator[Evidence]:
    for curve in view.all("kl"):
        if _zero(curve, MIN_POINTS) and not view.is_vae:
            yield _said("zero-kl", "the KL divergence", curve)
            break
    for curve in view.all("reward-term", "eval-reward-term"):
        if re.search(r"format|xml|tag", curve.name, re.IGNORECASE) and _zero(curve, MIN_POINTS):
            yield _said("format-reward-zero", "the format reward", curve)
            break


def _falls_to_zero(curve: Curve) -> int | None:
    """The place from which on a loss that was far from zero is exactly zero for at least a quarter of the run."""
    import numpy as np

    busy = np.flatnonzero(curve.top)
    if not len(busy) or curve.size > 1:
        return None
    first = int(busy[-1]) + 1
    long_enough = curve.n - first >= max(MIN_POINTS, curve.n // 4)
    return first if long_enough and float(curve.v[first - 1]) > 0.05 * curve.start else None


def _said(sign: str, noun: str, curve: Curve) -> Evidence:
    named = curve.name if noun.split()[-1] in curve.name.lower() else f"{noun} {curve.name}"
    text = f"{named} is exactly 0 at all {curve.count} logged points"
    return seen(sign, text, curve.where(0), 0.0, end=float(curve.series.steps[-1]))
