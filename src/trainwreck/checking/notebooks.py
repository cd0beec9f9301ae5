"""Notebooks as texts that can be searched and changed: their Python cells, and the file again with other cells.

A notebook is changed in its own text, not written anew: Jupyter, Colab and editors lay JSON out and escape it each in
their own way, and whatever is not corrected has to stay byte for byte.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from trainwreck.code.notebook import language, source_of
from trainwreck.core.row import Row

_JSON = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")
_STORED_LINE = re.compile(r"(?:[^\\]|\\[^n])*?\\n|(?:[^\\]|\\.)+", re.DOTALL)
"""One line within a JSON string, as it is written there."""
_ESCAPED_BY_SOME = "<>&'="
"""What some writers (Colab) escape though JSON does not ask for it."""


def cells(raw: str) -> list[str]:
    """The texts of the code cells, in order; none where the file is no notebook of Python."""
    data = _loaded(raw)
    return [source_of(c) for c in _code(data)] if data is not None else []


def replaced(raw: str, new: Mapping[int, str]) -> str | None:
    """The file with these cells (counted from 1) written anew and every other byte kept, lines of the cells included.

    None where that is not possible: no notebook of Python, or a cell without a text.
    """
    if _loaded(raw) is None:
        return None
    spans = list(_spans(raw))
    text = raw
    for number in sorted(new, reverse=True):
        span = spans[number - 1] if 0 < number <= len(spans) else None
        if span is None:
            return None
        text = text[: span[0]] + _rewritten(raw, span, new[number]) + text[span[1] :]
    wanted = [new.get(number, cell) for number, cell in enumerate(cells(raw), 1)]
    return text if cells(text) == wanted else None


def _loaded(raw: str) -> Any:
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) and language(data) in ("python", "ipython", "") else None


def _code(data: Any) -> list[dict[str, Any]]:
    found = data.get("cells")
    if found is None and isinstance(data.get("worksheets"), list):
        found = [c for s in data["worksheets"] if isinstance(s, dict) for c in s.get("cells") or ()]
    listed = found if isinstance(found, list) else []
    return [c for c in listed if isinstance(c, dict) and c.get("cell_type") == "code"]


Span = tuple[int, int]
"""Where a JSON value stands in the text: its first character and the one after it."""


def _spans(raw: str) -> Iterator[Span | None]:
    """Where the text of each code cell stands, in order; None for a cell that has none."""
    top = _members(raw, _skip(raw, 0))
    if "cells" in top or "worksheets" not in top:
        holders = [top["cells"][0]] if "cells" in top else []
    else:
        sheets = [_members(raw, start) for start, _ in _elements(raw, top["worksheets"][0]) if raw[start] == "{"]
        holders = [sheet["cells"][0] for sheet in sheets if "cells" in sheet]
    for holder in holders:
        for start, _ in _elements(raw, holder):
            cell = _members(raw, start)
            if "cell_type" in cell and json.loads(raw[slice(*cell["cell_type"])]) == "code":
                yield cell.get("source", cell.get("input"))


def _members(raw: str, at: int) -> dict[str, Span]:
    """Where the values of the object that starts at ``at`` stand; of equal keys the last counts, as for ``json``."""
    found: dict[str, Span] = {}
    if raw[at] != "{":
        return found
    at = _skip(raw, at + 1)
    while raw[at] == '"':
        key, at = _JSON.raw_decode(raw, at)
        start = _skip(raw, _skip(raw, at) + 1)
        _, end = _JSON.raw_decode(raw, start)
        found[key] = (start, end)
        at = _after(raw, end)
    return found


def _elements(raw: str, at: int) -> Iterator[Span]:
    if raw[at] != "[":
        return
    at = _skip(raw, at + 1)
    while raw[at] != "]":
        _, end = _JSON.raw_decode(raw, at)
        yield at, end
        at = _after(raw, end)


def _after(raw: str, end: int) -> int:
    at = _skip(raw, end)
    return _skip(raw, at + 1) if raw[at] == "," else at


def _skip(raw: str, at: int) -> int:
    match = _SPACE.match(raw, at)
    return match.end() if match else at


class _Row(Row):
    """A line of a cell: its text, how it is written in the file, and what stands between it and the one before."""

    text: str
    written: str
    before: str | None = None


def _rewritten(raw: str, span: Span, text: str) -> str:
    """The value at ``span`` with ``text`` in it; lines that stay are written as they were."""
    start, end = span
    if raw[start] != "[":
        stored = _STORED_LINE.findall(raw[start + 1 : end - 1])
        old = [_Row(json.loads(f'"{piece}"'), piece) for piece in stored]
        new = [_Row(row, _quoted(row, raw)[1:-1]) for row in re.findall(r"[^\n]*\n|[^\n]+", text)]
        return '"' + "".join(row.written for row in _merged(old, new)) + '"'
    places = list(_elements(raw, start))
    if not places:
        return json.dumps(text.splitlines(keepends=True), ensure_ascii=raw.isascii())
    lead, tail = raw[start + 1 : places[0][0]], raw[places[-1][1] : end - 1]
    comma = raw[places[0][1] : places[1][0]] if len(places) > 1 else "," + (lead or " ")
    between = [None, *(raw[a[1] : b[0]] for a, b in pairwise(places))]
    old = [_Row(str(json.loads(raw[a:b])), raw[a:b], gap) for (a, b), gap in zip(places, between, strict=True)]
    new = [_Row(row, _quoted(row, raw)) for row in text.splitlines(keepends=True)]
    rows = _merged(old, new)
    if not rows:
        return "[]"
    return f"[{lead}{rows[0].written}{''.join((row.before or comma) + row.written for row in rows[1:])}{tail}]"


def _merged(old: Sequence[_Row], new: Sequence[_Row]) -> list[_Row]:
    """The new lines, those that were there before as they were written."""
    from difflib import SequenceMatcher  # only where a notebook is corrected

    same = SequenceMatcher(None, [row.text for row in old], [row.text for row in new], autojunk=False)
    rows: list[_Row] = []
    for kind, a, b, c, d in same.get_opcodes():
        rows += old[a:b] if kind == "equal" else new[c:d]
    return rows


def _quoted(text: str, raw: str) -> str:
    """``text`` as a JSON string, escaped as the rest of the file is."""
    written = json.dumps(text, ensure_ascii=raw.isascii())
    for character in _ESCAPED_BY_SOME:
        code = f"\\u{ord(character):04x}"
        if code in raw:
            written = written.replace(character, code)
    return written
