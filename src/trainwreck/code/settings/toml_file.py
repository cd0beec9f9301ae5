"""TOML as a located tree: values by ``tomllib``, places by the lines on which keys and headers stand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainwreck.code.pattern import pattern
from trainwreck.code.settings.tree import MAX_DEPTH, UNKNOWN, Key, Node

_HEADER = pattern(r"^\s*\[(\[)?\s*([^\]]+?)\s*\]")
_KEY = pattern(r"""^(\s*)((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=\s*""")
_PART = pattern(r"""[\w-]+|"[^"]*"|'[^']*'""")

_At = tuple[int, int, int, str]


def read_toml(text: str) -> Node | None:
    """The document that ``text`` holds, None where it is no TOML. Never raises."""
    import tomllib

    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError):
        return None
    return _node(data, (), _places(text), (1, 1, 1, ""), 0)


def _places(text: str) -> dict[tuple[str, ...], _At]:
    """(line, column of the key, column of the value, value as written) of each key path."""
    found: dict[tuple[str, ...], _At] = {}
    above: tuple[str, ...] = ()
    counts: dict[tuple[str, ...], int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if header := _HEADER.match(line):
            above = tuple(part.strip("\"'") for part in _PART.findall(header[2]))
            if header[1]:
                counts[above] = counts.get(above, -1) + 1
                above = (*above, str(counts[above]))
            found.setdefault(above, (number, header.start(2) + 1, header.start(2) + 1, ""))
        elif key := _KEY.match(line):
            parts = tuple(part.strip("\"'") for part in _PART.findall(key[2]))
            written = line[key.end() :].split(" #", 1)[0].strip()
            found.setdefault((*above, *parts), (number, key.start(2) + 1, key.end() + 1, written))
    return found


def _node(value: Any, keys: tuple[str, ...], places: Mapping[tuple[str, ...], _At], near: _At, depth: int) -> Node:
    near = places.get(keys, near)
    line, _, column, text = near
    if depth > MAX_DEPTH:
        return Node("scalar", line, column, column + 1, UNKNOWN)
    if isinstance(value, dict):
        pairs = []
        for name, item in value.items():
            node = _node(item, (*keys, name), places, near, depth + 1)
            at = places.get((*keys, name), near)
            pairs.append((Key(name, at[0], at[1]), node))
        return Node("mapping", line, column, column + 1, pairs=tuple(pairs))
    if isinstance(value, list):
        items = tuple(_node(item, (*keys, str(n)), places, near, depth + 1) for n, item in enumerate(value))
        return Node("sequence", line, column, column + 1, items=items)
    known = isinstance(value, bool | int | float | str)
    shown = text.strip("\"'") if text and not text.startswith(("{", "[")) else str(value)
    quoted = text.startswith(("'", '"'))
    return Node("scalar", line, column, column + len(text or shown), value if known else UNKNOWN, shown, quoted)
