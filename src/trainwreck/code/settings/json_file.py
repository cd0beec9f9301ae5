"""JSON as a located tree; comments and trailing commas, as editors allow them, are read over."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from typing import Any

from trainwreck.code.pattern import pattern
from trainwreck.code.settings.tree import MAX_DEPTH, Key, Node

_TOKEN = pattern(
    r'[ \t\r\n]+|//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/|(?P<string>"(?:[^"\\\n]|\\.)*")'
    r"|(?P<number>-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)|(?P<word>[A-Za-z]+)|(?P<mark>[{}\[\]:,])"
)
_WORDS = {"true": True, "false": False, "null": None, "NaN": float("nan"), "Infinity": float("inf")}
_Token = tuple[str, str, int]


def read_json(text: str) -> Node | None:
    """The value that ``text`` holds, None where it is no JSON. Never raises."""
    tokens: list[_Token] = []
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            return None
        if found.lastgroup:
            tokens.append((found.lastgroup, found[0], at))
        at = found.end()
    starts = [0, *(m.end() for m in re.finditer("\n", text))]
    reader = _Reader(tokens, starts)
    try:
        node = reader.value(0)
    except (IndexError, ValueError):
        return None
    return node if reader.at == len(tokens) else None


class _Reader:
    def __init__(self, tokens: list[_Token], starts: list[int]) -> None:
        self.tokens, self.starts, self.at = tokens, starts, 0

    def place(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1] + 1

    def value(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise ValueError
        kind, text, offset = self.tokens[self.at]
        self.at += 1
        line, column = self.place(offset)
        end = column + len(text)
        if kind == "string":
            return Node("scalar", line, column, end, _string(text), text[1:-1], True)
        if kind == "number":
            if len(text) > 300:
                raise ValueError
            number: Any = int(text) if text.lstrip("-").isdigit() else float(text)
            return Node("scalar", line, column, end, number, text)
        if kind == "word":
            if text not in _WORDS:
                raise ValueError
            return Node("scalar", line, column, end, _WORDS[text], text)
        if text == "{":
            return Node("mapping", line, column, end, pairs=tuple(self._pairs(depth)))
        if text == "[":
            return Node("sequence", line, column, end, items=tuple(self._items(depth)))
        raise ValueError

    def _pairs(self, depth: int) -> list[tuple[Key, Node]]:
        pairs: list[tuple[Key, Node]] = []
        while self.tokens[self.at][1] != "}":
            kind, text, offset = self.tokens[self.at]
            if kind != "string" or self.tokens[self.at + 1][1] != ":":
                raise ValueError
            self.at += 2
            pairs.append((Key(_string(text), *self.place(offset + 1)), self.value(depth + 1)))
            self._comma("}")
        self.at += 1
        return pairs

    def _items(self, depth: int) -> list[Node]:
        items: list[Node] = []
        while self.tokens[self.at][1] != "]":
            items.append(self.value(depth + 1))
            self._comma("]")
        self.at += 1
        return items

    def _comma(self, closing: str) -> None:
        text = self.tokens[self.at][1]
        if text == ",":
            self.at += 1
        elif text != closing:
            raise ValueError


def _string(text: str) -> str:
    if "\\" not in text:
        return text[1:-1]
    try:
        return str(json.loads(text, strict=False))
    except ValueError:
        return text[1:-1]
