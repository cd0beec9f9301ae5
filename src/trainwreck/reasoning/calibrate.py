"""From a raw probability to a confidence: a monotone table per class of evidence, and the ceilings of the design.

The table is data (``calibration.json``), fitted out of fold on labelled cases by ``tools/calibrate.py``.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from trainwreck.core.evidence import EvidenceClass

CEILING: Mapping[EvidenceClass, float] = {"direct": 0.98, "circumstantial": 0.9, "inferred": 0.7}
"""DESIGN: without direct evidence nothing above 0.9, with inference alone nothing above 0.7."""
UNPROVEN_CEILING = 0.65
"""A mode without a case of its own (maturity "preview") never claims more than this."""


@cache
def _table() -> Mapping[str, tuple[Sequence[float], Sequence[float]]]:
    path = Path(__file__).parent / "calibration.json"
    if not path.exists():
        return {}
    data = json.loads(path.read_bytes())
    return {name: (curve["raw"], curve["calibrated"]) for name, curve in data["curves"].items()}


def confidence(raw: float, cls: EvidenceClass, maturity: str) -> float:
    """The calibrated probability for a raw one, linear between the fitted knots, capped by class and maturity."""
    curve = _table().get(cls)
    value = raw if curve is None else interpolate(raw, *curve)
    ceiling = CEILING[cls] if maturity == "stable" else min(CEILING[cls], UNPROVEN_CEILING)
    return max(0.01, min(value, ceiling))


def interpolate(x: float, knots: Sequence[float], values: Sequence[float]) -> float:
    """The value at ``x`` on the line through the knots, flat outside them."""
    place = bisect_right(knots, x)
    if place == 0:
        return values[0]
    if place == len(knots):
        return values[-1]
    left, right = knots[place - 1], knots[place]
    share = 0.0 if right == left else (x - left) / (right - left)
    return values[place - 1] + share * (values[place] - values[place - 1])
