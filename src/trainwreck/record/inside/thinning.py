"""Older blocks at a coarser resolution: of four rows the extremes of the loss stay, and what is not finite."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator
from typing import Any

BLOCK_ROWS = 512
"""Rows of a block that thinning makes: large enough that headers cost nothing, small enough to fit any memory."""
LEADING = ("loss", "grad_norm")
"""Columns whose extremes decide which rows stay, the first that the block has."""


def coarser(sizes: list[tuple[int, int, int]], until: int, room: int) -> int:
    """The stride (a power of two) at which the blocks that begin before byte ``until`` take at most ``room`` bytes.

    ``sizes``: (position, bytes, stride) of every block.
    """
    old = [(size, stride) for position, size, stride in sizes if position < until]
    goal = 2
    while sum(size * min(stride / goal, 1.0) for size, stride in old) > room and goal < 1 << 40:
        goal *= 2
    return goal


def thinned(
    blocks: Iterable[tuple[int, dict[str, Any], list[array[float]]]], until: int, stride: int
) -> Iterator[bytes]:
    """The blocks as bytes: those before byte ``until`` at ``stride`` at least, and joined; the rest as they are."""
    from .store import block

    waiting: dict[str, tuple[list[str], list[array[float]], int]] = {}

    def joined(table: str) -> bytes:
        names, columns, coarse = waiting.pop(table)
        return block(table, names, columns, coarse)

    for position, facts, columns in blocks:
        table, names, mine = str(facts["table"]), list(facts["columns"]), int(facts["stride"])
        if position >= until:
            for name in list(waiting):
                yield joined(name)
            yield block(table, names, columns, mine)
            continue
        while mine < stride:
            keep = kept_rows(names, columns)
            columns = [array("d", [column[i] for i in keep]) for column in columns]
            mine *= 2
        held = waiting.get(table)
        full = held is not None and len(held[1][0]) + len(columns[0]) > BLOCK_ROWS
        if held is not None and (held[0] != names or full or held[2] != mine):
            yield joined(table)
            held = None
        if held is None:
            waiting[table] = (names, columns, mine)
        else:
            for old, new in zip(held[1], columns, strict=True):
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
