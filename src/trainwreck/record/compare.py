"""What the failing steps of a recording have in common, against its healthy steps: one sentence each.

Failing steps are the captures; healthy ones are the sampled steps before the first of them, in the recorded numbers.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainwreck.collect import collect
from trainwreck.runs.witness import witness

APART = 10.0
"""Times beyond the healthy range at which a range stands out; a judgement (data of one kind keep within a few)."""
MAX_BYTES = 16 << 20
MAX_SENTENCES = 8
MEASURES = ("min", "max")
_FRAME = re.compile(r"^frame\d+/(?P<name>.+)\.(?P<what>min|max|nonfinite)$")

Healthy = dict[str, dict[str, list[float]]]


def common(recording: Path) -> list[str]:
    """Sentences on all captures of ``recording`` with a batch; empty where nothing stands out or nothing is known."""
    captures = [facts for path in sorted(recording.glob("capture-*/capture.json")) if (facts := _facts(path))]
    failing = [c for c in captures if c.get("alarm") != "crash" and not c.get("weights_damaged")]
    if not failing:
        return []
    healthy = _healthy(recording, min(float(c.get("step") or 0) for c in failing))
    names = set.intersection(*(set(c.get("variables") or {}) for c in failing))
    found: list[str] = []
    for name in sorted(names):
        told = [c["variables"][name] for c in failing]
        if any(f.get("graph") for f in told):
            continue
        said = _beside(told, healthy.get(_plain(name), {}))
        if said and len(found) < MAX_SENTENCES:
            found.append(f"{name} {said}")
    return found


def _beside(facts: list[Mapping[str, Any]], healthy: Mapping[str, list[float]]) -> str | None:
    """How one variable differs in all failing steps from all healthy ones."""
    every = "the failing step" if len(facts) == 1 else f"all {len(facts)} failing steps"
    broken = [int(f.get("nan") or 0) + int(f.get("inf") or 0) for f in facts]
    if all(broken) and not any(healthy.get("nonfinite", [])):
        return f"is not finite in {every} ({max(broken)} values), and in no healthy one"
    for what in MEASURES:
        before = [v for v in healthy.get(what, []) if math.isfinite(v)]
        now = [float(f[what]) for f in facts if isinstance(f.get(what), (int, float))]
        if len(before) < 3 or len(now) < len(facts):
            continue
        low, high = min(before), max(before)
        scale = APART * max(abs(low), abs(high), 1e-12)
        if all(v > high and v > scale for v in now) or all(v < low and abs(v) > scale for v in now):
            return f"has a {what} of {now[0]:.4g} in {every} (healthy steps {low:.4g}..{high:.4g})"
    if len(facts) > 1:
        shapes = {tuple(f.get("shape") or ()) for f in facts}
        zeros = [f.get("zeros") == math.prod(f.get("shape") or ()) for f in facts]
        if all(zeros) and any(v != 0 for what in MEASURES for v in healthy.get(what, [])):
            return f"is zero throughout in {every}"
        if len(shapes) == 1 and 1 in next(iter(shapes))[:1] and math.prod(next(iter(shapes))) > 0:
            return f"has a single row in {every}"
    return None


def _healthy(recording: Path, before: float) -> Healthy:
    """Recorded ranges of the step's variables at the steps before ``before``: name to measure to values."""
    found: Healthy = {}
    for run in witness(collect([recording]).sources).runs:
        for name, series in run.series.items():
            if match := _FRAME.match(name):
                values = [v for s, v in zip(series.steps, series.values, strict=True) if s < before]
                found.setdefault(_plain(match["name"]), {}).setdefault(match["what"], []).extend(values)
    return found


def _plain(name: str) -> str:
    return name.replace("'", "").replace('"', "")


def _facts(path: Path) -> dict[str, Any] | None:
    try:
        with open(path, encoding="utf-8") as file:
            found = json.loads(file.read(MAX_BYTES))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("variables"), dict) else None
