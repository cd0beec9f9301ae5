"""Notebooks as one Python text: code cells joined, magics and shell lines out of the way."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from trainwreck.code.pattern import pattern
from trainwreck.core.program import Problem

PYTHON_CELLS = ("%%time", "%%timeit", "%%capture", "%%prun")
"""Cell magics whose cell is Python."""
_MAGIC = pattern(r"^\s*(?:[%!]|\?)|^\s*\w+\?{1,2}\s*$")
_CAPTURED = pattern(r"^(\s*[\w, ]+=\s*)[%!](?![=])")


def joined(name: str, text: str) -> tuple[str, Sequence[int]] | Problem:
    """The code cells joined and the first line of each (none where another language is spoken), or what is wrong."""
    try:
        data: Any = json.loads(text)
    except json.JSONDecodeError as problem:
        return Problem(name, f"no valid notebook: {problem.msg}", problem.lineno, problem.colno, syntax=True)
    except (ValueError, RecursionError):
        return Problem(name, "no valid notebook: its JSON is nested too deeply or damaged", 1, 1, syntax=True)
    found = data.get("cells") if isinstance(data, dict) else None
    if found is None and isinstance(data, dict) and isinstance(data.get("worksheets"), list):
        # Format 3, before 2015: cells lie in worksheets and call their text "input".
        found = [c for s in data["worksheets"] if isinstance(s, dict) for c in s.get("cells") or ()]
    if not isinstance(found, list):
        return Problem(name, "no valid notebook: it has no list of cells", 1, 1, syntax=True)
    if language(data) not in ("python", "ipython", ""):
        return "", ()
    lines: list[str] = []
    starts: list[int] = []
    for cell in found:
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        starts.append(len(lines) + 1)
        lines += _python(source_of(cell))
    return "\n".join(lines), starts


def language(data: Any) -> str:
    """The language that a notebook says it is written in, lower case; empty where it says nothing."""
    about = data.get("metadata") if isinstance(data, dict) else None
    for key, part in (("language_info", "name"), ("kernelspec", "language")):
        entry = about.get(key) if isinstance(about, dict) else None
        if isinstance(entry, dict) and isinstance(entry.get(part), str):
            return str(entry[part]).lower()
    return ""


def source_of(cell: dict[str, Any]) -> str:
    """The text of a cell, whichever way it is stored."""
    content = cell.get("source", cell.get("input", ""))
    return "".join(map(str, content)) if isinstance(content, list) else str(content)


def as_python(content: str) -> str:
    """The text of a cell with its magics out of the way, line by line."""
    return "\n".join(_python(content))


def _python(content: str) -> list[str]:
    body = content.split("\n")
    first = next((i for i, row in enumerate(body) if row.strip()), 0)
    if body[first].lstrip().startswith("%%"):
        python = body[first].split()[0] in PYTHON_CELLS
        return [f"# {row}" if i <= first or not python else _plain(row) for i, row in enumerate(body)]
    rows: list[str] = []
    continued = False
    for row in body:
        magic = bool(_MAGIC.match(row)) or continued
        rows.append(f"# {row}" if continued else _plain(row))
        continued = magic and row.rstrip().endswith("\\")
    return rows


def _plain(row: str) -> str:
    """A shell or magic line as ``pass``, so that the block around it stays valid; ``x = !ls`` as an unknown value."""
    if _MAGIC.match(row):
        indent = row[: len(row) - len(row.lstrip())]
        return f"{indent}pass  # {row.strip()}"
    return _CAPTURED.sub(r"\1...  # ", row)
