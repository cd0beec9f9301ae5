"""Build the program from the sources, run the rules over it, trace failures back to where they were made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainwreck.core.evidence import Evidence
from trainwreck.core.failure import Failure
from trainwreck.core.program import Program
from trainwreck.core.source import Source


@dataclass
class StaticSightings:
    """What the code shows."""

    evidence: Sequence[Evidence] = ()
    observed: frozenset[str] = frozenset()


def build(sources: Sequence[Source]) -> Program:
    """The program that the Python sources (and notebooks) among ``sources`` make up."""
    return Program({})


def witness(program: Program, failures: Sequence[Failure] = ()) -> StaticSightings:
    """Sightings of the rules, and for each failure the place where the failing value was made."""
    return StaticSightings(observed=frozenset({"code"} if program.modules else ()))
