"""One module per format. The first reader, in order of ``ORDER``, that recognises a source's content reads it.

A reader module defines ``FORMAT`` (its id), ``ORDER`` (small numbers are asked first: the more specific, the
smaller), ``STRUCTURED`` (True if the file holds metrics or settings only), ``sniff(source) -> bool`` (looks at
``source.head`` and ``source.basename``; must be cheap and never raise) and ``read(source) -> list[Run]`` (streams;
one Run per attempt). A reader of settings gives runs without series. ``silent(source) -> bool``, where a reader has it,
says of what it did not recognise that it is data all the same, in which nobody should look for error messages.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import Protocol

from trainwreck.core.run import Run
from trainwreck.core.source import Source

MIXED = "other text stands among the rows"
"""Note of a run whose file is not data through and through: errors may be reported in it."""


class Reader(Protocol):
    FORMAT: str
    ORDER: int
    STRUCTURED: bool

    def sniff(self, source: Source) -> bool: ...

    def read(self, source: Source) -> list[Run]: ...


@cache
def all_readers() -> tuple[Reader, ...]:
    """Every reader in this folder, the most specific first."""
    names = sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))
    found: list[Reader] = [importlib.import_module(f"{__name__}.{name}") for name in names]
    return tuple(sorted(found, key=lambda reader: (reader.ORDER, reader.FORMAT)))


def reader_for(source: Source) -> Reader | None:
    """The reader that recognises ``source``, None if none does."""
    return next((reader for reader in all_readers() if reader.sniff(source)), None)


def is_data(source: Source) -> bool:
    """True for tables and documents of data that are no log: their text is nobody's error message."""
    return any(reader.silent(source) for reader in all_readers() if hasattr(reader, "silent"))
