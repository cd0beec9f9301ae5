"""How the training loss moves: overshoot, spikes, jumps, rises, divergence, swings, implausible size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from trainwreck.core.evidence import Evidence, Severity
from trainwreck.runs.signs._curve import Curve, View, at_step, seen, show
from trainwreck.runs.signs.healthy import rises_by_design

FAMILY = "loss"
OVERSHOOT = 1.3
"""Warm-up overshoots that real logs show go from 12 to 22-77 (artifact-formats.md 2.4); below 1.3x it is noise."""
LARGE_OVERSHOOT = 3.0
"""An overshoot that no noise makes; the lower end of those seen is 2 (artifact-formats.md), a margin on top."""
ABOVE_START = 1.15
"""End level over start level; a judgement: above the scatter between batches."""
RISE = 1.2
"""Long rise: end level over the lowest level; thresholds.tsv has +15% (seed example), and a margin for noise."""
DIVERGED = 1.5
"""thresholds.tsv: loss above 1.5x its running minimum (judgement)."""
JUMP = 1.2
"""Level after over level before; thresholds.tsv has 1.1-1.5x for a spike (judgement)."""
SPIKE = 1.5
"""Upper end of the 1.1-1.5x of thresholds.tsv: heavy-tailed batch losses reach the lower end by themselves."""
HUGE = 1e6
"""A loss of this size is in the units of the data. Sums over pixels of an image batch reach 1e5; a judgement."""
LANGUAGE = ("hf-trainer", "llamafactory", "trl")
"""Formats whose runs mostly train on tokens or classes: ln(vocabulary) is at most 12.5, and 50 leaves a wide margin."""
CAME_BACK = 0.5
"""End level over the worst level below which a run has recovered; a judgement: half."""
MIN_POINTS = 8
"""Below this no level is told from noise; a judgement."""


def find(view: View) -> Iterator[Evidence]:
    """Signs of the training loss. Silent for RL and adversarial objectives, whose loss is no measure of progress."""
    curve = view.loss if view.loss is not None else view.eval_loss
    if curve is None or not curve.n or view.is_gan:
        return
    yield from _magnitude(view, curve)
    yield from _in_units(view)
    if view.is_rl or view.is_moved:
        return
    yield from _overshoot(view, curve)
    if curve.n >= MIN_POINTS and not (curve.v < 0).any() and not _contradicted(view, curve):
        yield from _levels(view, curve)
        yield from _spikes(view, curve)
        yield from _seam(view, curve)
    yield from _few(curve)


def _seam(view: View, curve: Curve) -> Iterator[Evidence]:
    """A loss that is clearly higher right after a resume than right before it."""
    import numpy as np

    for seam in view.run.seams:
        before = [i for i in range(curve.n) if curve.step(i) <= seam][-5:]
        after = [i for i in range(curve.n) if curve.step(i) > seam][:3]
        if len(before) < 3 or len(after) < 2:
            continue
        old, new = float(np.median(curve.v[before[-3:]])), float(np.median(curve.v[after]))
        usual = float(np.median(np.abs(np.diff(curve.v[before]))))
        if new > JUMP * old and new - old > 2.5 * usual:
            text = f"{curve.name} jumps from {show(old)} to {show(new)} where the run was resumed"
            yield seen("loss-jump-at-resume", text, curve.where(after[0]), new / max(old, 1e-12))
            return


def _magnitude(view: View, curve: Curve) -> Iterator[Evidence]:
    if view.is_rl:
        return
    worst = max(view.all("loss", "loss-term"), key=lambda c: abs(c.median), default=curve)
    size = max(abs(worst.low_start), abs(curve.low_start))
    if size >= HUGE and curve.count >= 3:
        text = f"{worst.name} starts at {show(size)}: a loss of that size is in the units of raw data"
        yield seen("loss-scale-wrong", text, worst.where(0), size)
    elif view.run.format.startswith(LANGUAGE) and curve.start > 50 and curve.count >= 5 and not view.is_preference:
        text = f"{curve.name} starts at {show(curve.start)}; a mean over tokens or classes is below about 12"
        yield seen("loss-scale-wrong", text, curve.where(0), curve.start, cls="circumstantial")
    elif size >= 1e4 and curve.count >= 5 and curve.end > 0.1 * curve.start:
        text = f"{worst.name} starts at {show(size)} and still stands at {show(curve.end)}"
        yield seen("loss-scale-wrong", text, worst.where(0), size, cls="circumstantial")


def _in_units(view: View) -> Iterator[Evidence]:
    """An error in the units of the target that is far above one: the target was not scaled."""
    for curve in view.named(r"(^|[/_ ])(rmse|mae|mape?)$"):
        if curve.series.role in ("metric", "eval-metric") and curve.n >= 2 and curve.median > 50:
            text = f"{curve.name} is about {show(curve.median)}, in the units of the target"
            yield seen("regression-error-in-units", text, curve.where(0), curve.median, cls="circumstantial")
            return


def _overshoot(view: View, curve: Curve) -> Iterator[Evidence]:
    """A rise above the start in the first part of the run. Told without a reproach: most runs recover."""
    if curve.n < 3 or curve.v[0] <= 0:
        return
    values = curve.v
    early = max(3, int(0.35 * curve.n)) if curve.n > 6 else curve.n
    planned = view.run.planned
    if planned and curve.series.unit == "step":
        early = max(3, sum(1 for i in range(min(curve.n, 400)) if curve.step(i) <= 0.1 * planned))
        early = min(early, curve.n)
    first = float(values[0]) if curve.n < 40 else curve.start
    place = int(values[:early].argmax())
    if curve.n >= 20 and place + 1 < curve.n:
        # One noisy batch is no overshoot: a neighbour must stand high as well.
        neighbours = max(float(values[max(0, place - 1)]) if place > 1 else 0.0, float(values[place + 1]))
    else:
        neighbours = float(values[place])
    high = place >= 1 and min(values[place], neighbours) > OVERSHOOT * first
    if high and (curve.n < MIN_POINTS or values[place:].min() < 0.75 * values[place]):
        text = f"{curve.name} rises from {show(first)} to {show(float(values[place]))} at {at_step(curve, place)}"
        severity = _severity(curve)
        ratio = float(values[place]) / first
        yield replace(seen("early-overshoot", text, curve.where(place), ratio), severity=severity)
        if values[place] > LARGE_OVERSHOOT * first:
            yield replace(seen("early-overshoot-large", text, curve.where(place), ratio), severity=severity)


def _severity(curve: Curve) -> Severity | None:
    """Less than the failure's own where all is finite and the loss has come back from its worst: an unsteady run that
    trains is not lost."""
    back = curve.end < CAME_BACK * float(curve.blocks(20).max())
    return "warning" if back and len(curve.index) == curve.count else None


def _contradicted(view: View, curve: Curve) -> bool:
    """A training error beside the loss falls to less than half while the "loss" stays a share: a shifted column."""
    if not (float(curve.low.min()) >= 0 and float(curve.top.max()) <= 1):
        return False
    from trainwreck.runs.roles import lower_is_better

    errors = [c for c in view.all("metric") if lower_is_better(c.name) and c.n >= MIN_POINTS and c.start > 0]
    return any(c.end < 0.5 * c.start for c in errors)


def _levels(view: View, curve: Curve) -> Iterator[Evidence]:
    import numpy as np

    if rises_by_design(view, curve):
        return
    blocks = curve.blocks(20)
    noise = max(curve.noise, curve.scatter)
    lowest = int(blocks.argmin())
    low, last = float(blocks[lowest]), float(blocks[-3:].min() if len(blocks) >= 12 else blocks[-1])
    start = curve.low_start
    never_back = float(curve.v[max(1, curve.n // 4) :].min()) > ABOVE_START * start
    rest = float(np.median(curve.v[curve.n // 4 :]))
    if curve.end > ABOVE_START * start and (curve.end - start > 3 * noise or never_back or rest > SPIKE * start):
        text = f"{curve.name} ends at {show(curve.end)}, above its start of {show(start)}"
        ratio = curve.end / max(start, 1e-12)
        yield replace(seen("loss-above-start", text, curve.where(-1), ratio), severity=_severity(curve))
    if last <= low or last - low <= 4 * noise / max(1.0, (curve.n / len(blocks)) ** 0.5) or lowest > len(blocks) - 3:
        return
    drop = float(blocks[0]) - low
    if last < RISE * low or last - low < 0.15 * max(drop, 0.0):
        return
    jump = _jump(blocks, noise)
    place = min(curve.n - 1, lowest * curve.n // len(blocks))
    if jump is not None:
        where = min(curve.n - 1, jump * curve.n // len(blocks))
        text = (
            f"{curve.name} jumps from {show(float(blocks[jump - 1]))} to {show(float(blocks[jump]))} "
            f"about {at_step(curve, where)} and stays there"
        )
        yield seen("loss-jump", text, curve.where(where), float(blocks[jump]) / max(float(blocks[jump - 1]), 1e-12))
    elif _steady(blocks[lowest:]) or last > 2 * low:
        text = f"{curve.name} rises from {show(low)} at {at_step(curve, place)} to {show(last)} at the end"
        yield seen("loss-rises", text, curve.where(place), last / max(low, 1e-12), end=curve.step(-1))
    if last > DIVERGED * low and last - low > 0.4 * max(drop, 0.0):
        text = f"{curve.name} leaves its lowest level {show(low)} and ends at {show(last)}"
        ratio = last / max(low, 1e-12)
        yield seen("loss-diverges", text, curve.where(place), ratio, cls="circumstantial", end=curve.step(-1))
        yield from _peak(view, curve, curve.step(place))


def _peak(view: View, curve: Curve, onset: float) -> Iterator[Evidence]:
    """Whether the rise begins while the learning rate is near its peak."""
    for lr in view.all("lr"):
        peak = float(lr.v.max())
        if lr.n < 4 or peak <= 0:
            continue
        near = [lr.v[i] for i in range(lr.n) if lr.step(i) <= onset]
        if near and near[-1] >= 0.8 * peak:
            text = f"the rise of {curve.name} begins while {lr.name} is at {show(float(near[-1]))}, near its peak"
            yield seen("rise-at-lr-peak", text, lr.where(len(near) - 1), float(near[-1]), cls="circumstantial")
        return


def _jump(blocks: object, noise: float) -> int | None:
    """The block at which the level changes within one block and stays changed, None if the rise is gradual."""
    import numpy as np

    levels = np.asarray(blocks)
    steps = np.diff(levels)
    k = int(steps.argmax()) + 1
    before, after = levels[:k], levels[k:]
    size = float(steps[k - 1])
    if k < 2 or len(after) < 3 or size < (JUMP - 1) * abs(float(before[-1])) or size < 4 * noise:
        return None
    total = float(after.max() - before[-1])
    stays = float(after.min()) > float(before[-1]) + 0.5 * size
    return k if stays and size >= 0.6 * total else None


def _steady(levels: object) -> bool:
    import numpy as np

    steps = np.diff(np.asarray(levels))
    return len(steps) >= 3 and float((steps > 0).mean()) >= 0.6


def _spikes(view: View, curve: Curve) -> Iterator[Evidence]:
    if curve.n < 10:
        return
    if _knocked_about(curve):
        text = f"{curve.name} is thrown up again and again and ends at {show(curve.end)}, no lower than it began"
        worst = int(curve.top.argmax())
        yield replace(
            seen("train-unstable", text, curve.where(worst), float(curve.top.max())), severity=_severity(curve)
        )
        return
    drop = max(float(curve.blocks(10)[0]) - float(curve.smooth.min()), 0.1 * curve.median)
    places = [p for p in curve.spikes(SPIKE) if curve.top[p] - curve.smooth[p] > 0.25 * drop]
    places = [p for p in places if curve.stands_out(p)]
    if not places:
        return
    good = [p for p in places if p < curve.n - max(3, curve.n // 20)]
    healed = curve.end <= 1.1 * float(curve.smooth[places[0]]) and curve.end < ABOVE_START * curve.low_start
    if good and healed:
        worst = max(good, key=lambda p: curve.top[p] / curve.smooth[p])
        ratio = float(curve.top[worst] / curve.smooth[worst])
        text = (
            f"{curve.name} spikes {len(good)} times, most at {at_step(curve, worst)} "
            f"({show(float(curve.top[worst]))}, {ratio:.1f} times its level), and recovers"
        )
        yield seen("loss-spike-recovered", text, curve.where(worst), ratio)
    if len(places) >= 6:
        gaps = [places[i + 1] - places[i] for i in range(len(places) - 1)]
        typical = sorted(gaps)[len(gaps) // 2]
        if typical >= 5 and sum(abs(g - typical) <= 0.1 * typical for g in gaps) >= 0.7 * len(gaps):
            text = f"the spikes of {curve.name} come every {typical} logged points"
            yield seen("loss-spikes-periodic", text, curve.where(places[0]), typical, cls="circumstantial")
    swings = _swings(curve)
    if swings >= 6 and not healed:
        text = f"{curve.name} swings up and down {swings} times by more than half its level without settling"
        yield seen("train-unstable", text, curve.where(places[0]), swings)


def _knocked_about(curve: Curve) -> bool:
    """At least three separate excursions above 1.5 times the start, and no progress over the whole run."""
    first = float(curve.v[0])
    if curve.n < 20 or first <= 0 or curve.end < 0.9 * first or curve.median < 0.9 * first:
        return False
    high = curve.top > SPIKE * first
    rises = int((high[1:] & ~high[:-1]).sum())
    return rises >= 3 and float(high.mean()) < 0.5


def _swings(curve: Curve) -> int:
    """Changes of direction between levels that differ by more than half, over forty stretches of the run."""
    blocks = curve.blocks(40)
    count, last, direction = 0, float(blocks[0]), 0
    for level in blocks[1:]:
        ratio = (float(level) + 1e-12) / (last + 1e-12)
        turn = 1 if ratio > 1.5 else -1 if ratio < 1 / 1.5 else 0
        if turn and turn != direction:
            count, direction = count + 1, turn
        if turn:
            last = float(level)
    return count


def _few(curve: Curve) -> Iterator[Evidence]:
    """Few, wide swings of a short series of epochs: train loss up and down by a factor of two."""
    if not 6 <= curve.n <= 60 or (curve.v <= 0).any() or (curve.series.role or "").startswith("eval"):
        return
    ups = [i for i in range(2, curve.n) if curve.v[i] > 2.0 * curve.v[i - 1] and curve.v[i] > 0.3 * curve.v[0]]
    needed = 2 if curve.series.unit == "epoch" else max(2, curve.n // 8)  # single batches scatter, means less
    if len(ups) >= needed and curve.v[-1] > 1.5 * curve.v.min():
        text = f"{curve.name} more than doubles between neighbours {len(ups)} times, last at {at_step(curve, ups[-1])}"
        yield seen("train-unstable", text, curve.where(ups[0]), len(ups))
