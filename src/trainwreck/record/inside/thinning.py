"""Older blocks at a coarser resolution: of four rows the extremes of the loss stay, and what is not finite.

Done a piece at a time: each flush carries a copy of the file a little further, until the copy takes the file's place.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from array import array
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any

BLOCK_ROWS = 512
"""Rows of a block that thinning makes: large enough that headers cost nothing, small enough to fit any memory."""
LEADING = ("loss", "grad_norm")
"""Columns whose extremes decide which rows stay, the first that the block has."""
BEGIN = 2
"""Thinning begins when the file has the cap's size over this: the rest is for its copy."""
PIECE_SECONDS = 0.05
"""Time of one flush that goes into thinning; a flush comes at most twice a second, so this is a tenth at worst."""
PIECE_FACTOR = 4
"""Bytes that a piece reads at least, for each byte added since the last one: however slow the disk, the copy ends."""
CHUNK = 1 << 20


class Thinning:
    """The copy of one file, all but its newest quarter at a coarser resolution.

    ``sizes``: bytes by stride in the file at ``path``, which goes on growing by whole blocks meanwhile. ``room``: bytes
    that the coarser part may take.
    """

    def __init__(self, path: str, size: int, sizes: Mapping[int, int], room: int) -> None:
        self.path, self.copy = path, f"{path}.new"  # a name that readers pass over
        self.until = size * 3 // 4
        self.stride = coarser(sizes, size - self.until, room)
        self.sizes: dict[int, int] = {}
        """Bytes by stride of the copy."""
        self._seen = size
        self._done = 0
        self._pieces = self._work()

    def piece(self, size: int) -> bool:
        """Go on for a while; true when the copy has taken the file's place. ``size`` is the file's. Raises OSError."""
        least = self._done + PIECE_FACTOR * (size - self._seen)
        self._seen = size
        end = time.perf_counter() + PIECE_SECONDS
        for done in self._pieces:
            self._done = done
            if time.perf_counter() >= end and self._done >= least:
                return False
        os.replace(self.copy, self.path)
        return True

    def abandon(self) -> None:
        """Leave the file as it is."""
        self._pieces.close()
        with contextlib.suppress(OSError):
            os.remove(self.copy)

    def _work(self) -> Generator[int]:
        """Copy piece by piece; yields the number of bytes read so far."""
        from .store import MAGIC, read_blocks

        with open(self.path, "rb") as old, open(self.copy, "wb") as new:
            new.write(MAGIC)
            position = len(MAGIC)
            for position, data in thinned(read_blocks(old), self.until, self.stride):
                new.write(data)
                new.flush()  # a fork must find nothing unwritten
                self.sizes[self.stride] = self.sizes.get(self.stride, 0) + len(data)
                yield position
            old.seek(position)
            while data := old.read(CHUNK):
                new.write(data)
                new.flush()
                self.sizes[1] = self.sizes.get(1, 0) + len(data)
                position += len(data)
                yield position


def coarser(sizes: Mapping[int, int], newest: int, room: int) -> int:
    """The stride (a power of two) at which all but the ``newest`` bytes take at most ``room`` bytes.

    ``sizes``: bytes by stride; the newest are those of the smallest.
    """
    old: list[tuple[int, int]] = []
    for stride, size in sorted(sizes.items()):
        left = min(newest, size)
        newest -= left
        old.append((size - left, stride))
    goal = 2
    while sum(size * min(stride / goal, 1.0) for size, stride in old) > room and goal < 1 << 40:
        goal *= 2
    return goal


def thinned(
    blocks: Iterable[tuple[int, dict[str, Any], list[array[float]]]], until: int, stride: int
) -> Iterator[tuple[int, bytes]]:
    """(where reading goes on, bytes) for the blocks up to byte ``until``, at ``stride`` at least and joined.

    ``blocks`` are (end, header, columns). The bytes are empty where a block has only been put aside.
    """
    from .store import block

    waiting: dict[str, tuple[list[str], list[array[float]], int]] = {}

    def joined(table: str) -> bytes:
        names, columns, coarse = waiting.pop(table)
        return block(table, names, columns, coarse)

    position = 0
    for position, facts, columns in blocks:
        table, names, mine = str(facts["table"]), list(facts["columns"]), int(facts["stride"])
        while mine < stride:
            keep = kept_rows(names, columns)
            columns = [array("d", [column[i] for i in keep]) for column in columns]
            mine *= 2
        data = b""
        held = waiting.get(table)
        full = held is not None and len(held[1][0]) + len(columns[0]) > BLOCK_ROWS
        if held is not None and (held[0] != names or full or held[2] != mine):
            data = joined(table)
            held = None
        if held is None:
            waiting[table] = (names, columns, mine)
        else:
            for old, new in zip(held[1], columns, strict=True):
                old.extend(new)
        yield position, data
        if position >= until:
            break
    for name in list(waiting):
        yield position, joined(name)


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
