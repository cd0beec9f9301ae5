"""Which parts of a very long text are read for metrics: its beginning, its end, and ever wider spaced pieces between.

Up to ``DENSE`` bytes everything is read. Beyond, one piece of ``PIECE`` bytes in ``position / DENSE`` is, so that the
points stay as dense as a curve over a logarithmic axis needs, and a log of 10 GB costs little more than one of 100 MB.
A piece with a word of ``MARKERS`` that is rare in this text (a NaN, a crash, a restart) is read wherever it stands.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import BinaryIO

PIECE = 1 << 16
"""Bytes: some hundred lines, so that neighbours that belong together are seen together."""
DENSE = 16 << 20
"""Bytes read in full (twice as many, up to the first gap): over 50,000 steps of Megatron-LM's wide lines. A judgement
between speed and resolution."""
SPARSE = 2 << 20
"""The same for a text that has told no metric so far: prose is dear to read and seldom says something."""
TAIL = 8 << 20
"""Bytes at the end that are read in full: how the run ended."""
OFTEN = 64
"""Pieces with one marker after which it is the habit of this text ("number of nan iterations: 0")."""
MARKERS: tuple[bytes, ...] = (
    *(b"nan", b"NaN", b" inf", b"-inf", b"Infinity", b"verflow"),
    *(b"Traceback", b"Error:", b"Killed", b"SIG", b"CANCELLED", b"oom", b"OOM"),
    *(b"esum", b"estart", b"topping", b"ompleted"),
)


class Windows:
    """The pieces of one text. ``skipped`` counts the bytes left out so far; ``dense`` may be lowered while reading."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.dense = DENSE
        self._seen = dict.fromkeys(MARKERS, 0)
        self.skipped = 0

    def pieces(self) -> Iterator[tuple[int, bytes]]:
        """Bytes to be read, each after the number of line feeds that were left out before it. A piece that follows a
        gap begins after a line feed, and so ends the piece before the gap."""
        waiting: deque[bytes] = deque()
        gap, position, turn, ends = 0, 0, 0, True
        for piece in self._raw():
            waiting.append(piece)
            if len(waiting) * PIECE <= TAIL:
                continue
            piece = waiting.popleft()
            turn += 1
            stride = position // self.dense
            position += len(piece)
            marked = self._marked(piece)
            if stride <= 1 or marked or turn >= stride or not (ends and piece.endswith(b"\n")):
                turn = 0
                yield gap, piece
                gap, ends = 0, piece.endswith(b"\n")
            else:
                gap += piece.count(b"\n")
                self.skipped += len(piece)
        for piece in waiting:
            yield gap, piece
            gap = 0

    def _raw(self) -> Iterator[bytes]:
        """Pieces that end with a line feed where there is one."""
        rest = b""
        while True:
            data = self._stream.read(PIECE)
            if not data:
                break
            cut = data.rfind(b"\n") + 1
            if cut:
                yield rest + data[:cut]
                rest = data[cut:]
            elif len(rest) > 4 * PIECE:
                yield rest + data
                rest = b""
            else:
                rest += data
        if rest:
            yield rest

    def _marked(self, piece: bytes) -> bool:
        found = False
        for marker, times in self._seen.items():
            if times < OFTEN and marker in piece:
                self._seen[marker] = times + 1
                found = True
        return found
