"""The error witness: tracebacks and messages become frames and signs; where it surfaced."""

from __future__ import annotations

from trainwreck.failures.witness import ErrorSightings, excerpts, witness

__all__ = ["ErrorSightings", "excerpts", "witness"]
