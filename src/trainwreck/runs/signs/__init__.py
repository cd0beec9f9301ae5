"""Signs over curves and events. One module per family; each has ``FAMILY`` and ``find(view) -> Iterator[Evidence]``.

Modules in ``WITHOUT_CURVES`` look at events, the outcome and the length only, so that numpy stays out of memory while
there is nothing to compute.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache

from trainwreck.core.evidence import Evidence
from trainwreck.core.run import Run
from trainwreck.runs.signs import _stalls, log
from trainwreck.runs.signs._curve import View
from trainwreck.runs.signs._ranks import across
from trainwreck.runs.signs._whole import whole

Finder = Callable[[View], Iterator[Evidence]]

WITHOUT_CURVES = ("log", "live", "origin")
RECORDED = re.compile(r"(frame\d+|objective\d+|modules|attention|copies|thread\d+)/")
"""Tables of a recording that are no metrics of the user's: their names are variables and modules, not what a curve of
that name would be. Only the signs of the family ``live`` read them."""


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
    return [*found, *across(runs), *_stalls.across(runs)]


def _look(view: View) -> list[Evidence]:
    if not any(len(s) > 0 for s in view.run.series.values()):
        return [item for finder in _finders(False) for item in finder(view)]
    import numpy as np

    inner = {name for name in view.run.series if RECORDED.match(name)}
    outer = View(replace(view.run, series={n: s for n, s in view.run.series.items() if n not in inner}))
    outer = outer if inner else view
    outer.is_moved = view.is_moved
    with np.errstate(all="ignore"):  # untrusted numbers: what overflows is no sign
        return [
            item
            for finder in _finders(True)
            for item in finder(view if finder.__module__.rpartition(".")[2].startswith("live") else outer)
        ]
