"""Halve the resolution of older blocks: of four rows the extremes of the loss stay, and what is not finite."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator
from typing import Any

BLOCK_ROWS = 512
"""Rows of a block that thinning makes: large enough that headers cost nothing, small enough to fit any memory."""
LEADING = ("loss", "grad_norm")
"""Columns whose extremes decide which rows stay, the first that the block has."""


def halved(blocks: Iterable[tuple[int, dict[str, Any], list[array[float]]]], until: int) -> Iterator[bytes]:
    """The blocks as bytes: those before byte ``until`` at half resolution and joined, the rest as they are."""
    from .store import block

    waiting: dict[str, tuple[list[str], list[array[float]], int]] = {}

    def joined(table: str) -> bytes:
        names, columns, stride = waiting.pop(table)
        return block(table, names, columns, stride)

    for position, facts, columns in blocks:
        table, names = str(facts["table"]), list(facts["columns"])
        if position >= until:
            for name in list(waiting):
                yield joined(name)
            yield block(table, names, columns, int(facts["stride"]))
            continue
        keep = kept_rows(names, columns)
        thin = [array("d", [column[i] for i in keep]) for column in columns]
        stride = 2 * int(facts["stride"])
        held = waiting.get(table)
        if held is not None and (held[0] != names or len(held[1][0]) + len(keep) > BLOCK_ROWS or held[2] != stride):
            yield joined(table)
            held = None
        if held is None:
            waiting[table] = (names, thin, stride)
        else:
            for old, new in zip(held[1], thin, strict=True):
                old.extend(new)
    for name in list(waiting):
        yield joined(name)


def kept_rows(names: list[str], columns: list[array[float]]) -> list[int]:
    """Indices of the rows that stay, in order: about half of them."""
    rows = len(columns[0]) if columns else 0
    leading = next((columns[names.index(name)] for name in LEADING if name in names), None)
    if leading is None:
        return list(range(0, rows, 2))
    kept: list[int] = []
    for start in range(0, rows, 4):
        members = range(start, min(start + 4, rows))
        sound = [i for i in members if math.isfinite(leading[i])]
        chosen = {min(sound, key=leading.__getitem__), max(sound, key=leading.__getitem__)} if sound else set()
        broken = [i for i in members if not math.isfinite(leading[i])]
        if broken and (len(broken) < len(members) or start == 0):
            chosen.add(broken[0])
        kept += sorted(chosen or {start})
    return kept
