"""What outputs of modules and the loss show together over the run, at the steps that the recorder sampled."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from statistics import median

from trainwreck.core.evidence import Evidence, Where
from trainwreck.core.run import Series
from trainwreck.runs.signs._curve import View, seen, show

TABLE = "modules/"
EARLY = 4
"""Looks in the first steps: what is saturated then was made so."""
SATURATED = 0.7
"""Share of outputs within 2% of the ends of a range that a sane start never reaches (it starts near 0)."""
ALIKE = 0.03
"""Share of their first spread over samples below which rows have become one."""
SAME = 0.02
"""Share of the largest output below which a spread over samples is none: the variance that an encoder gives out falls
to a few hundredths of its first value as well, and still differs from sample to sample by a tenth of its size."""
EXACT = 1e-6
"""Difference from log 2 that rounding to single precision explains."""


def find(view: View) -> Iterator[Evidence]:
    """Saturated modules, rows that become alike, a loss that compares a model with itself."""
    columns = {n.removeprefix(TABLE): s for n, s in view.run.series.items() if n.startswith(TABLE)}
    saturated = {n: s for n, s in columns.items() if n.endswith(".saturated") and len(s) >= EARLY}
    for name, series in saturated.items():
        share = median(series.values[:EARLY])
        if share > SATURATED and median(series.values) > 0.5:
            text = f"{share:.0%} of the outputs of {_module(name)} lie at the ends of its range in the first steps"
            yield seen("live-units-saturated", text, _where(series, _module(name)), share)
            break
    alike = [n for n, s in columns.items() if n.endswith(".spread") and _falls(s) and _small(columns, n)]
    # a policy that plays well leaves its critic nothing to tell states apart by
    if alike and "policy/products" not in view.run.series:
        name, series = alike[0], columns[alike[0]]
        text = (
            f"the outputs of {_module(name)} have become the same for all samples: their spread fell from"
            f" {show(max(series.values[:EARLY]))} to {show(series.values[-1])}"
        )
        yield seen("live-rows-alike", text, _where(series, _module(name)), series.values[-1])
    yield from _log_two(view)


def _falls(series: Series) -> bool:
    if len(series) < 8:
        return False
    first, late = median(series.values[:EARLY]), median(series.values[-3:])
    return first > 1e-3 and late < ALIKE * first


def _small(columns: Mapping[str, Series], name: str) -> bool:
    """True where the samples differ by next to nothing beside the size of the outputs (or the size isn't known)."""
    ends = [columns[f"{_module(name)}.{end}"] for end in ("min", "max") if f"{_module(name)}.{end}" in columns]
    size = max((abs(v) for s in ends for v in s.values[-3:]), default=0.0)
    return not size or median(columns[name].values[-3:]) < SAME * size


def _log_two(view: View) -> Iterator[Evidence]:
    loss, ratios = view.run.series.get("loss"), view.run.series.get("update_ratio")
    for prefix in ("", *(f"optimizer{i}/" for i in range(1, 4))):
        loss, ratios = view.run.series.get(f"{prefix}loss"), view.run.series.get(f"{prefix}update_ratio")
        if loss is None or ratios is None or len(loss) < 10 or not len(ratios):
            continue
        same = all(abs(v - math.log(2)) < EXACT for v in loss.values)
        if same and median(ratios.values) > 1e-6:
            text = (
                f"the loss is log 2 at each of {len(loss)} steps while weights move: both sides of a comparison are one"
            )
            yield seen("live-loss-is-log-two", text, _where(loss, None), math.log(2))
            return


def _module(column: str) -> str:
    return column.rpartition(".")[0]


def _where(series: Series, module: str | None) -> Where:
    return Where("tensor", path=series.path, step=series.steps[-1], metric=series.name, module=module)
