"""Charts for the reports: few points, nothing telling lost, what was judged first."""

from __future__ import annotations

import math

from tests.runs.helpers import one, read, table

from trainwreck.core.evidence import Evidence
from trainwreck.runs.chart import charts, downsample


def test_extremes_and_broken_values_survive() -> None:
    values = [math.sin(i / 50) for i in range(9000)]
    values[4321], values[7777] = 40.0, math.inf
    run = one("a.csv", table("step,loss", [f"{i},{v!r}" for i, v in enumerate(values)]))
    steps, kept = downsample(run.series["loss"])
    assert len(kept) < 700
    assert kept[steps.index(4321)] == 40.0
    assert math.isinf(kept[steps.index(7777)])


def test_only_the_judged_attempt_and_marked_series_first() -> None:
    rows = [f"{e},{1 / (e + 1)},{1.2 / (e + 1)}" for _ in range(2) for e in range(6)]
    runs = read("a.csv", table("epoch,loss,val_loss", rows))
    series = runs[-1].series["val_loss"]
    evidence = Evidence("some-sign", "direct", "text", series.where(2))
    found = charts(runs, [evidence])
    assert [chart.name for chart in found] == ["val_loss", "loss"]
    assert [mark.step for mark in found[0].marks] == [2]
