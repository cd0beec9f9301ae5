"""Go through a text fast: only lines that may say something about an error are looked at closely.

A log repeats itself: a line is judged once per shape (its text less digits and blanks), so that hundreds of megabytes of
training output cost little more than reading them.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator

from trainwreck.core.source import CHUNK_BYTES, MAX_LINE_CHARS, Source, clean
from trainwreck.failures.native import HINTS
from trainwreck.failures.parse import Parser

MAX_SHAPES = 200_000
"""Shapes remembered before the memory is emptied: bounds it to some 60 MB."""
_DELETED = str.maketrans("", "", "0123456789 .-+%,\t")
_TRACE = ("Traceback", 'File "', "Error", "Exception", "Warning", "Interrupt", "OutOfMemory", "Timeout", *HINTS)


def blocks(source: Source) -> Iterator[tuple[int, list[str]]]:
    """Whole lines in blocks of about a megabyte, each with the number of its first line. Codes and NULs are removed."""
    decoder = codecs.getincrementaldecoder(source.encoding)("replace")
    number, pending = 1, ""
    with source.open() as stream:
        while True:
            chunk = stream.read(CHUNK_BYTES)
            text = pending + clean(decoder.decode(chunk, final=not chunk))
            if not chunk:
                if text:
                    yield number, text.split("\n")
                return
            head, newline, pending = text.rpartition("\n")
            if newline:
                lines = head.split("\n")
                yield number, lines
                number += len(lines)
            elif len(pending) > 4 * CHUNK_BYTES:
                pending = pending[:CHUNK_BYTES] + "\r" + pending[-MAX_LINE_CHARS:]


def scan(
    source: Source,
    parser: Parser,
    wanted: Callable[[str], bool],
    seen: Callable[[int, str], None],
    progress: Callable[[int, str], None],
) -> None:
    """Feed ``parser`` with the lines of ``source``; call ``seen`` for lines that ``wanted`` likes, once per shape, and
    ``progress`` for lines that report training progress (see ``is_progress``), sampled."""
    shapes: dict[str, int] = {}
    for first, lines in blocks(source):
        keys = "\n".join(lines).translate(_DELETED).split("\n")
        passed = 0
        for offset, key in enumerate(keys):
            kind = shapes.get(key)
            if kind is None:
                if len(shapes) >= MAX_SHAPES:
                    shapes.clear()
                text = lines[offset]
                kind = (1 if any(t in text for t in _TRACE) else 0) + (2 if is_progress(text) else 0)
                if wanted(text):
                    for part in _parts(text):
                        seen(first + offset, part)
                shapes[key] = kind
            if kind == 0 and parser.idle:
                continue
            if kind & 2:
                progress(first + offset, lines[offset])
            if kind & 1 or not parser.idle:
                if offset > passed:
                    parser.context(lines[max(passed, offset - 12) : offset])
                for part in _parts(lines[offset]):
                    parser.feed(first + offset, part)
                passed = offset + 1
        parser.context(lines[max(passed, len(lines) - 12) :])
    parser.close()


def _parts(text: str) -> list[str]:
    if "\r" not in text:
        return [text[:MAX_LINE_CHARS]]
    parts = [p for p in text[-MAX_LINE_CHARS:].split("\r") if p]
    return (
        parts
        if len(parts) <= 3
        else [*parts[:1], *[p for p in parts[1:-1] if any(t in p for t in _TRACE)][:20], *parts[-1:]]
    )


_PROGRESS = re.compile(
    r"(?i)(?:\b(?:train_?|val_?|eval_?)?loss\b\W{0,4}[-+\d]|\b(?:epoch|step|iter(?:ation)?)\b\W{0,4}\d|\d(?:it/s|s/it)\b)"
)


def is_progress(text: str) -> bool:
    """True for a line that tells of training going on: a loss, a step or an epoch with its number, a bar's rate."""
    return len(text) < 4000 and _PROGRESS.search(text) is not None
