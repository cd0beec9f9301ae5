"""Put runs together: files of one run, attempts, ranks, seams of a resume."""

from __future__ import annotations

from collections.abc import Sequence

from trainwreck.core.run import Run


def assemble(parts: Sequence[Run]) -> list[Run]:
    """Runs from the parts that the readers found."""
    return list(parts)
