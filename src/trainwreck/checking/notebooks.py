"""Notebooks as texts that can be searched and changed: their Python cells, and the file again with other cells."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from trainwreck.code.notebook import language, source_of


def cells(raw: str) -> list[str]:
    """The texts of the code cells, in order; none where the file is no notebook of Python."""
    data = _loaded(raw)
    return [source_of(c) for c in _code(data)] if data is not None else []


def replaced(raw: str, new: Mapping[int, str]) -> str | None:
    """The file with these cells (counted from 1) written anew and every other byte kept.

    None where that is not possible: the file is not laid out as a JSON writer would lay it out.
    """
    data = _loaded(raw)
    if data is None:
        return None
    for indent in (1, 2, 4, 3, None):
        for ascii_only in (False, True):
            for end in ("\n", ""):
                if _dumped(data, indent, ascii_only) + end == raw:
                    for number, cell in enumerate(_code(data), 1):
                        if number in new:
                            text = new[number]
                            stored = cell.get("source", cell.get("input"))
                            key = "source" if "source" in cell else "input"
                            cell[key] = text.splitlines(keepends=True) if isinstance(stored, list) else text
                    return _dumped(data, indent, ascii_only) + end
    return None


def _dumped(data: Any, indent: int | None, ascii_only: bool) -> str:
    return json.dumps(data, indent=indent, ensure_ascii=ascii_only)


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
