"""What validation says against training: overfitting with onset, explosions, gaps, suspicious perfection."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwreck.core.evidence import Evidence, EvidenceClass
from trainwreck.runs.signs._curve import Curve, View, at_step, seen, show

FAMILY = "evaluation"
MIN_EVALS = 4
"""thresholds.tsv: three evaluations after the minimum tell overfitting (judgement), so at least four in all."""
RISE = 1.08
"""Rise of the validation loss over its minimum; a judgement above the usual wobble of a plateau."""
GAP = 0.2
"""thresholds.tsv: a generalisation gap above 20% relative (judgement; the seed calls below 5% healthy)."""
EXPLODES = 5.0
"""Times its best value; a judgement: overfitting alone rarely gets there without many epochs."""


def find(view: View) -> Iterator[Evidence]:
    """Signs over evaluation curves. Several validation terms are judged by their sum."""
    total = _total(view)
    if total is not None and float(total.low.min()) >= 0 and float(total.top.max()) <= 1 and _error_falls(view):
        total = None
    if total is not None and not view.is_rl and not view.is_gan:
        yield from _against_training(view, total)
        yield from _explodes(view, total)
    yield from _near_zero(view)
    yield from _scores(view)
    yield from _trivial(view)
    yield from _swings(view)


def _total(view: View) -> Curve | None:
    """The validation loss, or the sum of its terms where only terms are logged at the same steps."""
    from array import array

    from trainwreck.core.run import Series

    curves = view.all("eval-loss")
    terms = view.all("eval-loss-term")
    if curves or len(terms) < 2:
        return next(iter([*curves, *terms]), None)
    if any(c.count != terms[0].count for c in terms):
        return terms[0]
    values = [sum(row) for row in zip(*(c.series.values for c in terms), strict=True)]
    first = terms[0].series
    joined = Series(first.name, "eval-loss", first.unit, first.steps, array("d", values), first.path, first.lines)
    return Curve(joined)


def _error_falls(view: View) -> bool:
    """A validation error (mse, wer …) falls to less than half: a "loss" that rises beside it is another quantity."""
    from trainwreck.runs.roles import lower_is_better

    return any(c.end < 0.5 * c.start for c in view.all("eval-metric") if lower_is_better(c.name) and c.n >= MIN_EVALS)


def _score(view: View) -> Curve | None:
    wanted = r"acc|f1|auc|map|r2|iou|dice|recall|precision|bleu|rouge|reward|top1"
    found = [c for c in view.all("eval-metric") if re.search(wanted, c.name.lower())]
    return max(found, key=lambda c: c.n, default=None)


def _train_level(view: View, step: float) -> tuple[float, float] | None:
    """Training loss about ``step`` and at the end."""
    import numpy as np

    loss = view.loss
    if loss is None or loss.n < 3:
        return None
    steps = np.array([loss.step(i) for i in range(loss.n)])
    place = int(np.searchsorted(steps, step))
    width = max(1, loss.n // 20)
    part = loss.v[max(0, place - width) : max(1, min(loss.n, place + width))]
    return (float(np.median(part)), loss.end) if len(part) else None


def _goes_below(view: View, end: float, lowest: float) -> bool:
    """The training loss ends below the best validation loss, or at least still falls in the second half of the run.

    A run that blew up and came back to chance ends where it stood: its training loss fell too, and memorised nothing.
    """
    loss = view.loss
    return end < lowest or (loss is not None and loss.level(0.75, 1.0) < 0.97 * loss.level(0.5, 0.75))


def _against_training(view: View, total: Curve) -> Iterator[Evidence]:
    if total.n < MIN_EVALS - 1:
        return
    values = total.smooth if total.n >= 12 else total.v
    best = int(values.argmin())
    lowest = float(values[best])
    exact = int(total.v.argmin())
    if float(values[exact]) <= 1.02 * lowest:
        best, lowest = exact, float(total.v[exact])
    after = total.n - 1 - best
    end = total.end if total.n >= 8 else float(total.v[-1])
    score = _score(view)
    improving = (
        score is not None
        and score.n >= 4
        and score.end >= 0.98 * float(score.v.max())
        and score.end > max(1.02 * float(score.v[0]), float(score.v[0]) + score.noise)
        and score.end > (1 if score.n < 6 else 1.005) * score.level(0.0, 0.6)
    )
    need = RISE if not improving else 1.5
    clear = end > max(need, 1.15) * lowest
    enough = after >= max(2, total.n // 10) or (after >= 1 and total.n <= 10 and clear)
    rising = enough and lowest > 0 and end > need * lowest and end - lowest > 3 * total.noise * (total.n >= 6)
    levels = _train_level(view, total.step(best))
    falls = levels is None or (levels[1] < 0.97 * levels[0] and _goes_below(view, levels[1], lowest))
    if rising and falls and levels is not None and levels[0] > 0:
        text = (
            f"{total.name} is lowest at {at_step(total, best)} ({show(lowest)}) and rises to {show(end)}, while the "
            f"training loss falls from {show(levels[0])} to {show(levels[1])}"
        )
        value = {"onset": total.step(best), "best": lowest, "end": end}
        cls: EvidenceClass = "direct" if after >= 2 else "circumstantial"
        yield seen("eval-loss-rises-train-falls", text, total.where(best), value, cls=cls, end=total.step(-1))
        if levels[1] < 0.2 * end:
            text = f"the training loss ends at {show(levels[1])}, the validation loss at {show(end)}"
            yield seen("train-val-gap", text, total.where(-1), end / max(levels[1], 1e-12), cls="circumstantial")
    elif rising:
        text = f"{total.name} rises from {show(lowest)} at {at_step(total, best)} to {show(end)}"
        yield seen("eval-loss-rises", text, total.where(best), end / lowest, cls="circumstantial", end=total.step(-1))
    elif levels is not None and 0 < levels[1] < 0.3 * end and levels[1] < 0.5 * levels[0] and total.n >= MIN_EVALS:
        text = f"the training loss ends at {show(levels[1])}, the validation loss at {show(end)}"
        yield seen("train-val-gap", text, total.where(-1), end / levels[1], cls="circumstantial")
    if levels is not None and total.n >= MIN_EVALS and 0 < end < 0.5 * levels[1]:
        text = f"the validation loss ends at {show(end)}, less than half the training loss {show(levels[1])}"
        yield seen("val-better-than-train", text, total.where(-1), end / levels[1], cls="inferred")


def _explodes(view: View, total: Curve) -> Iterator[Evidence]:
    if total.n < 3 or (total.v <= 0).all():
        return
    for place in range(1, total.n):
        best = float(total.v[:place].min())
        top = float(total.top[place])
        if best > 0 and top > EXPLODES * best and top > 1.5 * float(total.v[0]) and top - best > 8 * total.noise:
            text = (
                f"{total.name} jumps to {show(top)} at {at_step(total, place)}; its best value before is {show(best)}"
            )
            yield seen("val-loss-explodes", text, total.where(place), top / best)
            return
    rise = total.end / float(total.v.min()) if float(total.v.min()) > 0 else 0.0
    if total.n >= MIN_EVALS and rise > 3.0 and total.end > 1.2 * float(total.v[0]):
        place = int(total.v.argmin())
        text = f"{total.name} grows to {show(rise)} times its best value {show(float(total.v[place]))}"
        yield seen("val-loss-explodes", text, total.where(place), rise, end=total.step(-1))


def _near_zero(view: View) -> Iterator[Evidence]:
    """Training loss close to zero with nothing to compare it with, or far below any entropy of natural data."""
    loss = view.loss
    if loss is None or view.is_rl or view.is_gan or view.is_diffusion or loss.n < 5 or (loss.v < 0).any():
        return
    has_eval = bool(view.all("eval-loss", "eval-metric"))
    if 0 < loss.end < 0.02 and loss.start > 0.3 and loss.end < 0.02 * loss.start and not has_eval:
        text = f"{loss.name} ends at {show(loss.end)} and no evaluation is logged"
        yield seen("train-loss-near-zero-no-eval", text, loss.where(-1), loss.end, cls="circumstantial")
    total = view.eval_loss
    if total is not None and total.n >= 2 and 0 < total.end < 0.02 and 0 < loss.end < 0.02 and loss.start > 2.0:
        text = f"training and validation loss both end near zero ({show(loss.end)} and {show(total.end)})"
        yield seen("loss-suspiciously-low", text, total.where(-1), total.end, cls="circumstantial")


def _trivial(view: View) -> Iterator[Evidence]:
    """The loss falls while a score of overlap or detection stays at zero: the output is constant or empty."""
    loss = view.loss
    if loss is None or loss.n < 5 or not 0 < loss.end < 0.8 * loss.start or view.is_rl:
        return
    wanted = r"(^|[/_ -])(f1|dice|iou|miou|jaccard|recall|precision|sensitivity|exact_match|em|bleu)"
    scores = [c for c in view.all("eval-metric", "metric") if re.search(wanted, c.name.lower()) and c.count >= 5]
    dead = [c for c in scores if not c.top[c.n // 5 :].any()]
    if dead and len(dead) >= 0.5 * len(scores):
        text = f"{dead[0].name} stays at 0 while {loss.name} falls from {show(loss.start)} to {show(loss.end)}"
        yield seen("trivial-solution", text, dead[0].where(-1), 0.0)


def _swings(view: View) -> Iterator[Evidence]:
    """A score by epoch that goes up and down by more than a third of its range again and again, without a good end."""
    loss = view.loss
    if view.is_rl or (loss is not None and loss.n >= 5 and loss.end <= 1.2 * float(loss.v.min())):
        return
    for curve in view.all("metric", "eval-metric"):
        by_epoch = curve.series.unit == "epoch" or curve.series.role == "eval-metric"
        size = float(curve.v.max() - curve.v.min()) if curve.n else 0.0
        if not by_epoch or not 8 <= curve.n <= 400 or not 0.15 < size <= 1.0:
            continue
        turns, last, direction = 0, float(curve.v[0]), 0
        for value in curve.v[1:]:
            way = 1 if value - last > size / 3 else -1 if last - value > size / 3 else 0
            if way and way != direction:
                turns, direction = turns + 1, way
            if way:
                last = float(value)
        if turns >= max(5, curve.n // 6):
            text = f"{curve.name} swings up and down {turns} times by more than a third of its range"
            yield seen("train-unstable", text, curve.where(0), turns, cls="inferred")
            return


def _scores(view: View) -> Iterator[Evidence]:
    """Scores: accuracy constant at a class share, gap between training and validation accuracy."""
    accuracies = [c for c in view.all("eval-metric") if re.search(r"acc", c.name.lower())]
    train = [c for c in view.all("metric") if re.search(r"acc", c.name.lower())]
    for curve in accuracies[:1]:
        if curve.n >= MIN_EVALS and 0.05 < curve.median < 0.995 and float(curve.v.max() - curve.v.min()) < 1e-9:
            text = f"{curve.name} is exactly {show(curve.median)} at all {curve.n} evaluations"
            yield seen("eval-metric-constant", text, curve.where(0), curve.median)
            loss = view.loss
            if curve.n >= 5 and loss is not None and loss.n >= 5 and 0.95 * loss.start < loss.end < 1.1 * loss.start:
                text = f"{curve.name} never changes and {loss.name} ends within 5% of its start"
                yield seen("no-learning", text, curve.where(0), curve.median, cls="circumstantial")
            elif train and train[0].n >= 5 and bool((abs(train[0].v - curve.median) < 0.15 * curve.median).all()):
                text = f"{curve.name} never changes and {train[0].name} stays beside it"
                yield seen("no-learning", text, curve.where(0), curve.median, cls="circumstantial")
        for other in train[:1]:
            gap = other.end - curve.end
            ev = view.eval_loss
            settled = ev is not None and ev.n >= MIN_EVALS and ev.end <= 1.2 * float(ev.v.min())
            if settled:
                continue  # a gap beside a validation loss at its best is the usual difference of the two sets
            if curve.n >= MIN_EVALS and other.n >= MIN_EVALS and other.end <= 1.0001 and gap > 0.15 and other.end > 0.9:
                text = f"{other.name} ends at {other.end:.3f}, {curve.name} at {curve.end:.3f}"
                yield seen("train-val-accuracy-gap", text, curve.where(-1), gap, cls="circumstantial")
