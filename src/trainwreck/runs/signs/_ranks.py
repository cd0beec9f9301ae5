"""What only ranks side by side show: other weights from the start, weights that part, the same data everywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from trainwreck.core.evidence import Evidence, Where
from trainwreck.core.run import Event, Run, Series
from trainwreck.runs.places import directory

START, DIVERGED = 1e-6, 1e-4
"""Relative differences of weight norms above which replicas are not the same. Replicas that are kept in step agree bit
for bit; the first allows for sums in another order, the second for kernels that are not deterministic (judgements)."""
AVERAGED = "weights-moved-outside"
"""Event of a recorder that saw weights change between steps (record/inside/ranks.py)."""
MIN_STEPS = 8
"""Steps with the same loss on all ranks before that is no accident; losses of different batches agree in no digit."""


def across(runs: Sequence[Run]) -> Iterator[Evidence]:
    """Signs of recordings that were written side by side, one of each kind for each group."""
    mine = [r for r in runs if r.format == "trainwreck-recording" and len(r.ranks) == 1]
    for _, group in groupby(sorted(mine, key=_group_of), key=_group_of):
        ranks = {run.ranks[0]: run for run in sorted(group, key=lambda r: r.ranks[0])}
        facts = {rank: found for rank, run in ranks.items() if (found := _facts(run)) is not None}
        if len(facts) < 2 or any(f.get("sharded") for f in facts.values()):
            continue
        whole = [ranks[rank] for rank in facts]
        # Replicas that are averaged from time to time (local SGD) differ in between.
        averaged = any(e.kind == AVERAGED for run in whole for e in run.events)
        if not averaged:
            yield from _gradients(whole)
        yield from _weights(whole, averaged)
        yield from _data(whole)


def _group_of(run: Run) -> tuple[str, int]:
    return directory(run.path), run.attempt


def _facts(run: Run) -> dict[str, Any] | None:
    event: Event | None = next((e for e in run.events if e.kind == "rank"), None)
    return event.value if event is not None and isinstance(event.value, dict) else None


def _weights(ranks: list[Run], averaged: bool) -> Iterator[Evidence]:
    start = _first_difference(ranks, "start_norm", START)
    if start is not None:
        name, step, text = start
        item = _sighting("live-ranks-start-different", f"before the first step {text}", ranks[0], name, step)
        model = (_facts(ranks[0]) or {}).get("model")
        if isinstance(model, list) and len(model) == 2 and isinstance(model[0], str) and isinstance(model[1], int):
            item = replace(item, where=replace(item.where, kind="code", path=model[0], line=model[1]))
        yield item
    if start is not None or averaged:
        return
    later = _first_difference(ranks, "weight_norm", DIVERGED)
    if later is not None:
        name, step, text = later
        yield _sighting(
            "live-ranks-diverge", f"after step {step:g} {text}, though they began equal", ranks[0], name, step
        )


def _gradients(ranks: list[Run]) -> Iterator[Evidence]:
    """Gradients that were averaged are the same on every rank when the optimizer steps, whatever its weights."""
    for other in ranks[1:]:
        first = ranks[0].series.get("grad_norm")
        pairs = list(_pairs(first, other.series.get("grad_norm"))) if first is not None else []
        apart = [step for step, a, b in pairs if abs(a - b) > DIVERGED * max(abs(a), abs(b))]
        if len(pairs) >= MIN_STEPS and 2 * len(apart) > len(pairs):
            text = (
                f"the gradient norm differs between ranks {ranks[0].ranks[0]} and {other.ranks[0]} at {len(apart)} of "
                f"{len(pairs)} steps: gradients are not averaged"
            )
            yield _sighting("live-gradients-differ", text, ranks[0], "grad_norm", apart[0])
            return


def _first_difference(ranks: list[Run], column: str, tolerance: float) -> tuple[str, float, str] | None:
    """(column, step, words) of the first step at which two ranks differ."""
    found: tuple[str, float, str] | None = None
    for name, series in ranks[0].series.items():
        if name != column and not name.startswith(f"{column}/"):
            continue
        for other in ranks[1:]:
            for step, a, b in _pairs(series, other.series.get(name)):
                if abs(a - b) > tolerance * max(abs(a), abs(b)):
                    if found is None or (step, -len(name)) < (found[1], -len(found[0])):
                        module = name.partition("/")[2] or "all weights"
                        here, there = ranks[0].ranks[0], other.ranks[0]
                        words = f"the norm of {module} is {a:.6g} on rank {here}, {b:.6g} on rank {there}"
                        found = (name, step, words)
                    break
    return found


def _data(ranks: list[Run]) -> Iterator[Evidence]:
    """The same loss on all ranks at every step while it changes from step to step: all of them see the same batches."""
    first = ranks[0].series.get("loss")
    if first is None:
        return
    for other in ranks[1:]:
        pairs = list(_pairs(first, other.series.get("loss")))
        if len(pairs) < MIN_STEPS or any(a != b for _, a, b in pairs) or len({a for _, a, _ in pairs}) < MIN_STEPS:
            return
    text = f"the loss is the same on all {len(ranks)} ranks at each of {len(first)} steps: they see the same batches"
    yield _sighting("live-ranks-same-data", text, ranks[0], "loss", first.steps[0])


def _pairs(one: Series, other: Series | None) -> Iterator[tuple[float, float, float]]:
    """(step, value, value) of the steps that both have."""
    if other is None:
        return
    known = dict(zip(other.steps, other.values, strict=True))
    for step, value in zip(one.steps, one.values, strict=True):
        if step in known:
            yield step, value, known[step]


def _sighting(sign: str, text: str, run: Run, metric: str, step: float) -> Evidence:
    module = metric.partition("/")[2] or None
    where = Where("metric", path=run.path, step=step, metric=metric, module=module)
    return replace(Evidence(sign, "direct", text, where), attempt=run.attempt)
