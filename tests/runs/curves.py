"""Series in memory for the tests of signs."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from trainwreck.catalogue.load import catalogue
from trainwreck.core.run import Run, Series, StepUnit
from trainwreck.reasoning.diagnose import diagnose
from trainwreck.runs.roles import in_context
from trainwreck.runs.signs import sightings

KNOWN = catalogue()


def run_of(curves: Mapping[str, Any], unit: StepUnit = "step", **more: Any) -> Run:
    """A run with these series: values alone (steps 0, 1, …) or a pair (steps, values). Roles come from the names."""
    roles = in_context(curves.keys())
    series = {}
    for name, given in curves.items():
        steps, values = given if isinstance(given, tuple) else (range(len(given)), given)
        points = array("d", [float(v) for v in values])
        series[name] = Series(name, roles[name], unit, array("d", [float(s) for s in steps]), points, "m.csv")
    return Run("m.csv", "test", series, **more)


def signs_of(curves: Mapping[str, Any], unit: StepUnit = "step", **more: Any) -> set[str]:
    return {item.sign for item in sightings([run_of(curves, unit, **more)])}


def causes_of(curves: Mapping[str, Any], unit: StepUnit = "step", **more: Any) -> dict[str, float]:
    """Causes of severity warning or above with their confidence."""
    run = run_of(curves, unit, **more)
    observed = frozenset({s.role for s in run.series.values() if s.role} | {"metrics"})
    answer = diagnose(sightings([run]), KNOWN, observed)
    return {c.id: c.confidence for c in answer.causes if c.severity != "suggestion"}


def told(signs: Iterable[str]) -> set[str]:
    """Of these signs, those that a reader is told as symptoms."""
    return {s for s in signs if (meant := KNOWN.sign(s)) is not None and meant.symptom}


def falling(count: int, start: float, end: float, pace: float) -> Any:
    return end + (start - end) * np.exp(-np.arange(count) / pace)


def noise(count: int, size: float, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(0, size, count)
