"""Where a non-finite value was born, as the replay of the failing step found it: one sign for each kind of birth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from trainwreck.core.evidence import Evidence
from trainwreck.core.run import Event
from trainwreck.runs.signs._curve import View

FAMILY = "origin"
KINDS = frozenset(
    [
        *("log", "division", "domain", "slope", "exp", "half-overflow", "mask-overflow", "overflow", "deviation"),
        *("all-ignored", "empty-mean", "ctc", "linalg", "masked-softmax", "infinity-met", "constant", "uninitialised"),
        *("sqrt-gradient", "where-gradient", "custom-backward", "gradient", "op", "data", "weights", "buffer", "state"),
        *("optimizer", "communication"),
    ]
)
"""Kinds that record/inside/births.py and describe.py name; each is the sign ``origin-<kind>``."""
REASONS = frozenset(["rate", "half-eps", "eps", "state", "update"])
"""What record/inside/optimizers.py saw behind weights that a step damaged."""
KEPT = ("op", "call", "module", "phase", "became_nan", "put", "source", "inputs", "data", "sources", "parameters")


def find(view: View) -> Iterator[Evidence]:
    """One sighting for each kind; the first alarm is the nearest to the birth."""
    told: set[str] = set()
    events = [e for e in view.run.events if e.kind == "origin" and isinstance(e.value, dict)]
    for event in sorted(events, key=lambda e: e.where.step or 0.0):
        sign = _sign(event.value)
        if sign is None or sign in told or (told and sign in LATER):
            continue
        told.add(sign)
        yield Evidence(sign, "direct", event.text, _where(event), _brief(event.value))


LATER = ("origin-weights", "origin-buffer", "origin-state", "origin-communication")
"""What every step shows after the first one that went wrong: told only if nothing came before."""


def _sign(told: dict[str, Any]) -> str | None:
    kind = told.get("kind")
    if kind not in KINDS:
        return None
    why = told.get("why")
    return f"origin-optimizer-{why}" if kind == "optimizer" and why in REASONS else f"origin-{kind}"


def _where(event: Event) -> Any:
    """The place of birth; data that a function of the program damages itself is placed there."""
    told = event.value
    sources = told.get("sources")
    if told.get("kind") == "data" and isinstance(sources, list) and sources and isinstance(sources[0], dict):
        first = sources[0]
        line = first.get("written", first.get("line"))
        if isinstance(first.get("path"), str) and isinstance(line, int):
            return replace(event.where, kind="code", path=first["path"], line=line, module=event.where.module)
    source = told.get("source")
    if event.where.module is None and isinstance(source, dict) and isinstance(source.get("module"), str):
        return replace(event.where, module=source["module"])
    return event.where


def _brief(told: dict[str, Any]) -> dict[str, Any]:
    """What a reader of the answer needs of an origin."""
    brief: dict[str, Any] = {}
    for key in KEPT:
        value = told.get(key)
        if isinstance(value, dict):
            value = {k: v for k, v in value.items() if k in ("op", "call", "module", "path", "line")}
        elif isinstance(value, list):
            value = value[:4]
        if value not in (None, [], {}):
            brief[key] = value
    return brief
