"""The geometry of a curve for the HTML report: a path in a box of 1000 x 1000, ticks and marks in per cent."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from trainwreck.core.results import Chart, Mark
from trainwreck.report import words
from trainwreck.report.safe import line
from trainwreck.report.sparkline import LOG_RANGE, share

BOX = 1000


@dataclass(frozen=True)
class Tick:
    """``at`` in per cent from the left or from the top."""

    at: float
    label: str


@dataclass(frozen=True)
class MarkAt:
    """A numbered mark on a curve with all that was seen there. ``quiet``: it speaks for no cause."""

    at: float
    number: int
    step: str
    texts: Sequence[str]
    quiet: bool


@dataclass(frozen=True)
class Drawn:
    """One curve, ready to be written as SVG. ``bad`` are places without a finite value, in per cent from the left."""

    name: str
    run: str
    unit: str
    log: bool
    path: str
    y_ticks: Sequence[Tick]
    x_ticks: Sequence[Tick]
    marks: Sequence[MarkAt]
    bad: Sequence[float]
    figures: str
    count: int


def points(chart: Chart) -> list[tuple[float, float]]:
    """The points with a finite step, in the order of their steps."""
    pairs = [(s, v) for s, v in zip(chart.steps, chart.values, strict=False) if math.isfinite(s)]
    return sorted(pairs, key=lambda pair: pair[0])


def marked_steps(chart: Chart) -> dict[float, list[Mark]]:
    """The marks with a finite step, by step, in order."""
    found: dict[float, list[Mark]] = {}
    for mark in sorted((m for m in chart.marks if math.isfinite(m.step)), key=lambda m: m.step):
        found.setdefault(mark.step, []).append(mark)
    return found


def draw(chart: Chart, telling: Collection[str] = ()) -> Drawn | None:
    """``chart`` as geometry; None where there is no finite value. ``telling``: signs that speak for a cause."""
    pairs = points(chart)
    finite = [v for _, v in pairs if math.isfinite(v)]
    if not finite:
        return None
    low, high = min(finite), max(finite)
    log = low > 0 and high / low >= LOG_RANGE
    first, last = pairs[0][0], pairs[-1][0]
    y_ticks = _log_ticks(low, high) if log else _ticks(low, high)
    bottom, top = (low, high) if log else (min(low, *y_ticks), max(high, *y_ticks))
    if not log and bottom == top:
        bottom, top = bottom - max(abs(bottom) * 0.5, 0.5), top + max(abs(top) * 0.5, 0.5)

    def x(step: float) -> float:
        return 100 * share(step, first, last)

    def y(value: float) -> float:
        part = share(math.log(value), math.log(bottom), math.log(top)) if log else share(value, bottom, top)
        return 100 * (1 - part)

    marks = [
        MarkAt(
            round(x(step), 2),
            number,
            words.step(step),
            list(dict.fromkeys(line(m.text, 300) for m in same)),
            not any(m.sign in telling for m in same),
        )
        for number, (step, same) in enumerate(marked_steps(chart).items(), 1)
    ]
    bad = [round(x(s), 1) for s, v in pairs if not math.isfinite(v)]
    return Drawn(
        name=line(chart.name, 80),
        run=line(chart.run, 200),
        unit=line(chart.unit, 40),
        log=log,
        path=_path([(x(s), y(v)) if math.isfinite(v) else None for s, v in pairs]),
        y_ticks=[Tick(round(y(v), 2), words.number(v)) for v in y_ticks],
        x_ticks=[Tick(round(x(v), 2), words.number(v)) for v in _ticks(first, last) if first <= v <= last],
        marks=marks,
        bad=_thinned(bad),
        figures=f"min {words.number(low)} · max {words.number(high)} · last {words.number(pairs[-1][1])}",
        count=len(pairs),
    )


def position(step: float, first: float, last: float) -> float:
    """Where a step lies between the first and last step of a run, in per cent, kept inside."""
    return round(100 * share(step, first, last), 2)


def _path(places: Sequence[tuple[float, float] | None]) -> str:
    """Moves and lines; a gap where a value is missing; a lone point gets a line of no length, drawn as a dot."""
    parts: list[str] = []
    length = 0
    for place in places:
        if place is None:
            if length == 1:
                parts.append("h0")
            length = 0
            continue
        parts.append(f"{'L' if length else 'M'}{place[0] * BOX / 100:.0f} {place[1] * BOX / 100:.0f}")
        length += 1
    if length == 1:
        parts.append("h0")
    return "".join(parts)


def _thinned(places: Sequence[float], most: int = 32) -> list[float]:
    unique = sorted(set(places))
    every = max(1, math.ceil(len(unique) / most))
    return unique[::every]


def _ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round values from just below ``low`` to just above ``high``, in steps of 1, 2 or 5 times a power of ten."""
    width = high - low
    if not math.isfinite(width) or width <= 0:
        return [low] if low == high else [low, high]
    raw = width / (most - 1)
    scale = 10.0 ** math.floor(math.log10(raw)) if raw > 1e-300 else raw
    size = next(scale * f for f in (1, 2, 5, 10) if scale * f >= raw * 0.999)
    start, end = math.floor(low / size + 1e-9), math.ceil(high / size - 1e-9)
    if end - start > 3 * most:
        return [low, high]
    return [float(f"{n * size:.12g}") for n in range(start, end + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten between the two, at most six of them."""
    start, end = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    every = max(1, math.ceil((end - start + 1) / 6))
    found = [10.0**n for n in range(start, end + 1, every) if -300 < n < 300]
    return found or [low, high]


def shades(rows: Sequence[tuple[str, Sequence[float | str | None]]], levels: int = 8) -> list[dict[str, str]]:
    """For each row one path a shade, in a box as wide as there are cells and 1 high; one logarithmic scale for all.

    Keys: "1" (least) to ``levels`` (most), "zero", "bad" (not finite). Cells without a value are left empty.
    """
    logs = [math.log10(v) for _, row in rows for v in row if isinstance(v, (int, float)) and v > 0]
    low, high = (min(logs), max(logs)) if logs else (0.0, 0.0)

    def shade(value: float | str | None) -> str | None:
        if value is None or isinstance(value, str):
            return None if value is None else "bad"
        if value <= 0:
            return "zero"
        return str(1 + round((math.log10(value) - low) / max(high - low, 1e-9) * (levels - 1)))

    return [_paths([shade(v) for v in row]) for _, row in rows]


def _paths(cells: Sequence[str | None]) -> dict[str, str]:
    """Neighbours of one shade are one rectangle."""
    found: dict[str, str] = {}
    start = 0
    for i in range(1, len(cells) + 1):
        if i == len(cells) or cells[i] != cells[start]:
            name = cells[start]
            if name is not None:
                found[name] = found.get(name, "") + f"M{start} 0h{i - start}v1h-{i - start}z"
            start = i
    return found
