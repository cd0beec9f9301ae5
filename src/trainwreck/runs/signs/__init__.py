"""Signs over curves. One module per family; each has ``FAMILY`` and ``find(run) -> Iterator[Evidence]``."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache

from trainwreck.core.evidence import Evidence
from trainwreck.core.run import Run

Finder = Callable[[Run], Iterator[Evidence]]


@cache
def _finders() -> tuple[Finder, ...]:
    names = sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))
    return tuple(importlib.import_module(f"{__name__}.{name}").find for name in names)


def sightings(runs: Sequence[Run]) -> list[Evidence]:
    """All signs of all runs. Of several attempts at one run the last is judged; earlier ones are only counted."""
    return [
        replace(item, attempt=run.attempt)
        for run in runs
        if run.attempt == run.of_attempts
        for finder in _finders()
        for item in finder(run)
    ]
