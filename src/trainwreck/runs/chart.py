"""Down-sampled series for the reports: few points, but every extreme and every non-finite value kept."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trainwreck.core.evidence import Evidence
from trainwreck.core.results import Chart, Mark
from trainwreck.core.run import Run, Series

POINTS = 400
MAX_CHARTS = 24
_ORDER = (
    *(
        "loss",
        "eval-loss",
        "rl-loss",
        "reward",
        "grad-norm",
        "lr",
        "eval-reward",
        "generator-loss",
        "discriminator-loss",
    ),
    *("policy-loss", "value-loss", "kl", "entropy", "neg-entropy", "loss-scale", "eval-metric", "metric", "perplexity"),
    *(
        "eval-perplexity",
        "loss-term",
        "eval-loss-term",
        "codebook-usage",
        "codebook-perplexity",
        "reward-std",
        "reward-term",
    ),
)
"""What a reader of a report wants to see first; other roles follow, clocks and counters never."""
_NEVER = frozenset(("epoch", "progress", "batch-size", "time", "step-time", "data-time"))


def charts(runs: Sequence[Run], evidence: Sequence[Evidence]) -> list[Chart]:
    """Charts of the judged attempts, marked where evidence lies on them; those with marks first, then by role."""
    marked = {(e.where.path, e.where.metric) for e in evidence if e.where.metric}
    judged = [run for run in runs if run.attempt == run.of_attempts]
    chosen = [
        (run, s)
        for run in judged
        for s in run.series.values()
        if len(s) > 1 and ((s.role and s.role not in _NEVER) or (s.path, s.name) in marked)
    ]
    chosen.sort(key=lambda pair: ((pair[1].path, pair[1].name) not in marked, _place(pair[1].role), pair[1].name))
    result = []
    for run, series in chosen[:MAX_CHARTS]:
        steps, values = downsample(series)
        marks = [
            Mark(e.where.step, e.text, e.sign)
            for e in evidence
            if e.where.metric == series.name and e.where.path == series.path and e.where.step is not None
        ]
        result.append(Chart(series.name, series.role, series.unit, run.path, steps, values, marks))
    return result


def _place(role: str | None) -> int:
    return _ORDER.index(role) if role in _ORDER else len(_ORDER)


def downsample(series: Series, points: int = POINTS) -> tuple[list[float], list[float]]:
    """At most about ``points`` points: of each bucket the smallest and largest value and the first non-finite one."""
    n = len(series)
    if n <= points:
        return list(series.steps), list(series.values)
    size = math.ceil(n / (points / 2))
    keep: list[int] = []
    for start in range(0, n, size):
        bucket = range(start, min(start + size, n))
        finite = [i for i in bucket if math.isfinite(series.values[i])]
        broken = next((i for i in bucket if not math.isfinite(series.values[i])), None)
        picks = {broken} if broken is not None else set()
        if finite:
            picks |= {min(finite, key=series.values.__getitem__), max(finite, key=series.values.__getitem__)}
        keep += sorted(p for p in picks if p is not None)
    return [series.steps[i] for i in keep], [series.values[i] for i in keep]
