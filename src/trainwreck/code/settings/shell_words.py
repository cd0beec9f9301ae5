"""Shell text as words and operators with places. Nothing is run; here-documents and comments are left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from trainwreck.code.pattern import pattern
from trainwreck.core.row import Row

MAX_TOKENS = 60_000

_PLAIN = pattern(r"[^\s\"'\\$`;&|()<>#\n]+")
_NAME = pattern(r"[A-Za-z_]\w*|[0-9@*#?$!-]")
_HERE = pattern(r"<<-?\s*(['\"]?)([A-Za-z_]\w*)\1")
_REDIRECT = pattern(r"\d*(?:>>|>&|<&|>\||&>>|&>|>|<<<|<)\s*&?-?")

Kind = Literal["text", "variable", "arithmetic", "command"]


class Part(Row):
    """A piece of a word: text as it stands, or something that the shell replaces. ``offset`` is where it begins."""

    kind: Kind
    text: str
    offset: int
    quoted: bool = False


class Token(Row):
    """A word (``op`` empty) or an operator; ``glued`` operators stand right after a word."""

    op: str
    parts: tuple[Part, ...]
    offset: int
    end: int
    glued: bool = False


def tokens(text: str) -> Iterator[Token]:
    """The words and operators of ``text`` in order. Never raises; what can't be understood ends the reading."""
    at, count, size = 0, 0, len(text)
    waiting: list[str] = []
    after_word = False
    while at < size and count < MAX_TOKENS:
        char = text[at]
        if char in " \t\r":
            at += 1
            after_word = False
            continue
        if char == "\\" and text[at + 1 : at + 2] in ("\n", "\r"):
            at += 3 if text[at + 1 : at + 3] == "\r\n" else 2
            after_word = False
            continue
        count += 1
        if char == "\n":
            yield Token("\n", (), at, at + 1)
            at += 1
            for delimiter in waiting:
                at = _past_here(text, at, delimiter)
            waiting = []
        elif char == "#":
            end = text.find("\n", at)
            at = size if end < 0 else end
        elif here := _HERE.match(text, at):
            waiting.append(here[2])
            at = here.end()
        elif redirect := _REDIRECT.match(text, at):
            at = redirect.end()
            # the name of the file that follows is no word of the command
            while at < size and text[at] in " \t":
                at += 1
            if not redirect[0].rstrip().endswith(("-", "&")) or text[at : at + 1].isdigit():
                _, at = _word(text, at)
        elif char in ";&|()":
            op = text[at : at + 2] if text[at : at + 2] in ("&&", "||", ";;", "((") else char
            if op == "((":
                end = text.find("))", at)
                at = size if end < 0 else end + 2
                yield Token("((", (), at, at)
                continue
            yield Token(op, (), at, at + len(op), after_word)
            at += len(op)
        else:
            parts, end = _word(text, at)
            if end <= at:
                return
            yield Token("", tuple(parts), at, end)
            at, after_word = end, True
            continue
        after_word = False


def _past_here(text: str, at: int, word: str) -> int:
    found = re.compile(rf"^[ \t]*{re.escape(word)}[ \t\r]*$", re.MULTILINE).search(text, at)
    return len(text) if found is None else found.end()


def _word(text: str, at: int) -> tuple[list[Part], int]:
    parts: list[Part] = []
    size = len(text)
    start = at
    while at < size:
        char = text[at]
        if char in " \t\r\n;&|()<>":
            # arrays: name=( … ) are split by the caller
            break
        if char == "#" and at == start:
            break
        if char == "'":
            end = text.find("'", at + 1)
            end = size if end < 0 else end
            parts.append(Part("text", text[at + 1 : end], at + 1, True))
            at = end + 1
        elif char == '"':
            inner, at = _quoted(text, at + 1)
            parts += inner
        elif char == "\\":
            if text[at + 1 : at + 2] == "\n":
                at += 2
                continue
            parts.append(Part("text", text[at + 1 : at + 2], at + 1, True))
            at += 2
        elif char in "$`":
            part, at = _dollar(text, at, False)
            parts.append(part)
        elif plain := _PLAIN.match(text, at):
            parts.append(Part("text", plain[0], at))
            at = plain.end()
        else:
            parts.append(Part("text", char, at))
            at += 1
    return parts, at


def _quoted(text: str, at: int) -> tuple[list[Part], int]:
    parts: list[Part] = []
    held, start = "", at
    while at < len(text):
        char = text[at]
        if char == '"':
            at += 1
            break
        if char == "\\" and at + 1 < len(text):
            follow = text[at + 1]
            # a continued line inside quotes vanishes; the blank keeps the places of what follows right
            held += "  " if follow == "\n" else follow if follow in '"\\$`' else char + follow
            if follow in '"\\$`':
                parts.append(Part("text", held, start, True))
                held, start = "", at + 2
            at += 2
        elif char in "$`":
            if held:
                parts.append(Part("text", held, start, True))
            part, at = _dollar(text, at, True)
            parts.append(part)
            held, start = "", at
        else:
            held += char
            at += 1
    if held or not parts:
        parts.append(Part("text", held, start, True))
    return parts, at


def _dollar(text: str, at: int, quoted: bool) -> tuple[Part, int]:
    if text[at] == "`":
        end = text.find("`", at + 1)
        end = len(text) if end < 0 else end
        return Part("command", text[at + 1 : end], at, quoted), end + 1
    if text.startswith("$((", at):
        end = _closing(text, at + 1, "(", ")")
        return Part("arithmetic", text[at + 3 : end - 1], at, quoted), end + 1
    if text.startswith("$(", at):
        end = _closing(text, at + 1, "(", ")")
        return Part("command", text[at + 2 : end], at, quoted), end + 1
    if text.startswith("${", at):
        end = _closing(text, at + 1, "{", "}")
        return Part("variable", text[at + 2 : end], at, quoted), end + 1
    name = _NAME.match(text, at + 1)
    if name is None:
        return Part("text", "$", at, quoted), at + 1
    return Part("variable", name[0], at, quoted), name.end()


def _closing(text: str, at: int, opening: str, closing: str) -> int:
    """Where the bracket that opens at ``at`` closes; the end of the text where it never does."""
    depth = 0
    for place in range(at, min(len(text), at + 4000)):
        if text[place] == opening:
            depth += 1
        elif text[place] == closing:
            depth -= 1
            if depth == 0:
                return place
    return len(text)
