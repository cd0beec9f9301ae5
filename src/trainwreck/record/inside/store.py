"""The recording on disk: columns of numbers in blocks, append-only, one writer a rank; events as JSON lines beside it.

``rank0.twr`` is ``MAGIC`` and then blocks. A block is ``BLOCK``, three little-endian 32-bit numbers (length of the
header, length of the body, CRC-32 of both), a JSON header ``{"table", "columns", "rows", "stride"}`` and a body:
the columns one after another as little-endian float64, compressed by zlib. A cell that was not written is the NaN with
the bits ``MISSING_BITS``; other NaNs are values. A block that a kill has torn fails its checksum and is left out; the
reader goes on at the next ``BLOCK``. ``rank0.jsonl`` holds the head and the events.

The size stays below a cap: when half of it is reached, older blocks are copied at a coarser resolution into a new file,
a piece at each flush, which then takes the old one's place (``thinning``).
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import sys
import threading
import zlib
from array import array
from collections.abc import Iterator
from typing import Any, BinaryIO, TextIO

from . import thinning

MAGIC = b"\x93TWREC2\n"
BLOCK = b"\x93TWB"
PREFIX = struct.Struct("<III")
MISSING_BITS = 0x7FF8_0000_5452_574B
MISSING = struct.unpack("<d", struct.pack("<Q", MISSING_BITS))[0]
MAX_BYTES = 32 << 20
"""Size of one rank's numbers on disk by default, with the copy that thinning makes."""
MAX_EVENTS = 20_000
"""Lines of events of one rank; more of them say nothing new."""
MAX_COLUMNS = 400
"""Columns of one table; names that a program makes up without end must not fill the disk."""
LEVEL = 1
"""Of zlib: higher ones save a tenth and cost three times as much (measured on recordings of the yardstick loops)."""


