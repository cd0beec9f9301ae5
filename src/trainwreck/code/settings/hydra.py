"""Hydra: the configuration that a program with ``@hydra.main`` composes, and what an override may name.

The defaults list is followed through groups of the configuration directory, packages (``@package _global_``) included.
Where a part is unknown (a group file that is not here, a schema from a ConfigStore, a search path), the composed
configuration is not ``complete`` and nothing is said about keys that it lacks.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.scopes import Scope
from trainwreck.code.settings.index import Settings, of
from trainwreck.code.settings.tree import Document, Key, Node, Place, Setting

MAX_FILES = 200
MAX_DEPTH = 12
_PACKAGE = pattern(r"^#\s*@package\s+(\S+)", re.MULTILINE)
_OVERRIDE = pattern(r"(\+\+|\+|~)?([A-Za-z_][\w/]*(?:@[\w.:]+)?(?:\.[\w]+)*)(?:=(.*))?$", re.DOTALL)


@dataclass(frozen=True, eq=False)
class Main:
    """One ``@hydra.main``: where it stands, the directory of its configurations and the name of the first."""

    node: ast.expr
    scope: Scope
    directory: str
    name: str


@dataclass(eq=False)
class Composed:
    """The merged configuration: ``keys`` of sections and values with the place of each. ``groups`` are those chosen in
    the defaults lists. ``missing`` are files that a defaults list names and that are not there."""

    keys: dict[tuple[str, ...], Place] = field(default_factory=dict)
    values: dict[tuple[str, ...], Setting] = field(default_factory=dict)
    groups: set[str] = field(default_factory=set)
    missing: list[tuple[Place, str]] = field(default_factory=list)
    complete: bool = True
    files: int = 0


@dataclass(frozen=True, slots=True)
class Override:
    """One word of the command line: ``sign`` is "", "+", "++" or "~"."""

    sign: str
    key: str
    value: str | None
    place: Place


def mains(project: Project) -> Iterator[Main]:
    """Every ``@hydra.main`` whose directory and name are written out."""
    for scope in project.functions:
        for item in scope.decorators:
            if not isinstance(item, ast.Call) or project.dotted(item.func, scope.parent or scope) != "hydra.main":
                continue
            given = {k.arg: k.value for k in item.keywords}
            path = given.get("config_path", item.args[0] if item.args else None)
            name = given.get("config_name", item.args[1] if len(item.args) > 1 else None)
            if not isinstance(path, ast.Constant) or not isinstance(name, ast.Constant):
                continue
            if isinstance(path.value, str) and isinstance(name.value, str):
                yield Main(item, scope, path.value, name.value)


def directory_of(settings: Settings, main: Main) -> str | None:
    """The directory of the configurations as a path of the project, None where it is not among the files."""
    stem = main.name.removesuffix(".yaml")
    found = settings.find(f"{main.directory}/{stem}.yaml", main.scope.module.path)
    return found[: -len(f"{stem}.yaml")].rstrip("/") if found is not None else None


def compose(project: Project, main: Main, choices: Sequence[Override] = ()) -> Composed | None:
    """What Hydra makes of the files for these overrides of groups; None where the first file is not here."""
    settings = of(project)
    directory = directory_of(settings, main)
    if directory is None:
        return None
    composed = Composed()
    chosen = {o.key.partition("@")[0]: o.value or "" for o in choices if o.sign != "~" and o.value is not None}
    if any(word in main.scope.module.text for word in ("ConfigStore", "cs.store")) or _stores(project):
        composed.complete = False
    first = _Part(settings, directory, composed, chosen)
    first.file(main.name.removesuffix(".yaml"), "", None, "", 0)
    for override in choices:
        group = override.key.partition("@")[0]
        if override.sign in ("+", "++") and _is_group(settings, directory, group):
            at = override.key.partition("@")[2] or None
            first.file(f"{group}/{override.value}", "", at, group.replace("/", "."), 0)
    return composed


def _stores(project: Project) -> bool:
    return "ConfigStore" in project.calls_by_name or "store" in project.calls_by_name


def _is_group(settings: Settings, directory: str, name: str) -> bool:
    start = f"{directory}/{name}/" if directory else f"{name}/"
    return any(p.startswith(start) for p in settings.paths)


def is_group(project: Project, main: Main, name: str) -> bool:
    directory = directory_of(of(project), main)
    return directory is not None and _is_group(of(project), directory, name)


class _Part:
    """One walk through the defaults lists of a directory."""

    def __init__(self, settings: Settings, directory: str, composed: Composed, chosen: dict[str, str]) -> None:
        self.settings, self.directory, self.composed, self.chosen = settings, directory, composed, chosen

    def file(self, name: str, parent: str, explicit: str | None, relative: str, depth: int) -> bool:
        """Merge one file with its defaults. False where it is not there.

        ``parent``: the package of the file that names it; ``explicit``: what follows ``@``; ``relative``: its group.
        """
        name = name.removesuffix(".yaml")
        path = f"{self.directory}/{name}.yaml" if self.directory else f"{name}.yaml"
        document = self.settings.document(path)
        if document is None and path not in self.settings.paths:
            self.composed.complete = False
            return False
        self.composed.files += 1
        if depth > MAX_DEPTH or self.composed.files > MAX_FILES:
            self.composed.complete = False
            return True
        header = _PACKAGE.search(self.settings.text(path)[:2000])
        if header is not None and header[1] == "_group_" and explicit is None:
            self.composed.complete = False  # means one thing before Hydra 1.1, another after
        if explicit is None and header is not None:
            package = _final("", header[1])  # a header counts from the top
        else:
            package = _final(parent, relative if explicit is None else explicit)
        if document is None:  # empty, or no mapping
            return True
        merged = False
        entries = next((v for k, v in document.root.pairs if k.name == "defaults"), None)
        for entry in entries.items if entries is not None else ():
            if entry.kind == "scalar" and entry.text == "_self_":
                _merge(document, package, self.composed)
                merged = True
            else:
                self.default(name.rpartition("/")[0], document, entry, package, depth)
        if not merged:
            _merge(document, package, self.composed)
        return True

    def default(self, folder: str, document: Document, entry: Node, package: str, depth: int) -> None:
        """One entry of a defaults list."""
        place = Place(document.path, entry.line, entry.column, entry.end_column)
        if entry.kind == "scalar":
            name, at, explicit = entry.text.partition("@")
            relative = name.lstrip("/").rpartition("/")[0].replace("/", ".")
            target = name.lstrip("/") if name.startswith("/") or not folder else f"{folder}/{name}"
            there = self.file(target, package, _plain(explicit) if at else None, relative, depth + 1)
            if not there and "${" not in entry.text and not name.startswith("hydra"):
                self.composed.missing.append((place, target))
            return
        for key, value in entry.pairs:
            self.choice(folder, document, key, value, package, depth)

    def choice(self, folder: str, document: Document, key: Key, value: Node, package: str, depth: int) -> None:
        """``group: option`` of a defaults list."""
        words = key.name.split()
        group, at, explicit = words[-1].partition("@")
        full = group.lstrip("/") if group.startswith("/") or not folder else f"{folder}/{group}"
        if full.startswith("hydra"):
            return
        choice = self.chosen.get(full, value.text if value.value is not None else "")
        self.composed.groups.add(full)
        unknown = value.kind == "sequence" or "override" in words or choice == "???" or "${" in choice
        if unknown or not choice or choice == "null":
            self.composed.complete = self.composed.complete and not unknown
            return
        relative = group.lstrip("/").replace("/", ".")
        before = self.composed.complete
        there = self.file(f"{full}/{choice}", package, _plain(explicit) if at else None, relative, depth + 1)
        if not there and "optional" in words:
            self.composed.complete = before  # it may be missing
        elif not there and _is_group(self.settings, self.directory, full):
            place = Place(document.path, value.line, value.column, value.end_column)
            self.composed.missing.append((place, f"{full}/{choice}"))


def _plain(explicit: str) -> str:
    """What follows ``@``: ``a:b`` renames package a to b."""
    name = explicit.split(":")[-1]
    return "" if name == "_here_" else name


def _final(parent: str, package: str) -> str:
    """The place of a file in the configuration: below its parent's, unless ``_global_`` starts afresh."""
    joined = f"{parent}.{package}" if parent and package else parent or package
    return joined.rpartition("_global_")[2].strip(".")


def _merge(document: Document, package: str, composed: Composed) -> None:
    front = tuple(package.split(".")) if package else ()
    todo: list[tuple[tuple[str, ...], Key | None, Node]] = [((), None, document.root)]
    for n in range(1, len(front) + 1):
        composed.keys.setdefault(front[:n], Place(document.path, 1, 1, 2))
    while todo:
        keys, key, node = todo.pop()
        if keys[:1] == ("defaults",) or keys[:1] == ("hydra",):
            continue
        if key is not None:
            composed.keys[(*front, *keys)] = Place(document.path, key.line, key.column, key.column + len(key.name))
        if node.kind == "mapping" and len(keys) < MAX_DEPTH:
            todo += [((*keys, k.name), k, v) for k, v in node.pairs]
    for keys, setting in document.settings.items():
        if keys[:1] not in (("defaults",), ("hydra",)):
            composed.values[(*front, *keys)] = setting


def overrides(words: Sequence[tuple[str, Place]]) -> Iterator[Override]:
    """The overrides among the arguments of a command."""
    for text, place in words:
        found = _OVERRIDE.match(text) if not text.startswith("-") else None
        if found is not None and (found[3] is not None or found[1] == "~"):
            yield Override(found[1] or "", found[2], found[3], place)
