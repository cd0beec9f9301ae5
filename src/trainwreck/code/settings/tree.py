"""A configuration as a located tree, and flattened: key paths with values and the place where each is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Final, Literal

from trainwreck.core.frozen import Frozen
from trainwreck.core.row import Row

MAX_SETTINGS = 20_000
"""Leaves of one file that are looked at; configurations written by people have some hundred."""
MAX_DEPTH = 40


class _Unknown:
    """A value that cannot be told from the text alone. It equals nothing, not even itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNKNOWN"

    def __eq__(self, other: object) -> bool:
        return False

    def __hash__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return False


UNKNOWN: Final = _Unknown()

Language = Literal["yaml", "json", "toml", "shell", "python"]


class Place(Row):
    """Where something is written: 1-based line and columns, ``end_column`` the first column after it."""

    path: str
    line: int
    column: int
    end_column: int
    cell: int | None = None


class Node(Row):
    """One value of a configuration. ``text`` is a scalar as written; ``pairs`` of a mapping, ``items`` of a list.

    ``merged`` pairs came from a YAML merge key (``<<``): they stand elsewhere and are overridden by the others.
    """

    kind: Literal["scalar", "mapping", "sequence"]
    line: int
    column: int
    end_column: int
    value: Any = None
    text: str = ""
    quoted: bool = False
    pairs: Sequence[tuple[Key, Node]] = ()
    items: Sequence[Node] = ()


class Key(Row):
    """A key of a mapping and where it is written."""

    name: str
    line: int
    column: int
    merged: bool = False


class Setting(Row):
    """One value under its key path. ``place`` is that of the value, ``key_place`` that of the key.

    ``value`` is what the language makes of it; ``text`` what is written; ``quoted`` tells ``"1"`` from ``1``.
    """

    keys: tuple[str, ...]
    value: Any
    text: str
    place: Place
    key_place: Place
    quoted: bool = False
    language: Language = "yaml"

    @property
    def name(self) -> str:
        return ".".join(self.keys)

    @property
    def number(self) -> float | None:
        """The number that is meant, also where YAML takes ``1e-4`` for text. None for anything else."""
        if isinstance(self.value, bool) or self.value is None:
            return None
        if isinstance(self.value, int | float):
            return float(self.value) if abs(self.value) < 1e300 else None
        if isinstance(self.value, str):
            try:
                number = float(self.value)
            except ValueError:
                return None
            return number if abs(number) < 1e300 else None
        return None

    @property
    def true(self) -> bool:
        return self.value is True or (isinstance(self.value, str) and self.value.lower() in ("true", "yes", "on"))

    @property
    def false(self) -> bool:
        return self.value is False or (isinstance(self.value, str) and self.value.lower() in ("false", "no", "off"))

    @property
    def word(self) -> str:
        """Text in lower case, "" for what is no text."""
        return self.value.lower() if isinstance(self.value, str) else ""

    @property
    def said(self) -> str:
        """The setting as people write it."""
        name = self.keys[-1] if self.keys else ""
        return f"{name}{'=' if self.language in ('shell', 'python') else ': '}{self.text[:60]}"


class Document(Frozen):
    """One configuration file. ``twice`` are keys that one mapping has more than once: (key path, first, second)."""

    path: str
    language: Language
    root: Node
    settings: Mapping[tuple[str, ...], Setting] = field(repr=False)
    twice: Sequence[tuple[tuple[str, ...], Key, Key]] = ()

    def get(self, *keys: str) -> Setting | None:
        return self.settings.get(keys)

    def leaf(self, name: str) -> Setting | None:
        """The setting whose last key is ``name``, where there is exactly one."""
        found = [s for keys, s in self.settings.items() if keys and keys[-1] == name]
        return found[0] if len(found) == 1 else None

    @property
    def top(self) -> Mapping[str, Node]:
        """The values at the top by their keys."""
        return {key.name: node for key, node in self.root.pairs}

    def has(self, *keys: str) -> bool:
        """True if there is anything under this key path."""
        return node_at(self.root, keys) is not None

    def key(self, *keys: str) -> Key | None:
        """The key itself, of a leaf or of a whole section."""
        above = node_at(self.root, keys[:-1])
        if above is None:
            return None
        return next((key for key, _ in reversed(above.pairs) if key.name == keys[-1]), None)


def node_at(node: Node, keys: Sequence[str]) -> Node | None:
    """The node under a key path; list positions count as decimal keys."""
    for name in keys:
        if node.kind == "mapping":
            found = next((value for key, value in reversed(node.pairs) if key.name == name), None)
        elif node.kind == "sequence" and name.isdigit() and int(name) < len(node.items):
            found = node.items[int(name)]
        else:
            found = None
        if found is None:
            return None
        node = found
    return node


def document(path: str, language: Language, root: Node) -> Document:
    """``root`` flattened. Later keys of a mapping win; merged ones lose."""
    settings: dict[tuple[str, ...], Setting] = {}
    twice: list[tuple[tuple[str, ...], Key, Key]] = []
    for item in _leaves(path, language, root, twice):
        settings[item.keys] = item
        if len(settings) >= MAX_SETTINGS:
            break
    return Document(path, language, root, settings, twice)


def _leaves(
    path: str, language: Language, root: Node, twice: list[tuple[tuple[str, ...], Key, Key]]
) -> Iterator[Setting]:
    start = Key("", root.line, root.column)
    todo: list[tuple[tuple[str, ...], Key, Node, int]] = [((), start, root, 0)]
    visited = 0
    while todo and visited < 4 * MAX_SETTINGS:
        keys, key, node, depth = todo.pop()
        visited += 1
        if depth > MAX_DEPTH:
            continue
        if node.kind == "mapping":
            known: dict[str, Key] = {}
            effective: dict[str, tuple[Key, Node]] = {}
            for inner, value in node.pairs:
                before = known.get(inner.name)
                if before is not None and not before.merged and not inner.merged:
                    twice.append(((*keys, inner.name), before, inner))
                if before is None or before.merged or not inner.merged:
                    known[inner.name] = inner
                    effective[inner.name] = (inner, value)
            todo += [((*keys, n), k, v, depth + 1) for n, (k, v) in reversed(effective.items())]
        elif node.kind == "sequence":
            todo += [((*keys, str(n)), key, v, depth + 1) for n, v in reversed(list(enumerate(node.items)))]
        else:
            width = len(key.name)
            yield Setting(
                keys,
                node.value,
                node.text,
                Place(path, node.line, node.column, node.end_column),
                Place(path, key.line, key.column, key.column + width),
                node.quoted,
                language,
            )
