"""What the flight recorder saw in the process itself: wiring faults, told as events with module and step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trainwreck.core.evidence import Evidence
from trainwreck.runs.signs._curve import View

FAMILY = "live"
PREFIX = "live-"
"""Kinds of events that are signs already (record/inside/recorder.py names them)."""


KEPT = ("number", "names", "frames", "attribute")
"""Facts of an event by which its place in the program is found (joining)."""


def _facts(value: object) -> dict[str, Any] | None:
    kept = {k: v for k, v in value.items() if k in KEPT} if isinstance(value, dict) else {}
    return kept or None


def find(view: View) -> Iterator[Evidence]:
    """One sighting for each kind of wiring event."""
    told: set[str] = set()
    for event in view.run.events:
        if event.kind.startswith(PREFIX) and event.kind not in told:
            told.add(event.kind)
            yield Evidence(event.kind, "direct", event.text, event.where, _facts(event.value))
