"""NaN and infinity in losses and gradient norms, and what the curves looked like before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainwreck.core.evidence import Evidence
from trainwreck.core.run import Series
from trainwreck.runs.signs._curve import Curve, View, seen, show

FAMILY = "nonfinite"
LOSSES = ("loss", "loss-term", "rl-loss", "value-loss", "policy-loss", "generator-loss", "discriminator-loss")
GRADIENT_LEAD = 2
"""Logged points by which a NaN gradient may precede the NaN loss: the step after it uses the broken weights."""
LOOK_BACK = 20
"""Points before the first non-finite one that are looked at; a judgement."""
RISE = 1.5
"""thresholds.tsv: divergence is a loss above 1.5 times its running minimum (judgement)."""
GRAD_RISE = 5.0
"""thresholds.tsv: a gradient spike is 5 to 10 times the median (judgement); the lower end, because NaN follows."""
SCALE_FALL = 64.0
"""Six halvings in a row: a healthy scaler loses one per growth interval (GradScaler defaults, checked in torch)."""


def find(view: View) -> Iterator[Evidence]:
    """What became non-finite first, when, and after what."""
    losses = [view.curve(s) for s in view.run.by_role(*LOSSES) if len(s)]
    if not losses:
        losses = [view.curve(s) for s in view.run.series.values() if len(s) and _minimised(s)]
    evals = [view.curve(s) for s in view.run.by_role("eval-loss", "eval-loss-term") if len(s)]
    broken = [c for c in losses if _first(c) is not None]
    if broken:
        yield from _training(view, losses, broken)
    elif any(_first(c) is not None for c in evals):
        curve = next(c for c in evals if _first(c) is not None)
        place = _first(curve) or 0
        word = "nan-eval-loss" if losses and any(c.n for c in losses) else "nan-loss"
        yield _said(word, f"{_noun(curve, 'the validation loss')} is not finite", curve, place)
    yield from _gradients(view, bool(broken))


def _minimised(series: Series) -> bool:
    """A training error such as ``mse`` where nothing is called a loss."""
    from trainwreck.runs.roles import lower_is_better

    return series.role == "metric" and lower_is_better(series.name)


def _first(curve: Curve) -> int | None:
    """Index of the first non-finite value."""
    import numpy as np

    places = np.flatnonzero(~curve.finite)
    return int(places[0]) if len(places) else None


def _training(view: View, losses: Sequence[Curve], broken: Sequence[Curve]) -> Iterator[Evidence]:
    main = min(broken, key=lambda c: (c.series.steps[_first(c) or 0], c.series.role != "loss", -c.count))
    place = _first(main) or 0
    share = 1.0 - len(main.index) / main.count
    yield _said("nan-loss", f"{_noun(main, 'the loss')} is not finite", main, place, f" ({share:.0%} of its points)")
    after = main.raw[place:]
    finite_after = int(main.finite[place:].sum())
    if finite_after >= 3 and bool(main.finite[-1]):
        text = f"{main.name} is non-finite at {len(after) - finite_after} of {main.count} points and finite again after"
        yield seen("nan-transient", text, main.series.where(place), share, cls="circumstantial")
        return
    if place == 0:
        text = f"{main.name} is non-finite at its first logged point"
        yield seen("nan-from-first-step", text, main.series.where(0), cls="direct")
    elif _collapsed(view, float(main.series.steps[place])):
        text = f"the loss scale had collapsed when {main.name} became non-finite"
        yield seen("nan-after-scale-collapse", text, main.series.where(place), cls="circumstantial")
    elif (rise := _rise(main, place)) >= RISE:
        text = f"{main.name} stood {show(rise)} times above its level in the points before it became non-finite"
        yield seen("nan-after-rise", text, main.series.where(place), rise, cls="circumstantial")
    elif place >= 3:
        text = (
            f"{main.name} was at its usual level ({show(float(main.raw[place - 1]))}) just before it became non-finite"
        )
        yield seen("nan-sudden", text, main.series.where(place), cls="circumstantial")
    if (grad := _grad_rise(view, float(main.series.steps[place]))) >= GRAD_RISE:
        text = f"the gradient norm stood {show(grad)} times above its median before {main.name} became non-finite"
        yield seen("grad-norm-rises-before-nan", text, main.series.where(place), grad, cls="circumstantial")
    yield from _gradient_first(view, main, place)
    if len(losses) >= 3 and place > 0:
        yield from _terms(losses, main, place)


def _noun(curve: Curve, kind: str) -> str:
    """``kind`` and the name, or the name alone where it says loss itself."""
    return curve.name if "loss" in curve.name.lower() else f"{kind} {curve.name}"


def _gradient_first(view: View, main: Curve, place: int) -> Iterator[Evidence]:
    """A NaN (not an infinite) gradient norm at a step whose own loss is still finite.

    The forward was fine and the backward was not: the fault is an operation whose slope does not exist there. An
    overflow would make the norm infinite, and a loss scaler would skip the step, so runs with a scale are left out.
    """
    if place < 1 or view.all("loss-scale"):
        return
    for curve in view.all("grad-norm"):
        first = _first(curve)
        if first is None or curve.raw[first] == curve.raw[first] or curve.count < 2:
            continue
        step = curve.series.steps[first]
        same = [i for i in range(max(0, place - GRADIENT_LEAD), place) if main.series.steps[i] == step]
        if same and not curve.finite[first:].any():
            text = (
                f"at {curve.series.unit} {show(float(step))} {curve.name} is NaN while {main.name} of the same step is "
                f"finite ({show(float(main.raw[same[0]]))})"
            )
            yield seen("nan-gradient-before-loss", text, curve.series.where(first), "nan", cls="circumstantial")
            return


def _terms(losses: Sequence[Curve], main: Curve, place: int) -> Iterator[Evidence]:
    step = float(main.series.steps[place])
    terms = [c for c in losses if c.series.role == "loss-term" and c.count >= 3]
    first = [c for c in terms if (p := _first(c)) is not None and float(c.series.steps[p]) <= step]
    if len(terms) >= 2 and len(first) == len(terms):
        text = f"all {len(terms)} loss terms become non-finite at the same logged point"
        yield seen("nan-all-terms-together", text, main.series.where(place), cls="circumstantial")
    elif len(terms) >= 2 and len(first) == 1:
        text = f"of {len(terms)} loss terms {first[0].name} alone is non-finite first"
        yield seen("nan-one-term-first", text, first[0].series.where(_first(first[0]) or 0), first[0].name)


def _rise(curve: Curve, place: int) -> float:
    """How far the last finite points before ``place`` stand above the lowest level before, as a ratio."""
    import numpy as np

    before = curve.raw[:place]
    before = before[np.isfinite(before)]
    if len(before) < 3:
        return 1.0
    recent = before[-3:]
    lowest = float(np.min(np.abs(before[-200:])))
    noise = float(np.median(np.abs(np.diff(before)))) if len(before) > 3 else 0.0
    top = float(recent.max())
    typical = float(np.median(before[-LOOK_BACK:-1])) if len(before) > 4 else lowest
    if top - typical < 4 * noise or top <= 0:
        return 1.0
    return top / max(typical, 1e-12)


def _grad_rise(view: View, step: float) -> float:
    import numpy as np

    for curve in view.all("grad-norm"):
        steps = np.frombuffer(curve.series.steps, dtype=np.float64)
        before = np.flatnonzero((steps <= step) & curve.finite)
        if len(before) >= 6:
            recent = curve.raw[before[-5:]].max()
            usual = np.median(curve.raw[before[:-3]])
            if usual > 0:
                return float(recent / usual)
    return 1.0


def _collapsed(view: View, step: float) -> bool:
    import numpy as np

    for curve in view.all("loss-scale"):
        steps = np.frombuffer(curve.series.steps, dtype=np.float64)
        before = curve.raw[(steps <= step) & curve.finite]
        if len(before) >= 3 and before[-1] > 0 and before[-50:].max() / before[-1] >= SCALE_FALL:
            return True
    return False


def _gradients(view: View, told: bool) -> Iterator[Evidence]:
    """Gradient norms that are non-finite although the loss is not: skipped steps, or a loss that hides its NaN."""
    import numpy as np

    loss = view.loss
    for curve in view.all("grad-norm") or [view.curve(s) for s in view.run.by_role("grad-norm") if len(s)]:
        place = _first(curve)
        if place is None or curve.count < 3:
            continue
        bad = int((~curve.finite).sum())
        if loss is not None and loss.n and not loss.v[-max(1, loss.n // 4) :].any() and not curve.finite[-1]:
            text = f"{curve.name} is not finite while {loss.name} is logged as exactly 0: a trainer hides NaN that way"
            yield seen("nan-grad-with-zero-loss", text, curve.series.where(place), bad)
            if not told:
                text = f"the loss is reported as 0 because it is not finite ({curve.name} is NaN)"
                yield seen("nan-loss", text, curve.series.where(place), cls="circumstantial")
        elif bad / curve.count > 0.05 and np.flatnonzero(~curve.finite)[-1] > 0.2 * curve.count:
            text = f"{curve.name} is not finite at {bad} of {curve.count} points"
            yield seen("grad-norm-nonfinite", text, curve.series.where(place), bad / curve.count)
        break


def _said(sign: str, noun: str, curve: Curve, place: int, more: str = "") -> Evidence:
    step = float(curve.series.steps[place])
    return seen(sign, f"{noun} from {curve.series.unit} {show(step)} on{more}", curve.series.where(place), "nan")
