"""Reinforcement learning and preference training: entropy, KL, rewards, critic, lengths."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from trainwreck.core.evidence import Evidence, EvidenceClass, Severity
from trainwreck.runs.signs._curve import Curve, View, at_step, seen, show

if TYPE_CHECKING:
    from trainwreck.runs.signs._curve import Floats

FAMILY = "rl"
ENTROPY_DROP = 0.7
"""thresholds.tsv: entropy falls by more than 70% (judgement)."""
ENTROPY_LOW = 0.1
"""thresholds.tsv: below 0.1 nats per token (judgement)."""
ENTROPY_GROWS = 3.0
"""thresholds.tsv: warn above three times the initial entropy and rising (judgement)."""
KL_SPIKE = 0.1
"""thresholds.tsv has 0.01-0.02 as the usual target of an update; five to ten times that is a spike."""
DETERMINISTIC = 0.95
"""Drop after which next to nothing is left to explore with, whatever the rewards do (judgement)."""
KL_TIMES = 10.0
"""thresholds.tsv: kl above 10 times its median growth (judgement)."""
KL_AWAY = 10.0
"""thresholds.tsv: sequence KL to the reference above 10-20 nats (overoptimisation practice)."""
NO_SPREAD = 0.8
"""thresholds.tsv: share of groups without spread above 0.8 is critical (judgement)."""
CLIP_FRACTION = 0.4
"""thresholds.tsv: clip fraction above 0.3-0.5 (practice)."""
VALUE_LARGE = 1e3
"""A critic that is off by more than thirty on average; returns of normalised tasks are of order one to a hundred."""
STD_TIMES = 3.0
"""Deviation of a Gaussian policy over its start (SB3 starts at 1); a judgement."""
MIN_POINTS = 8


def find(view: View) -> Iterator[Evidence]:
    """Signs of policies, critics, rewards and preference margins."""
    if view.is_rl:
        yield from _entropy(view)
        yield from _kl(view)
        yield from _rewards(view)
        yield from _critic(view)
        yield from _lengths(view)
    if view.is_preference:
        yield from _preference(view)


def _entropies(view: View) -> list[tuple[Curve, float]]:
    """Entropy curves with the factor that makes them entropies (SB3 logs the negative)."""
    found = [(c, 1.0) for c in view.all("entropy")] + [(c, -1.0) for c in view.all("neg-entropy")]
    return [(c, -1.0 if c.median < 0 and f > 0 and c.start < 0 else f) for c, f in found]


def _entropy(view: View) -> Iterator[Evidence]:
    for curve, factor in _entropies(view)[:1]:
        if curve.n < MIN_POINTS:
            continue
        start = factor * (curve.start if curve.n >= 40 else float(curve.v[0]))
        blocks = factor * curve.blocks(10)
        low = float(blocks.min())
        continuous = bool(view.all("action-std"))
        last = float(blocks[-max(1, len(blocks) // 4) :].max())
        # a term of a recorded loss comes without the rewards: a policy that has learned its task looks alike
        alone = curve.name.startswith("term/") and not view.all("reward", "eval-reward")
        drop = DETERMINISTIC if alone else ENTROPY_DROP
        how: EvidenceClass = "circumstantial" if alone else "direct"
        grave: Severity | None = "warning" if alone else None
        if start > 0 and not continuous and low < (1 - drop) * start:
            place = min(curve.n - 1, int(blocks.argmin()) * curve.n // len(blocks))
            text = f"entropy falls from {show(start)} to {show(low)} at {at_step(curve, place)} ({curve.name})"
            yield replace(seen("entropy-drop", text, curve.where(place), low / start, cls=how), severity=grave)
            if last < max(ENTROPY_LOW, 0.05 * start) and last < 0.3 * start:
                text = f"entropy stays near zero to the end ({show(last)}, {curve.name})"
                yield replace(seen("entropy-near-zero", text, curve.where(-1), last, cls=how), severity=grave)
                if _settled(view, factor * curve.v / start):
                    text = "entropy falls step by step while the reward rises to its best and stays there"
                    yield seen("policy-settled-at-best", text, curve.where(-1), cls="circumstantial")
        elif 0 <= start < ENTROPY_LOW and not continuous and float(blocks.max()) < ENTROPY_LOW:
            text = f"entropy is near zero from the first to the last point ({show(start)}, {curve.name})"
            yield seen("entropy-near-zero", text, curve.where(0), start, end=curve.step(-1))
        end = factor * curve.end
        if start > 0 and not continuous and end > ENTROPY_GROWS * start and end > 1.0:
            text = f"entropy grows from {show(start)} to {show(end)} ({curve.name})"
            yield seen("entropy-rises", text, curve.where(-1), end / start)
    for curve in view.all("action-std")[:1]:
        if curve.n >= MIN_POINTS and curve.start > 0 and curve.end > STD_TIMES * curve.start:
            text = f"the deviation of the policy grows from {show(curve.start)} to {show(curve.end)} ({curve.name})"
            yield seen("action-std-explosion", text, curve.where(-1), curve.end / curve.start)


def _settled(view: View, entropy: Floats) -> bool:
    """Deterministic because the task is solved: the entropy falls step by step, the reward ends at its best."""
    between = int(((entropy < 0.9) & (entropy > 0.1)).sum())
    for reward in view.all("reward", "eval-reward")[:1]:
        best, first = float(reward.v.max()), float(reward.v[0])
        gained = best - first > 0.3 * max(abs(best), abs(first))
        return between >= 2 and gained and reward.end >= best - 0.05 * abs(best - first)
    return False


def _kl(view: View) -> Iterator[Evidence]:
    for curve in view.all("kl")[:1]:
        if curve.n < MIN_POINTS or not curve.top.any():
            continue
        middle = float(max(curve.median, 1e-12))
        high = [i for i in range(1, curve.n) if curve.top[i] > max(KL_SPIKE, KL_TIMES * middle)]
        groups = _groups(high)
        settled = curve.level(0.9, 1.0) < max(KL_SPIKE, KL_TIMES * middle)
        if groups and settled:
            worst = max(high, key=lambda i: curve.top[i])
            where = f"{show(float(curve.top[worst]))} at {at_step(curve, worst)}, median {show(curve.median)}"
            if len(groups) <= 2 and len(high) <= max(3, curve.n // 10):
                yield seen(
                    "kl-spike-recovered",
                    f"{curve.name} spikes once: {where}",
                    curve.where(worst),
                    curve.top[worst].item(),
                )
            else:
                text = f"{curve.name} spikes {len(groups)} times, most {where}"
                yield seen("kl-spikes", text, curve.where(worst), len(groups))
        blocks = curve.blocks(10)
        early = float(max(blocks[: max(1, len(blocks) // 3)].max(), 1e-6))
        if curve.end > KL_AWAY or (curve.end > 1.0 and curve.end > KL_TIMES * early):
            text = f"{curve.name} grows from {show(float(blocks[0]))} to {show(curve.end)}"
            yield seen("kl-grows", text, curve.where(-1), curve.end)
        negative = float((curve.v < -1e-3).mean())
        if negative > 0.5 and curve.median < -0.01:
            text = f"{curve.name} is negative at {negative:.0%} of the points (median {show(curve.median)})"
            yield seen("kl-negative", text, curve.where(0), curve.median)


def _groups(places: list[int]) -> list[list[int]]:
    groups: list[list[int]] = []
    for place in places:
        if groups and place - groups[-1][-1] <= 2:
            groups[-1].append(place)
        else:
            groups.append([place])
    return groups


def _rewards(view: View) -> Iterator[Evidence]:
    curves = view.all("reward", "eval-reward")
    for curve in curves[:1]:
        if curve.n < MIN_POINTS:
            continue
        yield from _reward_level(view, curve)
    for curve in view.all("zero-spread")[:1]:
        share = curve.level(0.3, 1.0)
        if curve.n >= 5 and share >= NO_SPREAD:
            text = f"{curve.name} is {show(share)}: nearly all groups have equal rewards"
            yield seen("reward-groups-without-spread", text, curve.where(-1), share)
    for curve in view.all("reward-std")[:1]:
        if curve.n >= 5 and curve.level(0.5, 1.0) < 1e-3:
            whole = not curve.top.any()
            place = 0 if whole else -1
            text = f"{curve.name} is {'0 throughout' if whole else 'practically 0 in the second half'}"
            yield seen("reward-std-zero", text, curve.where(place), curve.level(0.5, 1.0))


def _reward_level(view: View, curve: Curve) -> Iterator[Evidence]:
    blocks = curve.blocks(10)
    first, last, best = float(blocks[0]), float(blocks[-2:].mean()), float(blocks.max())
    size = max(abs(curve.median), 1e-12)
    if float(curve.top.max() - curve.low.min()) <= 1e-9 * size:
        text = f"{curve.name} has the same value {show(curve.median)} at all {curve.count} points"
        yield seen("reward-constant", text, curve.where(0), curve.median)
        yield seen("reward-stuck", text, curve.where(0), curve.median)
        return
    spread = max(curve.noise, curve.scatter)
    change, most = last - first, float(blocks.max() - blocks.min())
    if curve.n >= 15 and most <= max(0.02 * size, 1.0 * spread) and abs(change) <= max(0.015 * size, 0.5 * spread):
        text = f"{curve.name} does not move: {show(first)} at the start, {show(last)} at the end"
        yield seen("reward-stuck", text, curve.where(0), change / size, end=curve.step(-1))
    gain = best - first
    place = int(blocks.argmax())
    lost = best - last
    if gain > 3 * spread and gain > 0.05 * size and lost > 0.75 * gain and place < len(blocks) - 2:
        where = min(curve.n - 1, place * curve.n // len(blocks))
        text = f"{curve.name} rises from {show(first)} to {show(best)} and falls back to {show(last)}"
        yield seen("reward-collapse", text, curve.where(where), lost / gain, end=curve.step(-1))
    elif change < 0 and -change > 5 * spread and -change > 0.2 * abs(first) and place <= 1:
        text = f"{curve.name} falls from {show(first)} to {show(last)}"
        yield seen("reward-falls", text, curve.where(-1), change, end=curve.step(-1))
    elif change > 2 * spread and change > 0.5 * gain > 0:
        text = f"{curve.name} rises from {show(first)} to {show(last)}"
        yield seen("reward-improves", text, curve.where(-1), change)


def _critic(view: View) -> Iterator[Evidence]:
    for curve in view.all("value-loss")[:1]:
        level = curve.level(0.3, 1.0)
        often = float((curve.v > VALUE_LARGE).mean()) if curve.n else 0.0
        if curve.n >= 5 and (level > VALUE_LARGE or often > 0.4):
            text = f"{curve.name} is above {show(VALUE_LARGE)} at {round(100 * often)}% of its points"
            yield seen("value-loss-large", text, curve.where(-1), level)
    for curve in view.all("explained-variance")[:1]:
        level = curve.level(0.5, 1.0)
        if curve.n >= MIN_POINTS and level < 0.05:
            text = f"{curve.name} is {show(level)} in the second half: the critic explains nothing"
            yield seen("explained-variance-low", text, curve.where(-1), level)
    for curve in view.all("clip-fraction")[:1]:
        level = curve.level(0.2, 1.0)
        if curve.n >= MIN_POINTS and level > CLIP_FRACTION:
            text = f"{curve.name} is about {show(level)}: most updates leave the trust region"
            yield seen("clip-fraction-high", text, curve.where(-1), level)


def _lengths(view: View) -> Iterator[Evidence]:
    for curve in view.all("length-clipped")[:1]:
        level = curve.level(0.3, 1.0)
        if curve.n >= 5 and level > 0.5:
            text = f"{curve.name} is {show(level)}: most answers are cut at the limit"
            yield seen("completions-clipped", text, curve.where(-1), level)
    limit = view.setting("max_completion_length", "max_new_tokens", "response_length", "max_response_length")
    for curve in view.all("length")[:1]:
        if curve.n < MIN_POINTS:
            continue
        at_limit = limit is not None and curve.level(0.3, 1.0) > 0.95 * limit
        same = float((curve.v >= 0.999 * float(curve.v.max())).mean()) > 0.7 and float(curve.v.max()) >= 32
        if at_limit or (same and float(curve.v.max()).is_integer() and math.log2(float(curve.v.max())) % 1 == 0):
            text = f"{curve.name} stays at {show(curve.median)}, its limit"
            yield seen("completion-length-at-limit", text, curve.where(-1), curve.median)
        elif curve.end < 0.3 * curve.start and curve.start > 20:
            text = f"{curve.name} shrinks from {show(curve.start)} to {show(curve.end)}"
            yield seen("completion-length-shrinks", text, curve.where(-1), curve.end / curve.start)
        elif curve.end > 2.5 * curve.start and curve.start > 20:
            text = f"{curve.name} grows from {show(curve.start)} to {show(curve.end)}"
            yield seen("completion-length-grows", text, curve.where(-1), curve.end / curve.start, cls="inferred")


def _preference(view: View) -> Iterator[Evidence]:
    chosen = next(iter(view.all("reward-chosen")), None)
    margin = next(iter(view.all("reward-margin")), None)
    accuracy = next(iter(view.all("reward-accuracy")), None)
    loss = view.loss
    if chosen is not None and chosen.n >= MIN_POINTS and chosen.end < -1.0 and chosen.end < chosen.start - 0.5:
        grows = margin is None or margin.end > margin.start
        if grows:
            text = f"{chosen.name} falls to {show(chosen.end)}" + (
                f" while {margin.name} grows to {show(margin.end)}" if margin else ""
            )
            yield seen("chosen-likelihood-falls", text, chosen.where(-1), chosen.end)
    if margin is not None and margin.n >= 5 and not margin.top.any() and not margin.low.any():
        text = f"{margin.name} is exactly 0 at all {margin.count} points"
        yield seen("preference-margin-zero", text, margin.where(0), 0.0)
    if accuracy is not None and accuracy.n >= MIN_POINTS:
        level = accuracy.level(0.5, 1.0)
        if level < 0.35:
            text = f"{accuracy.name} is {show(level)} in the second half, below chance"
            yield seen("preference-accuracy-below-chance", text, accuracy.where(-1), level)
        if loss is not None and level > 0.99 and loss.n >= MIN_POINTS and 0 <= loss.end < 0.05:
            text = f"{accuracy.name} is {show(level)} and the loss {show(loss.end)}: the pairs are separated completely"
            yield seen("preference-separated", text, accuracy.where(-1), level, cls="circumstantial")
    if loss is not None and loss.n >= 5 and chosen is not None:
        first = float(loss.v[0])
        if abs(first - math.log(2)) > 0.15 and loss.step(0) <= 1 and abs(float(chosen.v[0])) > 0.05:
            text = f"{loss.name} starts at {show(first)} instead of ln 2 = 0.6931"
            yield seen("preference-loss-off-ln-2", text, loss.where(0), first, cls="circumstantial")
