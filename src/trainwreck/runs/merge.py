"""Two tellings of one run: do they agree, and what is their union?"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import replace

from trainwreck.core.run import Outcome, Run, Series

COMPARED = ("loss", "rl-loss", "eval-loss", "reward", "grad-norm", "policy-loss", "value-loss", "loss-term")
"""Roles whose values are a fingerprint of a run; schedules and clocks are the same for many."""
AGREE = 0.9
"""Share of common points that must agree; a console may cut or skip a few."""
RELATIVE, ABSOLUTE = 1e-3, 6e-5
"""Consoles print three or four digits."""
_RICH = ("hf-trainer-state", "tensorboard-events", "wandb", "llamafactory-jsonl")
_TELLING: tuple[Outcome, ...] = (
    "crashed", "time-limit", "killed", "cancelled", "interrupted", "completed", "unfinished", "unknown",
)  # fmt: skip
_SHIFTS = (0, 1, -1, 2, -2)


def same_run(one: Run, other: Run) -> bool:
    """True if the two tell the same values of the same quantity, step by step or in the same order."""
    for role in COMPARED:
        first, second = one.by_role(role), other.by_role(role)
        if first and second:
            return any(_agree(a, b) for a in first[:3] for b in second[:3])
    return False


def _agree(a: Series, b: Series) -> bool:
    if a.unit == b.unit:
        values = dict(zip(a.steps, a.values, strict=True))
        common = [(values[step], value) for step, value in zip(b.steps, b.values, strict=True) if step in values]
        if len(common) >= min(5, len(a), len(b)) and len(common) >= 2 and _close(common):
            return True
    if abs(len(a) - len(b)) > 2 or min(len(a), len(b)) < 5:
        return False
    for shift in _SHIFTS:
        left = a.values[max(0, shift) :]
        right = b.values[max(0, -shift) :]
        if _close(list(zip(left, right, strict=False))):
            return True
    return False


def _close(pairs: Sequence[tuple[float, float]]) -> bool:
    """Nearly all pairs agree, and they are not all the same number (two dead runs are not one run)."""
    if not pairs:
        return False
    good = sum(x == y or (x != x and y != y) or abs(x - y) <= max(RELATIVE * abs(x), ABSOLUTE) for x, y in pairs)
    varied = len({x for x, _ in pairs[:50] if not math.isnan(x)}) > 1 or len(pairs) < 5
    return varied and good >= AGREE * len(pairs)


def union(parts: Sequence[Run]) -> Run:
    """One run out of several tellings of it: the richest one's series, and what only the others have."""
    ordered = sorted(parts, key=_richness)
    main = ordered[0]
    series = dict(main.series)
    for other in ordered[1:]:
        series |= {s.name: s for s in _news(series.values(), other)}
    counted = max(parts, key=lambda run: run.of_attempts)
    code = next((run.exit_code for run in parts if run.exit_code is not None), None)
    settings = {key: value for run in reversed(ordered) for key, value in run.settings.items()}
    return replace(
        main,
        series=series,
        attempt=counted.attempt,
        of_attempts=counted.of_attempts,
        settings=settings,
        events=[event for run in ordered for event in run.events],
        outcome=min((run.outcome for run in parts), key=_TELLING.index),
        exit_code=code,
        planned=next((run.planned for run in ordered if run.planned), None),
        seams=sorted({*main.seams} or {s for run in parts for s in run.seams}),
        ranks=sorted({rank for run in parts for rank in run.ranks}),
        files=_unique(path for run in ordered for path in run.files),
        notes=_unique(note for run in ordered for note in run.notes),
    )


def _news(have: Iterable[Series], other: Run) -> list[Series]:
    """Series of ``other`` that tell something the run does not have yet."""
    known = list(have)
    tails = {_tail(series.name) for series in known}
    roles = {series.role for series in known if series.role}
    names = {series.name for series in known}
    shared = ("loss-term", "eval-loss-term", "metric", "eval-metric", "reward-term", "grad-norm-term")
    return [
        s
        for s in other.series.values()
        if s.name not in names
        and _tail(s.name) not in tails
        and (s.role is None or s.role not in roles or s.role in shared)
    ]


def _tail(name: str) -> str:
    """``train/loss`` and ``loss`` are one name, ``eval/loss`` and ``eval_loss`` too."""
    text = name.strip().lower().replace(" ", "_")
    for prefix in ("train/", "train_", "training/", "metrics/"):
        text = text.removeprefix(prefix)
    return text.replace("/", "_")


def _richness(run: Run) -> tuple[int, int]:
    rank = _RICH.index(run.format) if run.format in _RICH else (20 if run.format == "console" else 10)
    return (rank, -sum(len(series) for series in run.series.values()))


def _unique(items: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(items))


def join(earlier: Run, later: Run, *, seam: bool = True) -> Run:
    """The earlier part up to where the later one begins, then the later one. ``seam``: a resume lies between them."""
    start = min((s.steps[0] for s in later.series.values() if len(s)), default=math.inf)
    series = dict(later.series)
    for name, old in earlier.series.items():
        new = later.series.get(name)
        begin = new.steps[0] if new is not None and len(new) else start
        count = next((i for i, step in enumerate(old.steps) if step >= begin), len(old))
        lines = array("q", old.lines[:count]) if old.lines is not None else None
        steps, values = old.steps[:count], old.values[:count]
        if new is not None:
            if lines is not None and new.lines is not None and old.path == new.path:
                lines.extend(new.lines)
            else:
                lines = None
            steps, values = steps + new.steps, values + new.values
        if values:
            series[name] = replace(old, steps=steps, values=values, lines=lines, path=later.path)
    return replace(
        later,
        series=series,
        events=[*earlier.events, *later.events],
        seams=[*earlier.seams, *([start] if seam else []), *later.seams],
        files=_unique([*earlier.files, *later.files]),
        notes=_unique([*(n for n in earlier.notes if not n.startswith("ended ")), *later.notes]),
        settings={**earlier.settings, **later.settings},
    )
