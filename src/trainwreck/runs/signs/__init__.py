"""Signs over curves and events. One module per family; each has ``FAMILY`` and ``find(view) -> Iterator[Evidence]``.

Modules in ``WITHOUT_CURVES`` look at events, the outcome and the length only, so that numpy stays out of memory while
there is nothing to compute.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache

from trainwreck.core.evidence import Evidence
from trainwreck.core.run import Run
from trainwreck.runs.signs import log
from trainwreck.runs.signs._curve import View
from trainwreck.runs.signs._ranks import across
from trainwreck.runs.signs._whole import whole

Finder = Callable[[View], Iterator[Evidence]]

WITHOUT_CURVES = ("log", "live", "origin")


@cache
def _finders(curves: bool) -> tuple[Finder, ...]:
    names = sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))
    chosen = [n for n in names if curves or n in WITHOUT_CURVES]
    return tuple(importlib.import_module(f"{__name__}.{name}").find for name in chosen)


def sightings(runs: Sequence[Run]) -> list[Evidence]:
    """All signs of all runs. Of several attempts at one run the last is judged; of earlier ones only how they ended."""
    found = []
    for run in whole(runs):
        view = View(run)
        if run.attempt != run.of_attempts:
            found += [replace(item, attempt=run.attempt) for item in log.earlier(view)]
            continue
        found += [replace(item, attempt=run.attempt) for item in _look(view)]
    return [*found, *across(runs)]


def _look(view: View) -> list[Evidence]:
    if not any(len(s) > 0 for s in view.run.series.values()):
        return [item for finder in _finders(False) for item in finder(view)]
    import numpy as np

    with np.errstate(all="ignore"):  # untrusted numbers: what overflows is no sign
        return [item for finder in _finders(True) for item in finder(view)]
