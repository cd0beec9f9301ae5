"""Quantities that are exactly zero although they cannot be."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.core.evidence import Evidence
from trainwreck.core.run import Run

FAMILY = "zero"
MIN_POINTS = 5
"""Fewer points can be a coincidence of rounding (two decimals printed); a judgement."""


def find(run: Run) -> Iterator[Evidence]:
    """Loss or gradient norm that is exactly zero from the first to the last point."""
    for role, sign, noun in (("loss", "zero-loss", "loss"), ("grad-norm", "zero-grad-norm", "gradient norm")):
        for series in run.by_role(role):
            if len(series) >= MIN_POINTS and not any(series.values):
                text = f"{noun} {series.name} is exactly 0 at all {len(series)} logged points"
                yield Evidence(sign, "direct", text, series.where(0), 0.0, end=series.steps[-1])
