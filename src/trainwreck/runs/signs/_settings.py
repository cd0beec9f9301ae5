"""Settings of the optimizers, as the recorder saw them, against what they did to weights and gradients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from statistics import median
from typing import Any

from trainwreck.core.evidence import Evidence, Where
from trainwreck.core.run import Event, Series
from trainwreck.runs.signs._curve import View, seen, show

DECOUPLED = ("AdamW", "SGD", "Lion", "Adafactor")
"""Optimizers in which a step takes rate times decay off each weight."""
SHRINKS = 2e-3
"""Rate times decay from which weights halve within 350 steps; recipes stay below 1e-4 (1e-3 times 0.1)."""
HALF = 0.6
"""Share of its first norm below which the weight has visibly shrunk."""
STILL = 1e-5
"""Update-to-weight ratio below which a step does next to nothing; recipes aim at 1e-3."""
LEAST_LOOKS, EARLY = 4, 5
"""Sampled steps after the first five without which nothing is said."""
NEAR_PEAK = 0.25
"""Share of the highest rate above which weights are meant to move."""
UNMOVED = 0.8
"""Share of weights that a step leaves as they are from which most of the training is lost; in single precision it is
below a hundredth."""
MOVES = (1e-3, 0.1)
"""Update-to-weight ratios of ordinary training and above."""
CONSTANT = 1e-3
"""Relative spread of gradient norms that only clipping explains."""
SCALED_CONSTANT = 5e-3
"""The same where gradients are in half precision or their norm is clipped to a threshold plus 1e-6."""
SCALES = "amp/loss_scale"


def find(view: View) -> Iterator[Evidence]:
    """Decay that shrinks the weights; clipping that leaves nothing of the gradient."""
    events = [e for e in view.run.events if e.kind == "optimizer" and isinstance(e.value, dict)]
    for event in events:
        yield from _decay(view, event)
        yield from _clipped(view, event)
        yield from _warming(view, event)
        yield from _unmoved(view, event)
    yield from _moves(view)


def _first(event: Event) -> dict[str, Any]:
    groups = event.value.get("settings") if isinstance(event.value, dict) else None
    groups = [g for g in groups if isinstance(g, dict)] if isinstance(groups, list) else []
    return max(groups, key=lambda g: _number(g.get("weight_decay")), default={})


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _series(view: View, event: Event, name: str) -> Series | None:
    index = event.value.get("index") if isinstance(event.value, dict) else 0
    return view.run.series.get(f"optimizer{index}/{name}" if index else name)


def _decay(view: View, event: Event) -> Iterator[Evidence]:
    settings = _first(event)
    decay, rate = _number(settings.get("weight_decay")), _number(settings.get("lr"))
    norms = _series(view, event, "weight_norm")
    kind = str(event.value.get("optimizer"))
    if norms is None or len(norms) < 3 or decay <= 0 or rate <= 0 or norms.values[0] <= 0:
        return
    strong = rate * decay >= SHRINKS if kind in DECOUPLED else decay >= 0.1
    share = norms.values[-1] / norms.values[0]
    if strong and share < HALF:
        text = (
            f"{kind} with decay {decay:g} at rate {rate:g} takes {show(rate * decay)} off each weight at a step: the"
            f" weights have shrunk to {share:.0%} of their first norm"
        )
        facts = {"number": decay, "names": ["weight_?decay|^wd$", "decay|l2"]}
        yield seen("live-decay-shrinks-weights", text, _where(event, norms), facts)


def _clipped(view: View, event: Event) -> Iterator[Evidence]:
    norms, ratios = _series(view, event, "grad_norm"), _series(view, event, "update_ratio")
    if norms is None or ratios is None or len(norms) < 20 or len(ratios) < 3:
        return
    scaled = _while_scaled(view, norms)
    if scaled is not None:
        yield scaled
        return
    usual = median(norms.values)
    same = [v for v in norms.values if abs(v - usual) <= CONSTANT * usual]
    # a rate that has been taken back makes small steps of any gradient
    high = _at_high_rates(view, event)
    moved = [v for s, v in zip(ratios.steps, ratios.values, strict=True) if high is None or s in high]
    if usual > 0 and len(same) >= 0.9 * len(norms) and len(moved) >= LEAST_LOOKS and median(moved) < STILL:
        text = (
            f"the gradient norm is {show(usual)} at {len(same)} of {len(norms)} steps: it is clipped every time, and"
            f" steps change the weights by {show(median(moved))} of their size"
        )
        facts = {"number": float(f"{usual:.3g}"), "names": ["clip|max_?norm", "norm|grad"]}
        yield seen("live-gradient-clipped-always", text, _where(event, norms), facts)


def _at_high_rates(view: View, event: Event) -> set[float] | None:
    """Steps at which the rate was not far below its highest; None where no rate was kept."""
    rates = _series(view, event, "lr")
    if rates is None or not len(rates):
        return None
    return {s for s, rate in zip(rates.steps, rates.values, strict=True) if rate >= NEAR_PEAK * max(rates.values)}


def _while_scaled(view: View, norms: Series) -> Evidence | None:
    """Gradients that had one norm before the scaler divided them: they were clipped to it with the scale in them."""
    event = next((e for e in view.run.events if e.kind == "scaled-until-step"), None)
    scales = view.run.series.get(SCALES)
    if event is None or scales is None or not len(scales):
        return None
    known = dict(zip(scales.steps, scales.values, strict=True))
    products = [v * known[s] for s, v in zip(norms.steps, norms.values, strict=True) if s in known and known[s] >= 2.0]
    if len(products) < 20:
        return None
    usual = median(products)
    same = [v for v in products if abs(v - usual) <= SCALED_CONSTANT * usual]
    if usual <= 0 or len(same) < 0.9 * len(products):
        return None
    scale = median(known.values())
    text = (
        f"before the scaler divides the gradients by {show(scale)} their norm is {show(usual)} at {len(same)} of"
        f" {len(products)} steps: they are clipped with the scale in them, to {show(usual / scale)}"
    )
    return seen("live-clipped-while-scaled", text, event.where, usual / scale)


def _warming(view: View, event: Event) -> Iterator[Evidence]:
    """A schedule that is stepped once in many steps and never gets the rate to where it was set."""
    rates = _series(view, event, "lr")
    base = max(
        (_number(g.get("initial_lr")) for g in event.value.get("settings") or () if isinstance(g, dict)), default=0
    )
    schedule = next((e for e in view.run.events if e.kind == "scheduler" and isinstance(e.value, dict)), None)
    if rates is None or len(rates) < 40 or base <= 0 or schedule is None or event.value.get("index"):
        return
    calls, steps = _number(schedule.value.get("calls")), _number(schedule.value.get("optimizer_steps"))
    if calls >= 2 and calls < 0.2 * steps and 0 < max(rates.values) < 0.5 * base:
        text = (
            f"the learning rate never passes {max(rates.values) / base:.0%} of what it was set to: the schedule was"
            f" stepped {calls:g} times in {steps:g} steps"
        )
        yield seen("live-rate-stays-in-warm-up", text, schedule.where, calls)


def _unmoved(view: View, event: Event) -> Iterator[Evidence]:
    """Weights in half precision that most steps leave as they are."""
    shares = _series(view, event, "unmoved")
    rates = _series(view, event, "lr")
    if shares is None or rates is None or not len(rates):
        return
    # Where the rate has been taken back, weights are meant to come to rest; the first looks are close together.
    high = _at_high_rates(view, event) or set()
    looks = [v for s, v in zip(shares.steps, shares.values, strict=True) if s in high and s > EARLY]
    if len(looks) < LEAST_LOOKS or median(looks) < UNMOVED:
        return
    share = median(looks)
    text = f"a step leaves {share:.0%} of the weights in half precision that have a gradient as they are"
    cast = event.value.get("cast") if isinstance(event.value, dict) else None
    where = _where(event, shares)
    if isinstance(cast, list) and len(cast) == 2 and isinstance(cast[0], str) and isinstance(cast[1], int):
        where = replace(where, kind="code", path=cast[0], line=cast[1])
    yield seen("live-updates-below-spacing", text, where, share)


def _moves(view: View) -> Iterator[Evidence]:
    ratios = view.run.series.get("update_ratio")
    if ratios is not None and len(ratios) >= LEAST_LOOKS and MOVES[0] < median(ratios.values) < MOVES[1]:
        text = f"each step moves the weights by {show(median(ratios.values))} of their size"
        where = Where("tensor", path=ratios.path, step=ratios.steps[-1], metric=ratios.name)
        yield seen("live-weights-move", text, where, median(ratios.values), cls="circumstantial")


def _where(event: Event, series: Series) -> Where:
    """Where the optimizer was made."""
    place = event.where if event.where.kind == "code" else None
    return Where(
        "code" if place is not None else "tensor",
        path=place.path if place is not None else series.path,
        line=place.line if place is not None else None,
        step=series.steps[-1],
        metric=series.name,
    )
