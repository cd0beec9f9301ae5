"""YAML as a located tree: anchors, aliases and merge keys resolved, tags never obeyed, expansion bounded."""

from __future__ import annotations

from typing import Any

from trainwreck.code.pattern import pattern
from trainwreck.code.settings.tree import MAX_DEPTH, UNKNOWN, Key, Node

MAX_NODES = 40_000
"""Nodes that the aliases of one file may expand to."""
_PLAIN_TAGS = "tag:yaml.org,2002:"
_BASED = pattern(r"[-+]?0(?:x[0-9a-fA-F_]+|b[01_]+|[0-7_]+)$")


class _TooMuch(Exception):
    """The file expands without end."""


def read_yaml(text: str) -> Node | None:
    """The first document of ``text``; None for what is no YAML or expands without end. Never raises."""
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    if "\x00" in text:
        return None
    try:
        composed = next(iter(yaml.compose_all(text, Loader=loader)), None)
        return _Reader().node(composed, 0) if composed is not None else None
    except (yaml.YAMLError, RecursionError, ValueError, _TooMuch):
        return None


class _Reader:
    def __init__(self) -> None:
        self.left = MAX_NODES

    def node(self, node: Any, depth: int) -> Node:
        self.left -= 1
        if self.left < 0 or depth > MAX_DEPTH:
            raise _TooMuch
        line, column = node.start_mark.line + 1, node.start_mark.column + 1
        end = node.end_mark.column + 1 if node.end_mark.line == node.start_mark.line else column + 1
        kind = type(node).__name__
        plain = node.tag.startswith(_PLAIN_TAGS) and "python/" not in node.tag
        if kind == "MappingNode" and plain:
            return Node("mapping", line, column, end, pairs=tuple(self._pairs(node, depth)))
        if kind == "SequenceNode" and plain:
            items = tuple(self.node(item, depth + 1) for item in node.value)
            return Node("sequence", line, column, end, items=items)
        if kind == "ScalarNode":
            value = scalar(node.tag.removeprefix(_PLAIN_TAGS), node.value) if plain else UNKNOWN
            return Node("scalar", line, column, end, value, node.value, bool(node.style))
        return Node("scalar", line, column, end, UNKNOWN)

    def _pairs(self, node: Any, depth: int) -> list[tuple[Key, Node]]:
        own: list[tuple[Key, Node]] = []
        merged: list[tuple[Key, Node]] = []
        for key, value in node.value:
            if key.tag == _PLAIN_TAGS + "merge":
                sources = value.value if type(value).__name__ == "SequenceNode" else [value]
                for source in reversed(sources):
                    inner = self.node(source, depth + 1)
                    merged += [(Key(k.name, k.line, k.column, True), v) for k, v in inner.pairs]
            elif type(key).__name__ == "ScalarNode":
                place = key.start_mark
                own.append((Key(str(key.value), place.line + 1, place.column + 1), self.node(value, depth + 1)))
        return [*merged, *own]


def scalar(tag: str, text: str) -> Any:
    """What PyYAML (YAML 1.1) makes of a scalar."""
    plain = text.replace("_", "")
    try:
        match tag:
            case "null":
                return None
            case "bool":
                return text.lower() in ("yes", "true", "on")
            case "int" if len(text) > 300:
                return UNKNOWN
            case "int" if _BASED.match(text):
                sign = -1 if plain.startswith("-") else 1
                digits = plain.lstrip("+-").lower()
                return sign * (int(digits, 0) if digits[1:2] in ("x", "b") else int(digits, 8))
            case "int" if ":" not in text:
                return int(plain)
            case "float" if ":" not in text:
                return float(plain.lower().replace(".inf", "inf").replace(".nan", "nan"))
            case "int" | "float" | "timestamp" | "binary":
                return UNKNOWN
    except ValueError:
        return UNKNOWN
    return text
