"""Go through a text fast: only lines that may say something about an error are looked at closely.

A log repeats itself: a line is judged once per shape (its text less digits), and a word once, so that hundreds of
megabytes of training output cost little more than reading them.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from trainwreck.core.source import CHUNK_BYTES, MAX_LINE_CHARS, Source, clean
from trainwreck.failures.native import HINTS
from trainwreck.failures.parse import Parser

MAX_SHAPES = 200_000
"""Shapes remembered before the memory is emptied: bounds it to some 60 MB."""
_DELETED = str.maketrans("", "", "0123456789.-+%,")
_LETTERS = re.compile(r"[A-Za-z_]+")
TRACE, PROGRESS = 1, 2
OWN = re.compile(
    r"trainwreck: (?:no longer recording|not recording|nothing was recorded|the recording is|recording fault|"
    r"the diagnosis failed|a fault of ours)"
)
"""What the recorder says of its own faults, with their messages: none of them is the program's."""
_PROGRESS_HINTS = ("oss", "poch", "tep", "ter", "OSS", "POCH", "TEP", "it/s", "s/it")
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


class Words:
    """Which fragments can occur in a line, told by its words: each word is looked at once, however often it comes."""

    def __init__(self, fragments: Iterable[str]) -> None:
        self._by_core: dict[str, list[str]] = {}
        self._by_head: dict[str, list[str]] = {}
        self._always: list[str] = []
        for fragment in fragments:
            core = max(_LETTERS.findall(fragment), key=len, default="")
            if len(core) >= 2:
                self._by_core.setdefault(core, []).append(fragment)
            else:
                self._always.append(fragment)
        for core in self._by_core:
            self._by_head.setdefault(core[:3], []).append(core)
        self._short = [core for core in self._by_core if len(core) == 2]
        self._known: dict[str, tuple[str, ...]] = {}

    def found(self, key: str, text: str) -> list[str]:
        """The fragments that ``text`` holds; ``key`` is its shape."""
        if len(self._known) > MAX_SHAPES:
            self._known.clear()
        candidates = list(self._always)
        for word in set(key.split()):
            hits = self._known.get(word)
            if hits is None:
                cores = {core for core in self._short if core in word}
                for at in range(len(word) - 2):
                    heads = self._by_head.get(word[at : at + 3])
                    if heads is not None:
                        cores.update(core for core in heads if word.startswith(core, at))
                hits = tuple(f for core in cores for f in self._by_core[core])
                self._known[word] = hits
            candidates += hits
        return [fragment for fragment in candidates if fragment in text]


def scan(
    source: Source,
    parser: Parser,
    fragments: Sequence[str],
    seen: Callable[[int, str], None],
    progress: Callable[[int, str], None],
) -> None:
    """Feed ``parser`` with the lines of ``source``; call ``seen`` for lines that hold one of ``fragments``, once per
    shape, and ``progress`` for lines that report training progress (see ``is_progress``) after a failure."""
    shapes: dict[str, int] = {}
    wanted, traces, marks = frozenset(fragments), frozenset(_TRACE), frozenset(_PROGRESS_HINTS)
    words = Words(sorted(wanted | traces | marks))
    for first, lines in blocks(source):
        keys = "\n".join(lines).translate(_DELETED).split("\n")
        passed = 0
        for offset, key in enumerate(keys):
            kind = shapes.get(key)
            if kind is None:
                if len(shapes) >= MAX_SHAPES:
                    shapes.clear()
                text = lines[offset]
                hits = [] if OWN.match(text) else words.found(key, text)
                kind = 0
                if hits:
                    kind = 0 if traces.isdisjoint(hits) else TRACE
                    if not marks.isdisjoint(hits) and is_progress(text):
                        kind |= PROGRESS
                    if not wanted.isdisjoint(hits):
                        for part in _parts(text):
                            seen(first + offset, part)
                shapes[key] = kind
            if not parser.busy and (kind == 0 or (kind == PROGRESS and not parser.failures)):
                continue
            if kind & PROGRESS:
                progress(first + offset, lines[offset])
            if kind & TRACE or parser.busy:
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
    r"(?i)(?:\b(?:train_?|val_?|eval_?)?loss\b\W{0,4}[-+\d]|"
    r"\b(?:epoch|step|iter(?:ation)?)\b\W{0,4}\d|\d(?:it/s|s/it)\b)"
)


def is_progress(text: str) -> bool:
    """True for a line that tells of training going on: a loss, a step or an epoch with its number, a bar's rate."""
    return len(text) < 4000 and _PROGRESS.search(text) is not None
