"""The programs of a tree looked at one by one: over several processes where there are many, unchanged ones not again.

The answer is the same bytes whatever the number of processes and whatever was kept.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from trainwreck.checking import cache
from trainwreck.code.partition import PYTHON, programs
from trainwreck.code.read import MAX_BYTES, build
from trainwreck.code.witness import StaticSightings, witness
from trainwreck.core.evidence import Evidence
from trainwreck.core.program import Problem
from trainwreck.core.source import Source, from_bytes

if TYPE_CHECKING:
    from concurrent.futures import Future

WORTH_A_PROCESS = 600_000
"""Bytes of source per process, some 1.2 s of work: starting one costs 0.1 s, and each has to load the rules."""

Job = tuple[Sequence[tuple[str, bytes]], Mapping[str, str]]
Seen = tuple[list[Evidence], list[Problem], list[str]]
"""Sightings, what could not be analysed, and defects of rules."""


def look(
    sources: Sequence[Source],
    targets: Mapping[str, str] | None = None,
    *,
    jobs: int = 0,
    keep: bool = False,
) -> StaticSightings:
    """What the rules see in each program among ``sources``, with every sighting once.

    ``jobs``: processes at most, 0 for as many as there are cores. ``keep``: use and keep the answers of programs.
    """
    units = programs(sources)
    contents = [[(s.name, _content(s)) for s in unit] for unit in units]
    aims = dict(targets or {})
    several = keep and len(units) > 1  # of one program the whole answer is kept
    shelf = cache.key([], {"tree": sorted(s.name for s in sources)}) if several else ""
    names = [cache.key(content, {"targets": aims}) if several else str(n) for n, content in enumerate(contents)]
    kept = _read(shelf) if several else {}
    todo = [n for n, name in enumerate(names) if name not in kept]
    fresh = dict(zip(todo, _seen([(contents[n], aims) for n in todo], jobs), strict=True))
    every = [fresh[n] if n in fresh else kept[name] for n, name in enumerate(names)]
    if several and todo:
        cache.write(shelf, dict(zip(names, every, strict=True)))
    programs_there = any(s.basename.endswith(PYTHON) for s in sources)
    return _joined(every, frozenset({"code"}) if programs_there else frozenset())


def _joined(every: Sequence[Seen], observed: frozenset[str]) -> StaticSightings:
    """All of them; what stands in several programs (pins, mostly) is told of once."""
    evidence: dict[tuple[object, ...], Evidence] = {}
    problems: dict[Problem, None] = {}
    broken: list[str] = []
    for found, left_out, defects in every:
        for item in found:
            where = item.where
            evidence.setdefault((item.sign, where.path, where.line, where.column, where.cell), item)
        problems |= dict.fromkeys(left_out)
        broken += defects
    return StaticSightings(list(evidence.values()), observed, list(problems), broken)


def _read(shelf: str) -> dict[str, Seen]:
    """The kept answers of the programs of one tree, by the hash of what they depend on."""
    value = cache.read(shelf)
    rows = value.items() if isinstance(value, dict) else ()
    return {name: (seen[0], seen[1], seen[2]) for name, seen in rows if isinstance(seen, list) and len(seen) == 3}


def _content(source: Source) -> bytes:
    try:
        with source.open() as stream:
            return stream.read(MAX_BYTES + 1)  # one more than is read: a larger file is told to be so
    except (OSError, EOFError, ValueError):
        return b""


def _seen(work: Sequence[Job], jobs: int) -> Iterator[Seen]:
    size = sum(len(data) for content, _ in work for _, data in content)
    count = min(jobs or _cores(), len(work), size // WORTH_A_PROCESS)
    # A process of an editor's server, or one with threads of its own, is not forked.
    if count < 2 or threading.active_count() > 1:
        waiting = 0
        for job in work:
            yield _look_at(job)
            waiting += sum(len(data) for _, data in job[0])
            if waiting > WORTH_A_PROCESS:
                gc.collect()
                waiting = 0
        return
    # Some 40 ms that one script need not wait for.
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    way = "fork" if sys.platform == "linux" else "spawn"
    pool = ProcessPoolExecutor(count, multiprocessing.get_context(way), initializer=_begin)
    try:
        futures: list[Future[Seen]] = [pool.submit(_look_at, job) for job in work]
        for job, future in zip(work, futures, strict=True):
            try:
                yield future.result()
            except BrokenProcessPool:  # killed for its memory, say
                yield _look_at(job)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _begin() -> None:
    """In a worker: an interrupt from the keyboard ends it without a word, and cycles are collected between programs."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.enable()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _look_at(job: Job) -> Seen:
    """One program. The collector of cycles rests meanwhile: it would walk the same trees again and again."""
    content, targets = job
    was_on = gc.isenabled()
    gc.disable()
    try:
        return _seen_in(content, targets)
    finally:
        if was_on:
            gc.enable()


def _seen_in(content: Sequence[tuple[str, bytes]], targets: Mapping[str, str]) -> Seen:
    """A function of its own, so that the trees are gone when it returns."""
    found = witness(build([from_bytes(name, data) for name, data in content]), targets=targets)
    return list(found.evidence), list(found.problems), list(found.broken)
