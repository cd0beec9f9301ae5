"""A loss that does not move, and the known levels at which losses stop: ln C, ln 2, the floor of a doubled softmax."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from trainwreck.core.evidence import Evidence
from trainwreck.runs.signs._curve import Curve, View, at_step, seen, show

FAMILY = "plateau"
MIN_POINTS = 5
"""Epochs or logged rows below which nothing is called flat; a judgement."""
FLAT = 0.01
"""thresholds.tsv: a drop below 1% over 500 steps is no learning (judgement)."""
NEAR = 0.03
"""How close to ln C a level must lie; thresholds.tsv allows 10% at step 0, a plateau is tighter (judgement)."""
FLOOR_NEAR = 0.03
"""thresholds.tsv: within 3% of ln(1+(C-1)/e) with high accuracy (judgement over a derivation)."""
CHANCE = 0.15
"""Accuracy within 15% of 1/C counts as chance: two standard errors at a few hundred test samples (binomial)."""
COMMON_CLASSES = (2, 10, 100, 1000)
COMMON_VOCABULARIES = (30522, 32000, 32768, 50257, 50304, 65536, 128256, 151936, 152064, 262144)
"""bert, llama, mistral, gpt-2, nanoGPT's padding, 64k, llama 3, qwen, gemma 3: sizes of published tokenizers."""


def find(view: View) -> Iterator[Evidence]:
    """Signs of standing still. Silent for RL and adversarial losses."""
    curve = view.loss if view.loss is not None else view.eval_loss
    if curve is None or view.is_rl or view.is_gan or curve.n < MIN_POINTS:
        return
    accuracy = _accuracy(view)
    moving = accuracy is not None and _moves(accuracy)
    if not moving and not view.is_diffusion:
        yield from _still(view, curve, accuracy)
    told = list(_chance(view, curve, accuracy))
    if not told and view.eval_loss is not None and view.eval_loss is not curve and view.eval_loss.n >= MIN_POINTS:
        told = list(_chance(view, view.eval_loss, accuracy))
    yield from told
    yield from _floor(view, curve, accuracy)
    if not moving and not view.is_diffusion and not view.is_preference and not _better_elsewhere(view):
        yield from _stuck_later(curve, accuracy)
    yield from _first_steps(view, curve)
    yield from _drifting(view, curve)


def _accuracy(view: View) -> Curve | None:
    wanted = r"(^|[/_ -])(acc|accuracy|top1|f1|auc|auroc|r2|map|iou|dice|bleu|wer)"
    found = [c for c in view.all("eval-metric", "metric") if re.search(wanted, c.name.lower())]
    return max(found, key=lambda c: (c.series.role == "eval-metric", c.n), default=None)


