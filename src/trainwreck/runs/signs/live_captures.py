"""What the failing steps of a recording have in common, against its healthy steps: one sentence a variable.

Failing steps are the captures; healthy ones are the sampled steps before the first of them, in the recorded numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainwreck.core.evidence import Evidence, Where
from trainwreck.core.run import Run
from trainwreck.runs.signs._curve import View

FAMILY = "live"
SIGN = "live-failing-steps-alike"
APART = 10.0
"""Times beyond the healthy range at which a range stands out; a judgement (data of one kind keep within a few)."""
LENGTH_APART = 1.5
"""Times the longest healthy sequence at which a length stands out; a judgement."""
LEAST_HEALTHY = 3
"""Healthy looks at a variable below which nothing is said of its range."""
MAX_SENTENCES = 8
_FRAME = re.compile(r"^frame\d+/(?P<name>.+)\.(?P<what>min|max|nonfinite|length|codes)$")

Facts = Mapping[str, Any]
Healthy = Mapping[str, Sequence[float]]


def find(view: View) -> Iterator[Evidence]:
    """One sighting for all captures together."""
    captures = failing(view.run)
    said = common(view.run)
    if said:
        steps = [float(c.get("step") or 0) for c in captures]
        named = ", ".join(f"{s:g}" for s in steps[:5])
        text = f"what failed at step {named} differs from the healthy steps: {'; '.join(said[:3])}"
        yield Evidence(SIGN, "direct", text, Where("tensor", path=view.run.path, step=steps[0]), said)


def failing(run: Run) -> list[Facts]:
    """Facts of the captures of failing steps, in order. Steps that inherit damaged weights tell nothing of data."""
    held = [e.value for e in run.events if e.kind == "capture-facts" and isinstance(e.value, dict)]
    held = [c for c in held if c.get("alarm") != "crash" and not c.get("weights_damaged")]
    return sorted(held, key=lambda c: float(c.get("step") or 0))


def common(run: Run) -> list[str]:
    """Sentences on all failing steps of ``run``; empty where nothing stands out or nothing is known."""
    captures = [c["variables"] for c in failing(run)]
    if not captures:
        return []
    before = float(failing(run)[0].get("step") or 0)
    healthy = _healthy(run, before)
    types = _types(run, before)
    found: list[str] = []
    for name in sorted(set.intersection(*map(set, captures))):
        told = [c[name] for c in captures if isinstance(c[name], dict)]
        if len(told) < len(captures) or any(f.get("graph") for f in told):
            continue
        said = _beside(told, healthy.get(_plain(name), {}), types.get(_plain(name), set()))
        if said and len(found) < MAX_SENTENCES:
            found.append(f"{name} {said}")
    return found


def _beside(facts: Sequence[Facts], healthy: Healthy, types: set[str]) -> str | None:
    """How one variable differs in all failing steps from all healthy ones."""
    every = "the failing step" if len(facts) == 1 else f"all {len(facts)} failing steps"
    return (
        _broken(facts, healthy, every)
        or _type(facts, types, every)
        or _range(facts, healthy, every)
        or _length(facts, healthy, every)
        or _labels(facts, healthy, every)
        or (_whole(facts, healthy, every) if len(facts) > 1 else None)
    )


def _broken(facts: Sequence[Facts], healthy: Healthy, every: str) -> str | None:
    broken = [_count(f, "nan") + _count(f, "inf") for f in facts]
    if not all(broken) or any(healthy.get("nonfinite", ())):
        return None
    columns = [set(f["bad_columns"]) if isinstance(f.get("bad_columns"), list) else set() for f in facts]
    same = sorted(set.intersection(*columns))
    where = f", always in column {', '.join(map(str, same[:4]))}" if same and len(facts) > 1 else ""
    return f"is not finite in {every} ({max(broken)} values{where}), and in no healthy one"


def _type(facts: Sequence[Facts], types: set[str], every: str) -> str | None:
    now = {str(f.get("dtype")) for f in facts}
    if not types or len(now) > 1 or now & types:
        return None
    return f"is {now.pop()} in {every} ({', '.join(sorted(types))} before)"


def _range(facts: Sequence[Facts], healthy: Healthy, every: str) -> str | None:
    before = [v for what in ("min", "max") for v in healthy.get(what, ()) if math.isfinite(v)]
    if len(before) < 2 * LEAST_HEALTHY:
        return None
    low, high = min(before), max(before)
    for what in ("max", "min"):
        now = _numbers(facts, what)
        if len(now) < len(facts):
            continue
        scale = APART * max(abs(low), abs(high), 1e-12)
        if all(v > high and v > scale for v in now) or all(v < low and abs(v) > scale for v in now):
            return f"has a {what} of {_span(now)} in {every} (healthy steps {low:.4g}..{high:.4g})"
    return None


def _length(facts: Sequence[Facts], healthy: Healthy, every: str) -> str | None:
    before = healthy.get("length", ())
    now = [float(f["shape"][1]) for f in facts if isinstance(f.get("shape"), list) and len(f["shape"]) == 2]
    if len(before) < LEAST_HEALTHY or len(now) < len(facts):
        return None
    low, high = min(before), max(before)
    if all(v > LENGTH_APART * high for v in now) or all(v * LENGTH_APART < low for v in now):
        return f"has a length of {_span(now)} in {every} (healthy steps {low:g}..{high:g})"
    return None


def _labels(facts: Sequence[Facts], healthy: Healthy, every: str) -> str | None:
    """Values of an integer variable: a single one, or one that no healthy step's range holds."""
    held = [f["codes"] for f in facts if isinstance(f.get("codes"), list) and f["codes"]]
    if len(held) < len(facts):
        return None
    before = healthy.get("codes", ())
    if len(before) >= LEAST_HEALTHY and min(before) > 1 and all(len(c) == 1 for c in held):
        only = ", ".join(sorted({str(c[0]) for c in held}))
        return f"holds only {only} in {every} (healthy steps {min(before):g} values or more)"
    lows, highs = healthy.get("min", ()), healthy.get("max", ())
    if min(len(lows), len(highs)) >= LEAST_HEALTHY:
        low, high = min(lows), max(highs)
        odd = set.intersection(*({c for c in codes if not low <= c <= high} for codes in held))
        if odd:
            return f"holds {', '.join(str(c) for c in sorted(odd)[:4])} in {every} (healthy steps {low:g}..{high:g})"
    return None


