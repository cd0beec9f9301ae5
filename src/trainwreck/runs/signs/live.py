"""What the flight recorder saw in the process itself: wiring faults, told as events with module and step."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.core.evidence import Evidence
from trainwreck.runs.signs._curve import View

FAMILY = "live"
PREFIX = "live-"
"""Kinds of events that are signs already (record/inside/recorder.py names them)."""


def find(view: View) -> Iterator[Evidence]:
    """One sighting for each kind of wiring event."""
    told: set[str] = set()
    for event in view.run.events:
        if event.kind.startswith(PREFIX) and event.kind not in told:
            told.add(event.kind)
            yield Evidence(event.kind, "direct", event.text, event.where)
