"""Events of a traced step (results that are not finite), and the way back from one of them to where it was born."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

FRESH = ("empty", "new_empty", "empty_like", "empty_strided", "new_empty_strided", "resize_")


@dataclass(slots=True)
class Frame:
    """A line of Python that led to an op."""

    path: str
    line: int
    function: str

    def json(self) -> dict[str, Any]:
        return {"path": self.path, "line": self.line, "function": self.function}


@dataclass(slots=True)
class Event:
    """An op whose result is not finite, with the ranges of what went in. ``call`` is the function the user called."""

    number: int
    op: str
    call: str | None
    phase: str
    nan: bool
    inf: bool
    module: str | None
    frames: list[Frame]
    inputs: list[dict[str, Any]]
    output: dict[str, Any]
    on_purpose: bool
    node: str | None = None
    nested: list[str] = field(default_factory=list)
    parents: list[Event] = field(default_factory=list)
    outside: list[Any] = field(default_factory=list)
    """Non-finite inputs that no op of the trace made: data, parameters, buffers."""


@dataclass(slots=True)
class Origin:
    """Where a non-finite value comes from: the event to name, where an infinity turned into NaN, the infinity that the
    program put in itself, what came from outside, and the op that met it first."""

    birth: Event | None = None
    became_nan: Event | None = None
    put: Event | None = None
    outside: list[Any] = field(default_factory=list)
    first: Event | None = None


def trace_back(last: list[Event]) -> Origin:
    """Follow parents to the births. NaN comes from parents with NaN, if there are any; else it arose here."""
    births: list[Event] = []
    turned: list[Event] = []
    met: list[Event] = []
    outside: list[Any] = []
    seen: set[int] = set()
    todo = list(last)
    while todo:
        event = todo.pop()
        if event.number in seen:
            continue
        seen.add(event.number)
        with_nan = [p for p in event.parents if p.nan]
        outer_nan = [t for t in event.outside if bool(torch.isnan(t).any())]
        if event.nan and (with_nan or outer_nan):
            todo += with_nan
            outside += outer_nan
            if outer_nan:
                met.append(event)
            continue
        if event.nan and (event.parents or event.outside):
            turned.append(event)
        if not event.parents and not event.outside:
            births.append(event)
        todo += event.parents
        outside += event.outside
        if event.outside:
            met.append(event)
    real = [b for b in births if not b.on_purpose]
    nan = min(turned, key=lambda e: e.number, default=None)
    first = min(met, key=lambda e: e.number, default=None)
    if nan is not None and outside and not real and all(_masks(t) for t in outside):
        return Origin(nan, None, min(births, key=lambda e: e.number, default=None), outside, first)
    if outside and first is not None and all(first.number < e.number for e in real):
        return Origin(None, nan, None, outside, first)
    if real:
        birth = min(real, key=lambda e: e.number)
        return Origin(birth, nan if nan is not birth else None, None, outside, first)
    if births:
        put = min(births, key=lambda e: e.number)
        return Origin(nan or put, None, put if nan is not None else None, outside, first)
    return Origin(None, nan, None, outside, first)


def _masks(tensor: Any) -> bool:
    """Whether the only non-finite values are -inf beside finite ones: a mask that was made on purpose."""
    bad = ~torch.isfinite(tensor.detach())
    return bool((tensor.detach()[bad] == -float("inf")).all()) and (not tensor.dim() or not bool(bad.all()))
