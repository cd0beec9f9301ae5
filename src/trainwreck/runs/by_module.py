"""What a recording knows by module: heat maps (module by stretch of steps), a table, and memory, for display."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

from trainwreck.core.results import Cell, Heat, ModuleRow, Modules
from trainwreck.core.run import Run, Series

BUCKETS = 48
"""Columns of a heat map: they fit beside a module's name in 100 characters."""
BY_MODULE = ("grad_norm", "update_ratio", "weight_norm")
OUTPUT = "output"
TITLES = {
    "grad_norm": "Gradient norm",
    OUTPUT: "Largest output",
    "update_ratio": "Update over weight",
    "weight_norm": "Weight norm",
}
MEMORY = {"memory_forward": "after forward", "memory_backward": "after backward", "memory": "after the step"}
DEVICE_MEMORY = {f"device_{name}": f"{words} (device)" for name, words in MEMORY.items()}
MAX_RUNS = 2
"""Ranks that are shown; they hold the same modules."""
FORMAT = "trainwreck-recording"
_NAME = re.compile(r"(?:optimizer\d+/)?(grad_norm|update_ratio|weight_norm)/(.+)$")
_OUTPUT = re.compile(r"modules/(.+)\.(min|max|zero)$")

Found = Mapping[str, Mapping[str, Series]]


def modules(runs: Iterable[Run]) -> list[Modules]:
    """One for each rank's recording that knows anything by module, those with non-finite values first."""
    told = [one for run in runs if run.format == FORMAT and (one := of_run(run)).rows]
    return sorted(told, key=lambda m: (not any(row.nonfinite for row in m.rows), m.rank))[:MAX_RUNS]


def of_run(run: Run) -> Modules:
    """Everything by module of one rank; without rows where nothing was recorded."""
    found = _by_quantity(run)
    heats = [heat for quantity in TITLES if (heat := _heat(quantity, found.get(quantity, {}))) is not None]
    names = dict.fromkeys(name for quantity in TITLES for name in found.get(quantity, {}))
    zeros = {m[1]: s for n, s in run.series.items() if (m := _OUTPUT.match(n)) and m[2] == "zero" and len(s)}
    rows = [_row(name, found, zeros.get(name)) for name in names]
    memory = [
        (words, max(series.values), series.values[-1])
        for name, words in (MEMORY | DEVICE_MEMORY).items()
        if (series := run.series.get(name)) is not None and len(series)
    ]
    return Modules(run.path, run.ranks[0] if run.ranks else 0, heats, rows, memory)


def _by_quantity(run: Run) -> dict[str, dict[str, Series]]:
    found: dict[str, dict[str, Series]] = {}
    ends: dict[str, dict[str, Series]] = {}
    for name, series in run.series.items():
        if not len(series):
            continue
        if match := _NAME.match(name):
            found.setdefault(match[1], {}).setdefault(match[2], series)
        elif (match := _OUTPUT.match(name)) and match[2] != "zero":
            ends.setdefault(match[1], {})[match[2]] = series
    if ends:
        found[OUTPUT] = {name: _magnitude(sides) for name, sides in ends.items()}
    return found


def _magnitude(sides: Mapping[str, Series]) -> Series:
    """The larger of |least| and |greatest| output at each step."""
    largest: dict[float, float] = {}
    for series in sides.values():
        for step, value in zip(series.steps, series.values, strict=True):
            before = largest.get(step, 0.0)
            largest[step] = math.nan if math.isnan(value) or math.isnan(before) else max(before, abs(value))
    one = next(iter(sides.values()))
    steps = sorted(largest)
    return Series(one.name, None, one.unit, array("d", steps), array("d", [largest[s] for s in steps]), one.path)


def _heat(quantity: str, series: Mapping[str, Series]) -> Heat | None:
    if not series:
        return None
    first = min(s.steps[0] for s in series.values())
    last = max(s.steps[-1] for s in series.values())
    count = _count(series.values(), last - first)
    rows = [(name, buckets(s, first, last, count)) for name, s in series.items()]
    return Heat(quantity, TITLES[quantity], first, last, rows)


def _row(name: str, found: Found, zeros: Series | None) -> ModuleRow:
    mine = {quantity: of[name] for quantity, of in found.items() if name in of}
    broken = sum(not math.isfinite(v) for series in mine.values() for v in series.values)
    middle = {quantity: _median(series) for quantity, series in mine.items()}
    output = mine.get(OUTPUT)
    return ModuleRow(
        name,
        middle.get("grad_norm"),
        middle.get("update_ratio"),
        plain(mine["weight_norm"].values[-1]) if "weight_norm" in mine else None,
        plain(output.values[-1]) if output is not None else None,
        zeros.values[-1] if zeros is not None else None,
        broken,
    )


def _median(series: Series) -> float | None:
    finite = [v for v in series.values if math.isfinite(v)]
    return median(finite) if finite else None


def _count(series: Iterable[Series], span: float) -> int:
    """How many stretches: at most ``BUCKETS``, and so few that what is looked at rarely fills them all."""
    steps = sorted({step for one in series for step in one.steps})
    gaps = [b - a for a, b in pairwise(steps)]
    return max(1, min(BUCKETS, int(span / median(gaps)))) if gaps else 1


def buckets(series: Series, first: float, last: float, count: int = BUCKETS) -> list[Cell]:
    """The median of each of ``count`` stretches of steps; None where nothing was recorded, "nan" where it broke."""
    held: list[list[float]] = [[] for _ in range(count)]
    span = max(last - first, 1.0)
    for step, value in zip(series.steps, series.values, strict=True):
        held[min(count - 1, int((step - first) / span * count))].append(value)
    return [_cell(values) for values in held]


def _cell(values: Sequence[float]) -> Cell:
    if not values:
        return None
    return median(values) if all(map(math.isfinite, values)) else "nan"


def plain(value: float) -> Any:
    """A number, or the word for one that is not finite."""
    return value if math.isfinite(value) else "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
