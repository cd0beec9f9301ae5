"""The static witness: sources become a program; rules and traces find places in it. Nothing read is ever run."""

from __future__ import annotations

from trainwreck.code.witness import StaticSightings, build, witness

__all__ = ["StaticSightings", "build", "witness"]
