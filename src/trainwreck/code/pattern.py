"""Regular expressions that are compiled at their first use.

The rules hold some 500 of them, and a look at one script uses a hundred: compiling them takes as long as looking with
them. Most ask for words of which none occurs, and that is seen without compiling anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, cast

LONG = 256
"""Letters from which on the words are looked for first even where the expression is compiled: a search for words costs
far less than one for alternatives, and a program is looked through whole."""
SPECIAL = frozenset("\\[](){}.^$*+?|")


class _Lazy:
    __slots__ = ("_compiled", "_flags", "_text", "_words")

    def __init__(self, text: str, flags: int) -> None:
        self._text = text
        self._flags = flags
        self._compiled: re.Pattern[str] | None = None
        self._words: Sequence[str] | None = None

    def search(self, string: str, *span: int) -> re.Match[str] | None:
        return self._pattern().search(string, *span) if self._may_be_in(string) else None

    def match(self, string: str, *span: int) -> re.Match[str] | None:
        return self._pattern().match(string, *span) if self._may_be_in(string) else None

    def fullmatch(self, string: str, *span: int) -> re.Match[str] | None:
        return self._pattern().fullmatch(string, *span) if self._may_be_in(string) else None

    def _may_be_in(self, string: str) -> bool:
        if self._compiled is not None and len(string) < LONG:
            return True
        if self._words is None:
            plain = not self._flags & ~(re.IGNORECASE | re.MULTILINE | re.DOTALL)
            self._words = words(self._text) if plain else ()
            if self._flags & re.IGNORECASE:
                self._words = [word.lower() for word in self._words]
        if not self._words or not string.isascii():  # other letters may be like one of these in another case
            return True
        string = string.lower() if self._flags & re.IGNORECASE else string
        return any(word in string for word in self._words)

    def _pattern(self) -> re.Pattern[str]:
        if self._compiled is None:
            self._compiled = re.compile(self._text, self._flags)
        return self._compiled

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pattern(), name)


def pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """``text`` as a pattern to be used by its methods (``.search(text)``), never as ``re.search(pattern, text)``.

    Raises ``re.error`` for a wrong expression when it is first used: ``tests/test_house.py`` compiles them all.
    """
    if text.startswith("(?i)"):
        text, flags = text[4:], flags | re.IGNORECASE
    return cast("re.Pattern[str]", _Lazy(text, flags))


# ---------------------------------------------------------------------- words without which nothing is found
def words(text: str) -> Sequence[str]:
    """Words of which one stands in every string that the expression ``text`` is found in; none if that can't be told.

    ``api_?key|\\btoken`` gives ``api`` and ``token``: the longest run of plain letters of each alternative.
    """
    if not text.isascii() or any(f"(?{flag}" in text for flag in "aiLmsux-"):
        return ()
    found: list[str] = []
    for alternative in _alternatives(text):
        runs = _runs(alternative)
        if not runs:
            return ()
        found += runs
    return found


def _signs(text: str, at: int = 0) -> Iterator[tuple[int, str]]:
    """(place, sign) of what is neither escaped nor within a class of characters, from ``at`` on."""
    while at < len(text):
        char = text[at]
        if char == "[":
            at = _behind_class(text, at)
            continue
        if char != "\\":
            yield at, char
        at += 2 if char == "\\" else 1


def _alternatives(text: str) -> list[str]:
    bars, depth = [-1], 0
    for at, char in _signs(text):
        depth += (char == "(") - (char == ")")
        if char == "|" and depth == 0:
            bars.append(at)
    return [text[a + 1 : b] for a, b in pairwise([*bars, len(text)])]


def _behind_class(text: str, at: int) -> int:
    """The place behind a class of characters that begins at ``at``."""
    at += 2 if text[at + 1 : at + 2] == "^" else 1
    at += 2 if text[at : at + 1] == "\\" else 1  # a bracket that comes first is one of the characters
    while at < len(text) and text[at] != "]":
        at += 2 if text[at] == "\\" else 1
    return at + 1


def _behind_group(text: str, at: int) -> int:
    """The place behind a group that begins at ``at``."""
    depth = 0
    for place, char in _signs(text, at):
        depth += (char == "(") - (char == ")")
        if depth == 0:
            return place + 1
    return len(text)


def _runs(text: str) -> Sequence[str]:
    """The longest run of letters of one alternative; or the words of a group in it, where there is no letter beside."""
    best, run = "", ""
    inner: Sequence[str] = ()
    at = 0
    while at < len(text):
        char, item, group = text[at], "", ""
        if char == "\\":
            item = text[at + 1 : at + 2]
            item = "" if item.isalnum() else item
            at += 2
        elif char == "[":
            at = _behind_class(text, at)
        elif char == "(":
            end = _behind_group(text, at)
            group = text[at + 1 : end - 1]
            at = end
        else:
            item = "" if char in SPECIAL else char
            at += 1
        optional, repeated, at = _quantifier(text, at)
        if item and not optional:
            run += item
        if optional or repeated or not item:
            best, run = max(best, run, key=len), ""
        if group and not optional and not inner and not group.startswith("?"):
            inner = words(group)
    best = max(best, run, key=len)
    return [best] if best else inner


def _quantifier(text: str, at: int) -> tuple[bool, bool, int]:
    """(may what comes before be missing, may it be there more than once, the place behind the quantifier)"""
    char = text[at : at + 1]
    if not char or char not in "?*+{" or (char == "{" and "}" not in text[at:]):
        return False, False, at
    end = text.find("}", at) + 1 if char == "{" else at + 1
    if text[end : end + 1] in ("?", "+"):
        end += 1
    return char in "?*{", True, end
