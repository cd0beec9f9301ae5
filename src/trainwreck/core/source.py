"""A readable thing: a file, a compressed file, standard input, a remote object.

All witnesses read through ``Source``, so that size limits, decompression and decoding are decided in one place.
Nothing here executes, unpickles or fetches; remote URIs are opened only where the caller asked for one by name.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from typing import BinaryIO

from trainwreck.core.frozen import Frozen
from trainwreck.core.row import Row

HEAD_BYTES = 65_536
CHUNK_BYTES = 1 << 20
RECORDING_MAGIC = b"\x93TWREC2\n"
"""First bytes of the numbers of one of our own recordings (record/inside/store.py)."""
MAX_LINE_CHARS = 1 << 16
"""A longer line is cut here: a progress bar of a week can be a single line of hundreds of megabytes."""

_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


class Line(Row):
    """One line of text without its end, ANSI codes removed. ``number`` counts from 1 the lines ended by LF."""

    number: int
    text: str


class Source(Frozen):
    """Something to read.

    ``name``: the path as shown to the user, relative and posix, without a compression suffix removed.
    ``open``: opens it for reading bytes, already decompressed. ``head``: its first 64 KiB, decompressed.
    ``size``: bytes as stored, None where unknown (stdin, some remote stores).
    """

    name: str
    open: Callable[[], BinaryIO] = field(repr=False, compare=False)
    head: bytes = field(repr=False, compare=False)
    size: int | None = None

    @property
    def basename(self) -> str:
        """The last part of the name, lower case, less a compression suffix."""
        base = self.name.rsplit("/", 1)[-1].lower()
        for suffix in (".gz", ".bz2", ".xz", ".zst"):
            base = base.removesuffix(suffix)
        return base

    @property
    def encoding(self) -> str:
        return guess_encoding(self.head)

    @property
    def is_binary(self) -> bool:
        """True if the head does not look like text in any encoding that we read."""
        return looks_binary(self.head)

    def text(self, limit: int = 64 << 20) -> str:
        """The whole content as text, cut after ``limit`` bytes."""
        with self.open() as stream:
            data = stream.read(limit)
        return data.decode(self.encoding, "replace").lstrip("\ufeff")

    def lines(self) -> Iterator[Line]:
        """Lines in order, split at LF and at CR, NUL bytes and ANSI codes removed, in bounded memory."""
        with self.open() as stream:
            yield from self.lines_of((0, chunk) for chunk in iter(lambda: stream.read(CHUNK_BYTES), b""))

    def lines_of(self, pieces: Iterable[tuple[int, bytes]]) -> Iterator[Line]:
        """The lines of ``pieces`` of this source, each with the number of lines left out before it."""
        decoder = codecs.getincrementaldecoder(self.encoding)("replace")
        number, pending = 1, ""
        for left_out, chunk in pieces:
            number += left_out
            pending += decoder.decode(chunk)
            *complete, pending = pending.split("\n")
            for text in complete:
                yield from _split(number, text)
                number += 1
            if len(pending) > MAX_LINE_CHARS and "\r" in pending:
                # A bar without line feeds: pass on what is complete, keep the part after the last CR.
                done, _, pending = pending.rpartition("\r")
                yield from _split(number, done)
            elif len(pending) > 4 * CHUNK_BYTES:
                yield from _split(number, pending[:MAX_LINE_CHARS])
                pending = pending[-MAX_LINE_CHARS:]
        pending += decoder.decode(b"", final=True)
        if pending:
            yield from _split(number, pending)


def clean(text: str) -> str:
    """``text`` without ANSI codes, NUL bytes and backspaces."""
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if "\x00" in text:
        text = text.replace("\x00", "")
    if "\x08" in text:
        text = text.replace("\x08", "")
    return text


def _split(number: int, text: str) -> Iterator[Line]:
    text = clean(text.lstrip("\ufeff") if number == 1 else text)
    if "\r" not in text:
        yield Line(number, text[:MAX_LINE_CHARS])
        return
    for part in text.split("\r"):
        if part:
            yield Line(number, part[:MAX_LINE_CHARS])


def guess_encoding(head: bytes) -> str:
    """UTF-8 unless a byte-order mark or the pattern of zero bytes says UTF-16 (PowerShell redirection)."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    sample = head[:4096]
    if len(sample) >= 8 and sample.count(0) > 0:
        odd, even = sample[1::2].count(0), sample[0::2].count(0)
        half = len(sample) // 2
        if odd > 0.7 * half and even < 0.1 * half:
            return "utf-16-le"
        if even > 0.7 * half and odd < 0.1 * half:
            return "utf-16-be"
    return "utf-8"


def looks_binary(head: bytes) -> bool:
    """A rough test: many control bytes, or bytes that are no text in the guessed encoding."""
    if not head:
        return False
    sample = head[:8192]
    if guess_encoding(head) != "utf-8":
        return False
    control = sum(sample.count(byte) for byte in (*range(1, 7), *range(14, 27), *range(28, 32), 127))
    if control > 0.05 * len(sample):
        return True
    text = sample.decode("utf-8", "replace")
    return text.count("\ufffd") > 0.2 * len(text)


def from_bytes(name: str, data: bytes) -> Source:
    """A source over bytes in memory (standard input, a pasted text, a test)."""
    return Source(name, lambda: io.BytesIO(data), data[:HEAD_BYTES], len(data))