def _whole(facts: Sequence[Facts], healthy: Healthy, every: str) -> str | None:
    shapes = {tuple(f.get("shape") or ()) for f in facts}
    zeros = [f.get("zeros") == math.prod(f.get("shape") or ()) for f in facts]
    if all(zeros) and any(v != 0 for what in ("min", "max") for v in healthy.get(what, ())):
        return f"is zero throughout in {every}"
    only = next(iter(shapes))
    return f"has a single row in {every}" if len(shapes) == 1 and only[:1] == (1,) and math.prod(only) > 0 else None


def _numbers(facts: Sequence[Facts], what: str) -> list[float]:
    return [float(f[what]) for f in facts if isinstance(f.get(what), (int, float))]


def _count(facts: Facts, what: str) -> int:
    value = facts.get(what)
    return value if isinstance(value, int) else 0


def _span(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:.4g}" if low == high else f"{low:.4g}..{high:.4g}"


def _healthy(run: Run, before: float) -> dict[str, dict[str, list[float]]]:
    """Recorded numbers of the step's variables at the steps before ``before``: name to measure to values."""
    found: dict[str, dict[str, list[float]]] = {}
    for name, series in run.series.items():
        if match := _FRAME.match(name):
            values = [v for s, v in zip(series.steps, series.values, strict=True) if s < before]
            found.setdefault(_plain(match["name"]), {}).setdefault(match["what"], []).extend(values)
    return found


def _types(run: Run, before: float) -> dict[str, set[str]]:
    """Types in which variables were seen before step ``before``, by name."""
    found: dict[str, set[str]] = {}
    for event in run.events:
        early = event.where.step is not None and event.where.step < before
        if event.kind == "tensor" and early and event.where.module and isinstance(event.value, dict):
            found.setdefault(_plain(event.where.module), set()).add(str(event.value.get("dtype")))
    return found


def _plain(name: str) -> str:
    return name.replace("'", "").replace('"', "")
