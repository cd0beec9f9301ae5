"""A curve in one line of text: eight levels of blocks, ``x`` where a value is no number, ``!`` under the evidence."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trainwreck.core.frozen import Frozen
from trainwreck.core.results import Chart
from trainwreck.report import words
from trainwreck.report.safe import line

BLOCKS = "▁▂▃▄▅▆▇█"
ASCII = "_.-=+*#@"
WIDTH = 56
"""Columns: with a label before and figures after it still fits into 80."""
LOG_RANGE = 50.0
"""A curve whose largest value is this many times its smallest (all positive) is drawn on a log scale, else its lower
part is one flat line. A judgement; eight levels resolve a factor of eight at best."""


class Sparkline(Frozen):
    """``blocks`` and ``marks`` are equally wide; ``label`` and ``figures`` say what is drawn."""

    label: str
    blocks: str
    marks: str
    figures: str


def sparkline(
    chart: Chart, signs: Sequence[str] | None = None, *, unicode: bool = True, width: int = WIDTH
) -> Sparkline | None:
    """``chart`` as one line, marked at the evidence (of ``signs`` only, if given). None without a finite value."""
    finite = [v for v in chart.values if math.isfinite(v)]
    if len(chart.values) < 2 or not finite:
        return None
    low, high = min(finite), max(finite)
    log = low > 0 and high / low >= LOG_RANGE
    steps = [s for s in chart.steps if math.isfinite(s)]
    first, last = (min(steps), max(steps)) if steps else (0.0, 0.0)
    width = max(8, min(width, max(len(chart.values), 24)))

    def column(step: float) -> int:
        return int(share(step, first, last) * (width - 1) + 0.5)

    columns: list[list[float]] = [[] for _ in range(width)]
    for step, value in zip(chart.steps, chart.values, strict=False):
        columns[column(step)].append(value)
    levels = BLOCKS if unicode else ASCII
    drawn, before = [], " "
    for values in columns:
        if values:
            broken = any(not math.isfinite(v) for v in values)
            top = max((v for v in values if math.isfinite(v)), default=low)
            before = "x" if broken else levels[_level(top, low, high, log)]
        drawn.append(before)
    marks = [" "] * width
    for mark in chart.marks:
        if signs is None or mark.sign in signs:
            marks[column(mark.step)] = "!"
    label = line(chart.name, 40) + (" (log)" if log else "")
    figures = f"min {words.number(low)}, max {words.number(high)}, last {words.number(chart.values[-1])}"
    figures += f"; {chart.unit} {words.step(first)} to {words.step(last)}"
    return Sparkline(label, "".join(drawn), "".join(marks).rstrip(), figures)


def share(value: float, low: float, high: float) -> float:
    """How far ``value`` lies from ``low`` to ``high``, 0..1, kept inside; 0 where they are the same."""
    if not low < high or math.isnan(value):
        return 0.0
    # Halved: the difference of two huge values overflows.
    return (min(max(value, low), high) / 2 - low / 2) / (high / 2 - low / 2) if high / 2 > low / 2 else 0.0


def _level(value: float, low: float, high: float, log: bool) -> int:
    part = share(math.log(value), math.log(low), math.log(high)) if log else share(value, low, high)
    return int(part * 7 + 0.5)
