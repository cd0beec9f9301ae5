"""Lines as compilers and editors count them, of files and of the cells of notebooks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from trainwreck.checking import notebooks

_ROW = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def rows(text: str) -> list[str]:
    """The lines with their ends. A form feed ends no line, as it does for ``str.splitlines``."""
    return _ROW.findall(text)


def lines(texts: Mapping[str, str], path: str, cell: int | None = None) -> Sequence[str]:
    """The lines, without their ends, of a file or of a cell of a notebook; none where there is no such text."""
    text = texts.get(path)
    return () if text is None else _lines(text, cell)


@lru_cache(maxsize=256)
def _lines(text: str, cell: int | None) -> Sequence[str]:
    if cell is not None:
        every = notebooks.cells(text)
        text = every[cell - 1] if 0 < cell <= len(every) else ""
    return tuple(row.rstrip("\r\n") for row in rows(text))


def line(texts: Mapping[str, str], path: str, number: int, cell: int | None = None) -> str:
    """One line, empty where there is none."""
    found = lines(texts, path, cell)
    return found[number - 1] if 0 < number <= len(found) else ""
