"""Files as texts and back: decoded as their language decodes them, written again in the encoding that they had."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from pathlib import Path

from trainwreck.code.read import declared_encoding
from trainwreck.core.errors import TrainwreckError
from trainwreck.core.source import guess_encoding

PYTHON = (".py", ".pyw", ".pyi")
_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def encoding_of(name: str, data: bytes) -> str:
    """The encoding of a file with this content: UTF-16 where it looks so, what a Python file declares, else UTF-8."""
    guessed = guess_encoding(data)
    if guessed == "utf-8" and name.lower().endswith(PYTHON):
        return declared_encoding(data)
    return guessed


def decoded(name: str, data: bytes) -> str:
    """The text without a byte-order mark; bytes that are none of the encoding become U+FFFD."""
    try:
        text = data.decode(encoding_of(name, data), "replace")
    except LookupError:
        text = data.decode("utf-8", "replace")
    return text.removeprefix("\ufeff")


def encoded(name: str, text: str, before: bytes) -> bytes:
    """``text`` as bytes in the encoding of ``before``, with its byte-order mark.

    Raises UnicodeEncodeError for a character that the encoding lacks, LookupError for an unknown encoding.
    """
    encoding = encoding_of(name, before)
    if encoding == "utf-16":  # its codec writes a mark, in the order of this machine
        encoding = "utf-16-le" if before.startswith(codecs.BOM_UTF16_LE) else "utf-16-be"
    mark = "\ufeff" if before.startswith(_MARKS) else ""
    return (mark + text).encode(encoding)


def write(texts: Mapping[str, str], before: Mapping[str, str]) -> None:
    """Write changed files in place. A file that changed meanwhile, or whose bytes would not come back, is left alone.

    All that can be written is written; then TrainwreckError names what could not be, if anything.
    """
    left = [f"{name}: {why}" for name, text in sorted(texts.items()) if (why := _written(name, text, before[name]))]
    if left:
        raise TrainwreckError("; ".join(left))


def _written(name: str, text: str, before: str) -> str:
    """Why the file was not written; empty where it was."""
    path = Path(name)
    try:
        data = path.read_bytes()
        if decoded(name, data) != before:
            return "changed while it was checked; run the command again"
        if encoded(name, before, data) != data:
            return "its bytes are not what its encoding says; save it as UTF-8 to have it fixed"
        path.write_bytes(encoded(name, text, data))
    except (UnicodeEncodeError, LookupError):
        return "its encoding cannot hold the text; save it as UTF-8 to have it fixed"
    except OSError as problem:
        return f"cannot be written ({problem.strerror}); check its permissions"
    return ""
