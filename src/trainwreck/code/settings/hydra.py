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

from trainwreck.code.project import Project
from trainwreck.code.scopes import Scope
from trainwreck.code.settings.index import Settings, of
from trainwreck.code.settings.tree import Document, Key, Node, Place, Setting

MAX_FILES = 200
MAX_DEPTH = 12
_PACKAGE = re.compile(r"^#\s*@package\s+(\S+)", re.MULTILINE)
_OVERRIDE = re.compile(r"(\+\+|\+|~)?([A-Za-z_][\w/]*(?:@[\w.:]+)?(?:\.[\w]+)*)(?:=(.*))?$", re.DOTALL)


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
    _file(settings, directory, main.name.removesuffix(".yaml"), "", composed, chosen, 0)
    for override in choices:
        if override.sign in ("+", "++") and _is_group(settings, directory, override.key.partition("@")[0]):
            _group(settings, directory, override.key.partition("@")[0], override.value or "", composed, chosen, None)
    return composed


def _stores(project: Project) -> bool:
    return "ConfigStore" in project.calls_by_name or "store" in project.calls_by_name


def _is_group(settings: Settings, directory: str, name: str) -> bool:
    start = f"{directory}/{name}/" if directory else f"{name}/"
    return any(p.startswith(start) for p in settings.paths)


def is_group(project: Project, main: Main, name: str) -> bool:
    directory = directory_of(of(project), main)
    return directory is not None and _is_group(of(project), directory, name)


def _file(
    settings: Settings,
    directory: str,
    name: str,
    package: str,
    composed: Composed,
    chosen: dict[str, str],
    depth: int,
) -> bool:
    """Merge one file with its defaults. False where it is not there."""
    path = f"{directory}/{name}.yaml" if directory else f"{name}.yaml"
    document = settings.document(path)
    if document is None and path not in settings.paths:
        return False
    composed.files += 1
    if document is None or depth > MAX_DEPTH or composed.files > MAX_FILES:
        composed.complete = False
        return True
    header = _PACKAGE.search(settings.text(path)[:2000])
    if header is not None:
        package = {"_global_": "", "_group_": package}.get(header[1], header[1])
    folder = name.rpartition("/")[0]
    entries = next((v for k, v in document.root.pairs if k.name == "defaults"), None)
    own_first = True
    merged = False
    for entry in entries.items if entries is not None else ():
        if entry.kind == "scalar" and entry.text == "_self_":
            _merge(document, package, composed)
            merged = True
            continue
        own_first = False
        _default(settings, directory, folder, document, entry, package, composed, chosen, depth)
    del own_first
    if not merged:
        _merge(document, package, composed)
    return True


def _default(
    settings: Settings,
    directory: str,
    folder: str,
    document: Document,
    entry: Node,
    package: str,
    composed: Composed,
    chosen: dict[str, str],
    depth: int,
) -> None:
    place = Place(document.path, entry.line, entry.column, entry.end_column)
    if entry.kind == "scalar":
        name = entry.text.partition("@")[0]
        target = name.lstrip("/") if name.startswith("/") else f"{folder}/{name}" if folder else name
        inner = package if "@" not in entry.text else _package(entry.text, package)
        if not _file(settings, directory, target.removesuffix(".yaml"), inner, composed, chosen, depth + 1):
            composed.complete = False
            if "${" not in entry.text and not name.startswith("hydra"):
                composed.missing.append((place, target))
        return
    for key, value in entry.pairs:
        words = key.name.split()
        group = words[-1].partition("@")[0].lstrip("/")
        optional = "optional" in words
        full = group if words[-1].startswith("/") or not folder else f"{folder}/{group}"
        choice = chosen.get(full, value.text if value.value is not None else "")
        composed.groups.add(full)
        if value.kind == "sequence":
            composed.complete = False
            continue
        if full.startswith("hydra") or "override" in words:
            if "override" in words and not full.startswith("hydra"):
                composed.complete = False
            continue
        if not choice or choice in ("null", "???") or "${" in choice:
            composed.complete = composed.complete and choice not in ("???",) and "${" not in choice
            continue
        outer = _package(words[-1], package) if "@" in words[-1] else None
        spot = Place(document.path, value.line, value.column, value.end_column)
        _group(settings, directory, full, choice, composed, chosen, None if optional else spot, outer, package, depth)


def _group(
    settings: Settings,
    directory: str,
    group: str,
    choice: str,
    composed: Composed,
    chosen: dict[str, str],
    place: Place | None,
    package: str | None = None,
    above: str = "",
    depth: int = 0,
) -> None:
    inner = group.replace("/", ".") if package is None else package
    if above and package is None and not inner.startswith(above):
        inner = f"{above}.{inner}" if not group.startswith(above.replace(".", "/")) else inner
    if not _file(settings, directory, f"{group}/{choice.removesuffix('.yaml')}", inner, composed, chosen, depth + 1):
        composed.complete = False
        if place is not None and _is_group(settings, directory, group):
            composed.missing.append((place, f"{group}/{choice}"))


def _package(written: str, above: str) -> str:
    name = written.partition("@")[2].split(":")[-1]
    if name in ("_global_", ""):
        return ""
    if name == "_here_":
        return above
    return name.removeprefix("_global_.") if name.startswith("_global_") else f"{above}.{name}" if above else name


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