class Store:
    """Writes one rank's recording into ``folder``. Opens its files at the first thing that is written."""

    def __init__(self, folder: str, head: dict[str, Any], max_bytes: int = MAX_BYTES) -> None:
        self.folder = folder
        self.max_bytes = max_bytes
        self._head = head
        self._rows: dict[str, list[dict[str, float]]] = {}
        self._names: dict[str, set[str]] = {}
        self._file: BinaryIO | None = None
        self._events: TextIO | None = None
        self._size = 0
        self._sizes: dict[int, int] = {}
        """Bytes on disk by stride."""
        self._thinning: thinning.Thinning | None = None
        self._event_count = 0
        self._lock = threading.RLock()
        """Events come from several threads."""
        self.base: str | None = None

    def row(self, table: str, values: dict[str, float]) -> None:
        """Keep one row of ``table`` until the next flush; ``values`` holds ``step`` and whatever else was seen."""
        known = self._names.setdefault(table, set())
        if not values.keys() <= known:
            known.update(list(values)[: max(0, MAX_COLUMNS - len(known))])
        self._rows.setdefault(table, []).append(values)

    @property
    def pending(self) -> int:
        """Rows that a kill would lose now."""
        return sum(map(len, self._rows.values()))

    def event(self, kind: str, text: str, step: int, **facts: Any) -> None:
        """Write one event at once. ``facts``: module, value, level, path, line … as plain JSON."""
        self._event_count += 1
        if self._event_count > MAX_EVENTS:
            return
        found = {"event": kind, "text": text, "step": step, **{k: v for k, v in facts.items() if v is not None}}
        line = json.dumps(found, default=str) + "\n"
        with self._lock:
            file = self._open_events()
            file.write(line)
            file.flush()

    def flush(self) -> None:
        """Write the rows that are kept, one block a table. Raises OSError; the rows are dropped all the same."""
        kept, self._rows = self._rows, {}
        for table, rows in kept.items():
            names = list(dict.fromkeys(n for row in rows for n in row if n in self._names[table]))
            columns = [array("d", [row.get(name, MISSING) for row in rows]) for name in names]
            self._write(block(table, names, columns, 1))
        if self._thinning is not None or self._size > self.max_bytes // thinning.BEGIN:
            self._thin()

    def close(self) -> None:
        """Close the files; what is kept unwritten is lost (flush first)."""
        if self._thinning is not None:
            self._thinning.abandon()
            self._thinning = None
        for file in (self._file, self._events):
            if file is not None:
                with contextlib.suppress(OSError):
                    file.close()
        self._file = self._events = None

    def forget(self) -> None:
        """In a forked child: the parent's files and rows are not ours; new ones are opened at the first write."""
        self._file = self._events = self._thinning = None
        self._lock = threading.RLock()  # another thread of the parent may have held it
        self._rows, self._sizes, self._size, self._event_count, self.base = {}, {}, 0, 0, None

    def _write(self, data: bytes) -> None:
        if self._file is None:
            self._open_events()
            self._file = open(f"{self.base}.twr", "wb", buffering=0)  # noqa: SIM115
            self._append(MAGIC)
        self._append(data)
        self._sizes[1] = self._sizes.get(1, 0) + len(data)

    def _append(self, data: bytes) -> None:
        """All of ``data`` at the end of the file, or nothing of it. Raises OSError."""
        assert self._file is not None
        left = memoryview(data)
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError:
            with contextlib.suppress(OSError):  # the disk is full: half a block would stand in the way of the next
                self._file.seek(self._size)
                self._file.truncate()
            raise
        self._size += len(data)

    def _open_events(self) -> TextIO:
        """The events' file; its name claims the recording's name among ranks, restarts and children."""
        if self._events is None:
            os.makedirs(self.folder, exist_ok=True)
            rank = rank_of_process()
            for number in range(1, 1000):
                base = os.path.join(self.folder, f"rank{rank}" if number == 1 else f"rank{rank}.{number}")
                try:
                    self._events = open(f"{base}.jsonl", "x", encoding="utf-8")  # noqa: SIM115
                except FileExistsError:
                    continue
                self.base = base
                break
            else:
                raise OSError(f"{self.folder}: holds too many recordings")
            head = {"trainwreck_recording": 2, "rank": rank, "pid": os.getpid(), **self._head}
            self._events.write(json.dumps(head, default=str) + "\n")
            self._events.flush()
        return self._events

    def _thin(self) -> None:
        """Rewrite all but the newest quarter at a coarser resolution, a piece at a time."""
        path = f"{self.base}.twr"
        if self._thinning is None:
            self._thinning = thinning.Thinning(path, self._size, self._sizes, self.max_bytes * 3 // 16)
        try:
            if not self._thinning.piece(self._size):
                return
        except OSError:
            self._thinning.abandon()
            self._thinning = None
            self.max_bytes *= 2  # asked again later, not at every flush
            raise
        self._sizes, self._thinning = self._thinning.sizes, None
        if self._file is not None:
            self._file.close()
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115
        self._size = os.path.getsize(path)


def rank_of_process() -> int:
    """Rank as torch.distributed or the launcher gave it, 0 without one."""
    distributed = sys.modules.get("torch.distributed")
    with contextlib.suppress(Exception):
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            return int(distributed.get_rank())
    text = os.environ.get("RANK", "0")
    return int(text) if text.isdigit() else 0


def block(table: str, names: list[str], columns: list[array[float]], stride: int) -> bytes:
    """One block: ``columns[i]`` belongs to ``names[i]``; ``stride`` is the number of steps that a row stands for."""
    rows = len(columns[0]) if columns else 0
    header = json.dumps({"table": table, "columns": names, "rows": rows, "stride": stride}).encode()
    if sys.byteorder == "big":
        for column in columns:
            column.byteswap()
    body = zlib.compress(b"".join(column.tobytes() for column in columns), LEVEL)
    return BLOCK + PREFIX.pack(len(header), len(body), zlib.crc32(body, zlib.crc32(header))) + header + body


def read_blocks(file: BinaryIO) -> Iterator[tuple[int, dict[str, Any], list[array[float]]]]:
    """(end, header, columns) of the whole blocks of a file of ours, in order; stops at the first damaged one."""
    position = len(MAGIC)
    file.seek(position)
    while True:
        prefix = file.read(len(BLOCK) + PREFIX.size)
        if len(prefix) < len(BLOCK) + PREFIX.size or not prefix.startswith(BLOCK):
            return
        header_length, body_length, crc = PREFIX.unpack(prefix[len(BLOCK) :])
        header, body = file.read(header_length), file.read(body_length)
        if len(body) < body_length or zlib.crc32(body, zlib.crc32(header)) != crc:
            return
        facts = json.loads(header)
        cells = array("d", zlib.decompress(body))
        if sys.byteorder == "big":
            cells.byteswap()
        rows = facts["rows"]
        position += len(prefix) + header_length + body_length
        yield position, facts, [cells[i : i + rows] for i in range(0, rows * len(facts["columns"]), rows)]
