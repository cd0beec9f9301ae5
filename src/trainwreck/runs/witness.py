"""Read every source with the reader that knows it, assemble runs, and look at their curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from trainwreck.core.evidence import Evidence, Unreadable
from trainwreck.core.results import Chart
from trainwreck.core.run import Run
from trainwreck.core.source import Source
from trainwreck.runs import readers
from trainwreck.runs.assemble import assemble
from trainwreck.runs.chart import charts
from trainwreck.runs.signs import sightings

__all__ = ["Chart", "RunSightings", "charts", "witness"]


@dataclass
class RunSightings:
    """What the artefacts show.

    ``observed`` are the roles and artefacts that were there to be seen; ``structured`` names the sources that are
    metrics, configuration or data through and through, so that nobody looks for errors in them.
    """

    runs: Sequence[Run] = ()
    evidence: Sequence[Evidence] = ()
    observed: frozenset[str] = frozenset()
    unreadable: Sequence[Unreadable] = ()
    structured: frozenset[str] = field(default_factory=frozenset)


def witness(sources: Sequence[Source]) -> RunSightings:
    """Runs and signs from ``sources``. A source that a reader fails on becomes ``Unreadable``, never an exception."""
    parts: list[Run] = []
    unreadable: list[Unreadable] = []
    structured: set[str] = set()
    for source in sources:
        reader = readers.reader_for(source)
        if reader is None:
            if readers.is_data(source):
                structured.add(source.name)
            elif source.is_binary:
                reason = "binary content of an unknown kind; give a text log or a known metrics format"
                unreadable.append(Unreadable(source.name, reason))
            continue
        try:
            found = reader.read(source)
        except Exception as problem:  # untrusted input: one bad file must not stop the others
            text = f"could not be read as {reader.FORMAT} ({_short(problem)}); check that the file is whole"
            unreadable.append(Unreadable(source.name, text))
            continue
        parts += found
        mixed = any(readers.MIXED in run.notes for run in found)
        if reader.STRUCTURED and not mixed and (found or readers.is_data(source)):
            structured.add(source.name)
    runs = assemble(parts)
    settings = any(part.settings for part in parts)
    observed = {s.role for run in runs for s in run.series.values() if s.role and len(s)}
    observed |= {"metrics"} if observed else set()
    observed |= {"config"} if settings else set()
    return RunSightings(runs, sightings(runs), frozenset(observed), unreadable, frozenset(structured))


def _short(problem: Exception) -> str:
    text = str(problem).splitlines()[0][:120] if str(problem) else ""
    if type(problem) is ValueError and text:
        return text  # our readers say it in words
    return f"{type(problem).__name__}: {text}" if text else type(problem).__name__
