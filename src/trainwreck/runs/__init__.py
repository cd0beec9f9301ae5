"""The artefact witness: logs, metrics files and trackers become runs; signs are read off their curves."""

from __future__ import annotations

from trainwreck.runs.by_module import modules
from trainwreck.runs.witness import RunSightings, charts, witness

__all__ = ["RunSightings", "charts", "modules", "witness"]
