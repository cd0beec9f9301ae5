"""Small tools of the tests of the artefact witness."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from trainwreck.collect import collect
from trainwreck.core.run import Run
from trainwreck.core.source import from_bytes
from trainwreck.runs import readers
from trainwreck.runs.witness import RunSightings, witness


def read(name: str, text: str | bytes) -> list[Run]:
    """What the reader that recognises ``text`` under this name makes of it; nothing if none does."""
    source = from_bytes(name, text.encode() if isinstance(text, str) else text)
    reader = readers.reader_for(source)
    return reader.read(source) if reader is not None else []


def one(name: str, text: str | bytes) -> Run:
    runs = read(name, text)
    assert len(runs) == 1, [run.path for run in runs]
    return runs[0]


def of_directory(top: Path, files: Mapping[str, str | bytes]) -> RunSightings:
    """The witness over a directory with these files."""
    for name, content in files.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    found = collect([top])
    assert not found.unreadable, found.unreadable
    return witness(found.sources)


def kinds(run: Run) -> set[str]:
    return {event.kind for event in run.events}


def table(header: str, rows: list[str]) -> str:
    return "\n".join([header, *rows]) + "\n"