def _moves(metric: Curve) -> bool:
    """A score that rises clearly above its scatter."""
    if metric.n < 4:
        return False
    gain = abs(metric.end - metric.start)
    return gain > 0.02 * max(abs(metric.median), 1e-9) and gain > 2 * metric.noise / math.sqrt(max(1, metric.n // 4))


def _still(view: View, curve: Curve, accuracy: Curve | None) -> Iterator[Evidence]:
    """Flat from the first to the last point: no trend beyond the noise and none beyond one percent."""
    level = abs(curve.median)
    if not level or curve.median < 0:
        return
    thirds = [curve.level(0.0, 0.34), curve.level(0.33, 0.67), curve.level(0.66, 1.0)]
    change = (thirds[0] - thirds[2]) / level
    exact = float(curve.v.max() - curve.v.min()) <= 1e-9 * level
    first = abs(float(curve.v[0]) - thirds[2]) / level
    if abs(change) > FLAT or max(thirds) - min(thirds) > 2 * FLAT * level:
        return
    # A first point that already averages many steps hides the fall before it: only a start at the same level is flat.
    limit = max(2 * FLAT, 3 * curve.noise / level)
    if first > limit or (curve.start - thirds[2]) / level > max(FLAT, 2 * curve.noise / level / math.sqrt(3)):
        return
    if _good(view, curve, accuracy) or _learned_at_first(curve, thirds) or _better_elsewhere(view):
        return
    text = f"{curve.name} does not move: {show(thirds[0])} in the first third, {show(thirds[2])} in the last"
    if exact:
        text = f"{curve.name} has the same value {show(curve.median)} at all {curve.count} points"
        yield seen("loss-constant", text, curve.where(0), curve.median)
    yield seen("no-learning", text, curve.where(0), change, end=curve.step(-1))
    yield seen("stuck", text, curve.where(0), curve.median, end=curve.step(-1))


def _stuck_later(curve: Curve, accuracy: Curve | None) -> Iterator[Evidence]:
    """A small fall in the first tenth, then nothing for the rest of the run, and no score that shows a good model."""
    if curve.n < 20 or curve.median <= 0.05 or (accuracy is not None and accuracy.end > 0.6):
        return
    level = curve.level(0.15, 1.0)
    fall = (float(curve.v[0]) - level) / level
    if 2 * FLAT < fall < 0.12 and curve.flat(0.15, 1.0, within=0.005):
        text = f"{curve.name} falls by {fall:.0%} at first and then stays at {show(level)} for the rest of the run"
        yield seen("stuck", text, curve.where(-1), level, cls="inferred", end=curve.step(-1))


def _learned_at_first(curve: Curve, thirds: list[float]) -> bool:
    """A small fall that is real: far outside the standard error, and not less than a third of a percent."""
    import numpy as np

    width = max(2, curve.n // 20)
    head, rest = curve.v[:width], curve.v[width:]
    if len(rest) < 4:
        return False
    spread = float(np.std(rest)) + 1e-12
    # One batch that was thrown up is no level: the mean counts only as far as the median bears it out.
    high = min(float(np.mean(head)), float(np.median(head)) + spread / math.sqrt(width))
    early = (high - float(np.mean(rest))) / (spread / math.sqrt(width))
    trend = (thirds[0] - thirds[2]) / (spread * math.sqrt(6 / curve.n))
    level = abs(curve.median)
    fall = (high - thirds[2]) / level
    return (early > 3.0 and fall > 0.01) or (trend > 3.0 and (thirds[0] - thirds[2]) / level > FLAT / 3)


def _better_elsewhere(view: View) -> bool:
    """The validation loss falls by more than a percent and ends near its best."""
    loss = view.eval_loss
    if loss is None or loss.n < 3 or loss is view.loss or view.loss is None:
        return False
    return float(loss.v[-1]) < (1 - FLAT) * float(loss.v[0]) and float(loss.v[-1]) <= 1.01 * float(loss.v.min())


def _good(view: View, curve: Curve, accuracy: Curve | None) -> bool:
    """A flat curve that is good already: high score, or a loss far below anything an untrained model has."""
    if accuracy is not None and 0.85 <= accuracy.end <= 1.0001:
        return True
    return curve.median < 0.05


def _classes(view: View) -> int | None:
    """Number of classes that a setting names."""
    value = view.setting("num_labels", "num_classes", "n_classes", "nb_classes", "nc", "vocab_size", "n_vocab")
    return int(value) if value is not None and 2 <= value < 1e7 else None


def _chance(view: View, curve: Curve, accuracy: Curve | None) -> Iterator[Evidence]:
    """The last part of the curve lies at the loss of a uniform guess."""
    level = curve.level(0.4, 1.0)
    if level <= 0 or not curve.flat(0.4, 1.0, within=0.03):
        return
    if view.is_preference:
        if abs(level - math.log(2)) < 0.01 and abs(curve.start - level) < 0.02:
            text = f"{curve.name} stays at ln 2 = 0.6931, the loss of a policy that equals its reference"
            yield seen("plateau-ln-2", text, curve.where(0), level, end=curve.step(-1))
        return
    known = _classes(view)
    count: int | None = None
    if known is not None and abs(level - math.log(known)) <= NEAR * math.log(known):
        count = known
    score = accuracy.level(0.4, 1.0) if accuracy is not None else None
    if count is None and score is not None and 0 < score < 0.75 and level < 20:
        guess = round(math.exp(level))
        error = 2 * curve.noise / math.sqrt(max(1.0, 0.6 * curve.n)) / level
        near = 2 <= guess <= 2000 and abs(level - math.log(guess)) <= max(NEAR, min(2 * NEAR, error)) * math.log(guess)
        if near and abs(score - 1 / guess) <= max(CHANCE / guess, 0.02 if guess > 2 else 0.08):
            count = guess
    if count is None and accuracy is None:
        quiet = curve.noise < 0.01 * level
        whole = quiet and curve.flat(0.0, 1.0, within=0.05)
        late = curve.n >= 20 and curve.noise < 0.005 * level and curve.flat(0.3, 1.0, within=0.005)
        tight = 0.006 if whole and curve.n >= 8 else 0.003
        close = [c for c in (*COMMON_CLASSES, *COMMON_VOCABULARIES) if abs(level - math.log(c)) <= tight * math.log(c)]
        count = close[0] if close and (whole or late) else None
    if count is None or (score is not None and score > max(2.5 / count, 0.62 if count == 2 else 0.0)):
        return
    text = f"{curve.name} stays near {show(level)}; a uniform guess has ln {count} = {math.log(count):.4f}"
    yield seen("plateau-ln-num-classes", text, curve.where(0), level, cls="direct", end=curve.step(-1))
    if score is not None and accuracy is not None and abs(score - 1 / count) <= max(0.3 / count, 0.05):
        text = f"{accuracy.name} stays at {show(score)}, chance over {count} classes"
        yield seen("accuracy-at-chance", text, accuracy.where(0), score, cls="circumstantial")


def _floor(view: View, curve: Curve, accuracy: Curve | None) -> Iterator[Evidence]:
    """The loss cannot fall below ln(1 + (C-1)/e) where softmax is applied twice, though the accuracy is high."""
    if accuracy is None or not 0.8 <= accuracy.end <= 1.0001:
        return
    known = _classes(view)
    level = curve.end
    if known is None and (accuracy.end < 0.95 or level < 0.7 or not curve.flat(0.7, 1.0, within=0.02)):
        return
    candidates = [known] if known else [*range(4, 21), 100, 1000]
    for count in candidates:
        floor = math.log(1 + (count - 1) / math.e)
        # Without a stated number of classes only the lower side counts: the loss comes down to the floor and stops.
        if -0.005 <= (level - floor) / floor <= FLOOR_NEAR + 0.5 * (1 - accuracy.end) and curve.flat(
            0.7, 1.0, within=0.03
        ):
            text = (
                f"{curve.name} stops at {show(level)} with {accuracy.name} at {accuracy.end:.2f}: "
                f"ln(1+(C-1)/e) for {count} classes is {floor:.3f}"
            )
            cls = "direct" if known else "circumstantial"
            yield seen("plateau-double-softmax-floor", text, curve.where(-1), level, cls=cls)  # type: ignore[arg-type]
            return


def _first_steps(view: View, curve: Curve) -> Iterator[Evidence]:
    """Nothing changes in the first part, then learning starts."""
    blocks = curve.blocks(20)
    if len(blocks) < 6:
        return
    first = float(blocks[0])
    total = first - float(blocks.min())
    still = 0
    for level in blocks:
        if abs(float(level) - first) > max(0.05 * total, 0.01 * abs(first)):
            break
        still += 1
    need = max(3, len(blocks) // 5)
    if need <= still < len(blocks) and total > max(0.05 * abs(first), 5 * curve.noise):
        place = min(curve.n - 1, still * curve.n // len(blocks))
        text = f"{curve.name} does not move before {at_step(curve, place)}, then falls"
        yield seen("first-steps-no-learning", text, curve.where(0), curve.step(place), end=curve.step(place))


def _drifting(view: View, curve: Curve) -> Iterator[Evidence]:
    """A loss that creeps down in a straight line and is still near its start: too small a step."""
    blocks = curve.blocks(10)
    if len(blocks) < 6 or float(blocks[0]) <= 0:
        return
    drop = (float(blocks[0]) - float(blocks[-1])) / float(blocks[0])
    falls = sum(1 for i in range(1, len(blocks)) if blocks[i] < blocks[i - 1])
    first = float(blocks[0] - blocks[len(blocks) // 2])
    second = float(blocks[len(blocks) // 2] - blocks[-1])
    straight = first > 0 and 0.6 <= second / first <= 1.6
    if 0.002 < drop < 0.1 and falls >= len(blocks) - 2 and straight:
        text = f"{curve.name} falls in a straight line by only {drop:.1%} over the whole run"
        yield seen("loss-creeps", text, curve.where(0), drop, cls="circumstantial", end=curve.step(-1))
