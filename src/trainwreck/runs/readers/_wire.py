"""Protocol-buffer wire format, just enough to read scalars out of records without any schema or package."""

from __future__ import annotations

from collections.abc import Iterator


def varint(data: bytes, at: int) -> tuple[int, int]:
    """(value, index after it). Raises IndexError at the end of ``data`` and ValueError for more than ten bytes."""
    result = shift = 0
    while True:
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, at
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than ten bytes")


def fields(data: bytes, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int, int | bytes]]:
    """(field number, wire type, value) of a message: integers for varints, raw bytes for the rest.

    Raises IndexError or ValueError where the message is damaged.
    """
    at, stop = start, len(data) if end is None else end
    while at < stop:
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
            yield key >> 3, kind, value
            continue
        if kind == 2:
            length, at = varint(data, at)
        elif kind == 1:
            length = 8
        elif kind == 5:
            length = 4
        else:
            raise ValueError(f"wire type {kind}")
        if at + length > stop:
            raise IndexError("a field runs past the end of its message")
        yield key >> 3, kind, data[at : at + length]
        at += length


def text(data: int | bytes) -> str:
    return data.decode("utf-8", "replace") if isinstance(data, bytes) else str(data)


def signed(value: int | bytes) -> int:
    """A varint of a signed type."""
    if isinstance(value, bytes):
        return 0
    return value - (1 << 64) if value >= 1 << 63 else value
