"""Look for errors in every text, match them with the known signatures, name their parts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainwreck.core.evidence import Evidence
from trainwreck.core.failure import Failure
from trainwreck.core.program import Program
from trainwreck.core.results import Cause, Excerpt
from trainwreck.core.source import Source


@dataclass
class ErrorSightings:
    """What was reported: the failures with their frames, and the signs that their messages and surroundings give."""

    failures: Sequence[Failure] = ()
    evidence: Sequence[Evidence] = ()
    observed: frozenset[str] = frozenset()


def witness(
    sources: Sequence[Source],
    signatures: Sequence[Mapping[str, Any]],
    *,
    reports: Sequence[str] = (),
    skip: Collection[str] = (),
) -> ErrorSightings:
    """Failures and signs from the texts among ``sources`` (not those in ``skip``, no Python sources).

    ``reports`` are symptoms in somebody's words; standard input is read as a log and as such a report.
    """
    return ErrorSightings()


def excerpts(sources: Sequence[Source], program: Program, causes: Sequence[Cause]) -> list[Excerpt]:
    """A few lines around the places that the first causes rest on."""
    return []
