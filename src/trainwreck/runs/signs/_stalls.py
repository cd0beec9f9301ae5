"""Trainings that stood still and did not go on: who waits for what, and which rank is elsewhere.

Read from the events ``stall`` and ``stall-over`` of recordings (record/inside/stalls.py). A stall that was over is a
pause, and so is one of a run that came to its end; an evaluation is one of those.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import median
from typing import Any

from trainwreck.core.evidence import Evidence, Where
from trainwreck.core.run import Event, Run
from trainwreck.runs.places import directory
from trainwreck.runs.readers.recording import FORMAT

ELSEWHERE = {
    "busy": "is computing",
    "sleep": "sleeps",
    "idle": "stands still",
    "loader": "waits for a batch",
    "lock": "waits for a lock, a queue or a thread",
    "saving": "is saving",
    "children": "waits for other processes of its own",
    "network": "waits for the network",
    "compiling": "is compiling",
}
SLOWER, SHARE, LEAST, STEPS, MOST = 1.5, 0.2, 0.01, 20, 0.8
"""A rank is slower than the others if its own work (all but the backward, in which it waits for the others) takes 1.5
times theirs and a fifth of the step more, and 10 ms (a progress bar takes less), in four of five of at least twenty
steps (judgements: scheduling noise of busy machines changes sides from step to step)."""


@dataclass(frozen=True)
class _Standing:
    """Where one rank stands at the end: ``facts`` of its last stall, None where it has none that stayed."""

    rank: int
    run: Run
    event: Event | None
    steps: float

    @property
    def facts(self) -> Mapping[str, Any]:
        return self.event.value if self.event is not None and isinstance(self.event.value, dict) else {}

    @property
    def state(self) -> str:
        return str(self.facts.get("state", ""))

    def place(self) -> str:
        """``train.py:12, loss.backward()``."""
        if self.event is None:
            return ""
        call = self.facts.get("call")
        return f"{self.event.where.path}:{self.event.where.line}" + (f", {call}" if isinstance(call, str) else "")

    def where(self) -> Where:
        """The user's line at which it stands."""
        event = self.event
        if event is None:
            return Where("tensor", path=self.run.path, step=self.steps, rank=self.rank)
        return replace(event.where, kind="code", rank=self.rank)


def across(runs: Sequence[Run]) -> Iterator[Evidence]:
    """Signs of recordings, those of ranks that were written side by side together."""
    mine = [r for r in runs if r.format == FORMAT and len(r.ranks) == 1]
    for _, group in groupby(sorted(mine, key=_group_of), key=_group_of):
        ranks = sorted(group, key=lambda r: r.ranks[0])
        attempt = ranks[0].attempt
        for item in _found(ranks):
            yield replace(item, attempt=attempt)


def _group_of(run: Run) -> tuple[str, int]:
    return directory(run.path), run.attempt


def _found(ranks: list[Run]) -> Iterator[Evidence]:
    yield from _slower(ranks)
    if all(_sound(run) for run in ranks):
        return
    standing = [_standing(run) for run in ranks]
    for one in standing:
        yield from _alone(one)
    world = max((int(w) for s in standing if isinstance(w := s.facts.get("world"), int)), default=1)
    if world > 1:
        yield from _together(standing, world)


def _sound(run: Run) -> bool:
    """The process came to its end by itself, with nothing wrong that is known."""
    ended = next((e for e in reversed(run.events) if e.kind == "ended"), None)
    failed = ended is not None and isinstance(ended.value, dict) and bool(ended.value.get("failed"))
    return run.outcome == "completed" and not failed


def _standing(run: Run) -> _Standing:
    last = next((e for e in reversed(run.events) if e.kind in ("stall", "stall-over")), None)
    steps = max((s.steps[-1] for n, s in run.series.items() if n in ("loss", "seconds") and len(s)), default=0.0)
    return _Standing(run.ranks[0], run, last if last is not None and last.kind == "stall" else None, steps)


def _alone(one: _Standing) -> Iterator[Evidence]:
    """What a process waits for by itself."""
    if one.state == "loader":
        children = [c for c in one.facts.get("workers") or () if isinstance(c, dict)]
        stuck = next((f for c in children if (f := _users(c.get("frames"))) is not None), None)
        text = f"no batch for {_waited(one)}: the training waits for the loader's workers at {one.place()}"
        where = one.where()
        if stuck is not None:
            text += f"; a worker stands at {stuck['path']}:{stuck['line']}, {stuck.get('call') or stuck['function']}"
            where = replace(where, path=str(stuck["path"]), line=int(stuck["line"]))
        elif children and all(c.get("state") in ("Z", None) for c in children):
            text += "; its workers are dead"
        yield Evidence("live-loader-stands-still", "direct", text, where)
    elif one.state == "lock":
        text = f"nothing has moved for {_waited(one)}: the training waits at {one.place()}"
        holder = _holder(one.facts.get("threads"))
        yield Evidence("live-waits-for-lock", "direct", text + holder, one.where())


