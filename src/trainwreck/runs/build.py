"""Collect points into series while reading."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any

from trainwreck.core.run import Series, StepUnit
from trainwreck.runs.roles import role_of


class SeriesBuilder:
    """Grows the series of one run attempt, in the order of the file."""

    def __init__(self, path: str, unit: StepUnit = "step") -> None:
        self._path = path
        self._unit: StepUnit = unit
        self._points: dict[str, tuple[array[float], array[float], array[int]]] = {}

    def add(self, name: str, step: float, value: float, line: int = 0) -> None:
        """One point. ``line`` is its line in the file, 0 if unknown."""
        if name not in self._points:
            self._points[name] = (array("d"), array("d"), array("q"))
        steps, values, lines = self._points[name]
        steps.append(step)
        values.append(value)
        lines.append(line)

    def __bool__(self) -> bool:
        return bool(self._points)

    def series(self, roles: Mapping[str, str | None] | None = None) -> dict[str, Series]:
        """The series by name. ``roles`` overrides the common table where a format knows better."""
        given = roles or {}
        return {
            name: Series(
                name=name,
                role=given[name] if name in given else role_of(name),
                unit=self._unit,
                steps=steps,
                values=values,
                path=self._path,
                lines=lines if any(lines) else None,
            )
            for name, (steps, values, lines) in self._points.items()
        }


def number(value: Any) -> float | None:
    """``value`` as a float if it stands for one (``1,234``, ``'2.1e-05'``, ``nan``, ``12.3%``), None otherwise."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return float(value)
    if not isinstance(value, str):
        return None
    text = value.strip()
    percent = text.endswith("%")
    try:
        parsed = float(text.rstrip("%").replace(",", "") if text[:1].isdigit() or text[:1] in "+-." else text)
    except ValueError:
        return None
    if text[:1].isalpha() and text.lower() not in ("nan", "inf", "infinity"):
        return None
    return parsed / 100 if percent else parsed