def _holder(threads: object) -> str:
    """Where the other threads that run the user's code stand."""
    others = threads[1:] if isinstance(threads, list) else []
    found = [(t.get("name"), f) for t in others if isinstance(t, dict) and (f := _users(t.get("frames"))) is not None]
    words = [f"{name} is at {f['path']}:{f['line']}, {f.get('call') or f['function']}" for name, f in found[:3]]
    return "".join(f"; {w}" for w in words)


def _users(frames: object) -> Mapping[str, Any] | None:
    """The innermost frame of the user's own code."""
    for frame in frames if isinstance(frames, list) else ():
        if isinstance(frame, dict) and frame.get("users") and isinstance(frame.get("line"), int) and "path" in frame:
            return {"function": "?", **frame}
    return None


def _waited(one: _Standing) -> str:
    waited = one.facts.get("waited")
    return f"{waited:.0f} s" if isinstance(waited, (int, float)) else "long"


def _together(standing: list[_Standing], world: int) -> Iterator[Evidence]:
    """Ranks that wait for one another, against those that are elsewhere."""
    waiting = [s for s in standing if s.state == "collective"]
    if not waiting:
        return
    first = waiting[0]
    words = f"rank {first.rank} waits at {first.place()}"
    places = {(s.event.where.path, s.event.where.line) for s in waiting if s.event is not None}
    if len(waiting) == world:
        if len(places) > 1:
            other = next(s for s in waiting if s.place() != first.place())
            text = f"{words}, rank {other.rank} at {other.place()}: each waits in a collective that the other is not in"
            yield Evidence("live-collectives-differ", "direct", text, _branch(first, other).where())
        return
    for other in standing:
        if other in waiting:
            continue
        if other.event is not None:
            doing = ELSEWHERE.get(other.state, "is")
            text = f"{words} for rank {other.rank}, which {doing} at {other.place()}"
            yield Evidence("live-rank-elsewhere", "direct", text, other.where())
        elif any(e.kind in ("ended", "exit") for e in other.run.events):
            text = f"{words}; rank {other.rank} has ended after {other.steps:g} steps"
            yield Evidence("live-rank-has-left", "direct", text, first.where())
        return


def _branch(one: _Standing, other: _Standing) -> _Standing:
    """Of two that differ the one outside of a backward: a backward's collectives are every rank's."""
    return other if "backward" in one.place() and "backward" not in other.place() else one


def _slower(ranks: list[Run]) -> Iterator[Evidence]:
    """One rank's own work takes longer at nearly every step, and the others wait for it in their backward."""
    if len(ranks) < 2 or not all(any(e.kind == "rank" for e in r.events) for r in ranks):
        return
    own = [_own(run) for run in ranks]
    steps = sorted(set.intersection(*(set(o) for o in own)))[5:]
    if len(steps) < STEPS:
        return
    for index, run in enumerate(ranks):
        others = [o for i, o in enumerate(own) if i != index]
        slow = [
            step
            for step in steps
            if own[index][step][0] > SLOWER * (rest := max(o[step][0] for o in others))
            and own[index][step][0] - rest > max(LEAST, SHARE * own[index][step][1])
        ]
        if len(slow) >= MOST * len(steps):
            here = median(own[index][s][0] for s in steps)
            there = median(max(o[s][0] for o in others) for s in steps)
            text = (
                f"rank {run.ranks[0]} takes {here:.3g} s of its own work a step, the others at most {there:.3g} s; they"
                f" wait for it in their backward ({len(slow)} of {len(steps)} steps)"
            )
            where = Where("metric", path=run.path, step=slow[0], metric="seconds", rank=run.ranks[0])
            yield Evidence("live-rank-slower", "direct", text, where, here / there if there else None)
            return


def _own(run: Run) -> dict[float, tuple[float, float]]:
    """By step: seconds outside of the backward, and all of them."""
    whole, backward = run.series.get("seconds"), run.series.get("backward_seconds")
    if whole is None or backward is None:
        return {}
    inside = dict(zip(backward.steps, backward.values, strict=True))
    pairs = zip(whole.steps, whole.values, strict=True)
    return {step: (max(0.0, value - inside[step]), value) for step, value in pairs if step in inside}
