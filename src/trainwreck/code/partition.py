"""Which files belong together: a folder of scripts is many programs, and each is looked at by itself.

Files are one program where one imports the other, or where a configuration or a launch script names it. That keeps the
seed or the launcher of one script from answering for its neighbour, bounds memory, and lets an unchanged program keep
its answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from trainwreck.code.beside import KINDS
from trainwreck.code.notebook import joined
from trainwreck.code.pattern import pattern
from trainwreck.code.read import MAX_BYTES as LARGEST
from trainwreck.core.program import Problem
from trainwreck.core.source import Source

MAX_BYTES = 3 << 19
"""Source text of one program, about 38,000 lines: they take some 100 MB and 3 s. A larger one is cut by folders."""
PYTHON = (".py", ".pyw", ".ipynb")

_IMPORT = pattern(
    r"^[ \t]*(?:from[ \t]+(\.*[\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n#;]*)|import[ \t]+([\w., \t]+))",
    re.MULTILINE,
)
_DYNAMIC = pattern(r"import_module\(|__import__\(|iter_modules\(|walk_packages\(")
_FILE = pattern(r"[\w.-]+\.(?:py|ipynb|ya?ml|json|toml|sh|slurm|sbatch)\b")
_DOTTED = pattern(r"(?:-m[ \t]+|_target_:[ \t]*[\"']?|class_path:[ \t]*[\"']?)([A-Za-z_]\w*(?:\.\w+)*)")
_HYDRA = pattern(r"config_path\s*=\s*[\"']([^\"']*)[\"']")
_ABOUT_TRAINING = pattern(
    r"learning_rate|\blr\b|batch|epoch|optimi[sz]er|model|deepspeed|accelerate|zero_opt|seed|train|precision|torchrun"
)
_INSTALLS = pattern(r"\b(?:pip3?|conda|mamba|uv|poetry)\b.{0,40}\b(?:install|add)\b")


def programs(sources: Sequence[Source]) -> list[list[Source]]:
    """The sources of each program, in the order of the files. What pins packages stands in every one of them."""
    modules = {s.name: _text(s) for s in sources if s.basename.endswith(PYTHON)}
    others = {s.name: _text(s) for s in sources if s.name not in modules}
    pins = {name for name, text in others.items() if _pins(name, text)}
    if not modules:
        return [list(sources)] if sources else []
    links = _Links([*modules, *(name for name in others if name not in pins)])
    _imports(modules, links)
    _mentions(modules, {name: text for name, text in others.items() if name not in pins}, links)
    groups = links.groups()
    parts = [part for group in groups for part in _cut(group, {**modules, **others})]
    by_name = {s.name: s for s in sources}
    return [[by_name[n] for n in by_name if n in wanted] for part in parts if (wanted := {*part, *pins})]


class _Links:
    """Sets of files that grow together."""

    def __init__(self, names: Iterable[str]) -> None:
        self.above = {name: name for name in names}
        self.ends: dict[str, list[str]] = {}
        for name in self.above:
            stem = _stem(name)
            parts = stem.split("/")
            for start in range(len(parts)):
                self.ends.setdefault("/".join(parts[start:]), []).append(name)

    def top(self, name: str) -> str:
        while self.above[name] != name:
            self.above[name] = self.above[self.above[name]]
            name = self.above[name]
        return name

    def join(self, one: str, other: str) -> None:
        self.above[self.top(other)] = self.top(one)

    def nearest(self, end: str, seen_from: str) -> str | None:
        """The file whose path ends like this, the one that shares most folders with the file that names it."""
        found = [name for name in self.ends.get(end, ()) if name != seen_from]
        return max(found, key=lambda name: _shared(name, seen_from)) if found else None

    def groups(self) -> list[list[str]]:
        table: dict[str, list[str]] = {}
        for name in self.above:
            table.setdefault(self.top(name), []).append(name)
        return list(table.values())


def _text(source: Source) -> str:
    if source.size is not None and source.size > LARGEST:
        return ""  # told to be too large elsewhere
    try:
        text = source.text(LARGEST)
    except (OSError, EOFError, ValueError):
        return ""
    if not source.basename.endswith(".ipynb"):
        return text
    cells = joined(source.name, text)
    return "" if isinstance(cells, Problem) else cells[0]


def _stem(name: str) -> str:
    """A module's path as an import spells it; any other file's whole path."""
    for suffix in ("/__init__.py", ".pyw", ".py", ".ipynb"):
        if name.endswith(suffix):
            return name.removesuffix(suffix)
    return name


def _shared(one: str, other: str) -> int:
    count = 0
    for a, b in zip(one.split("/")[:-1], other.split("/")[:-1], strict=False):
        if a != b:
            break
        count += 1
    return count


def _pins(name: str, text: str) -> bool:
    tail = "/".join(name.lower().split("/")[-2:])
    if any(KINDS[kind](tail) for kind in ("requirements", "lock", "toml", "environment")):
        return True
    return KINDS["shell"](tail) and bool(_INSTALLS.search(text))


def _imports(modules: dict[str, str], links: _Links) -> None:
    for name, text in modules.items():
        for dotted in _imported(text):
            found = _resolved(dotted, name, links)
            if found is not None:
                links.join(name, found)
        if _DYNAMIC.search(text):
            # What is loaded by a name that is computed lies below as a rule.
            folder = name.rpartition("/")[0]
            for other in modules:
                if folder and other.startswith(folder + "/"):
                    links.join(name, other)


def _imported(text: str) -> Iterator[str]:
    for match in _IMPORT.finditer(text):
        base, what, plain = match.groups()
        if plain is not None:
            yield from (part.split(" as ")[0].strip() for part in plain.split(","))
            continue
        yield base
        if what is not None:
            for part in re.sub(r"[()\\\n]|#[^\n]*", " ", what).split(","):
                words = part.split()
                if words:
                    yield f"{base}{'' if base.endswith('.') else '.'}{words[0]}"


def _resolved(dotted: str, name: str, links: _Links) -> str | None:
    level = len(dotted) - len(dotted.lstrip("."))
    path = dotted.lstrip(".").replace(".", "/")
    if not path:
        return None
    if level:
        folders = name.split("/")[:-1]
        base = folders[: len(folders) - level + 1]
        exact = "/".join([*base, path])
        if exact in links.ends:
            return links.nearest(exact, name)
    return links.nearest(path, name)


def _mentions(modules: dict[str, str], others: dict[str, str], links: _Links) -> None:
    """Configurations and launch scripts go with what they name and what names them; else with what is near."""
    if not others:
        return
    by_base: dict[str, list[str]] = {}
    for name in (*modules, *others):
        by_base.setdefault(name.rsplit("/", 1)[-1], []).append(name)
    tied: set[str] = set()
    for name, text in (*modules.items(), *others.items()):
        named = {base for base in _FILE.findall(text) if base in by_base and base != name.rsplit("/", 1)[-1]}
        found = [max(by_base[base], key=lambda other: _shared(other, name)) for base in sorted(named)]
        if name in others:
            found += [f for d in _DOTTED.findall(text) if (f := _target(d, name, links)) is not None]
        else:
            found = [other for other in found if other in others]
        if "hydra" in text:
            found += _hydra(name, text, others)
        for other in found:
            links.join(name, other)
            tied |= {name, other}
    whole = sum(map(len, modules.values()))
    for name, text in others.items():
        if name in tied or whole > MAX_BYTES or _hidden(name) or not _ABOUT_TRAINING.search(text):
            continue
        folder = name.rpartition("/")[0]
        while folder and not any(m.startswith(folder + "/") for m in modules):
            folder = folder.rpartition("/")[0]
        for other in modules:
            if not folder or other.startswith(folder + "/"):
                links.join(name, other)


def _target(dotted: str, name: str, links: _Links) -> str | None:
    """The module of ``package.module`` or ``package.module.Class``."""
    return _resolved(dotted, name, links) or _resolved(dotted.rpartition(".")[0], name, links)


def _hydra(name: str, text: str, others: dict[str, str]) -> list[str]:
    folder = name.rpartition("/")[0]
    found: list[str] = []
    for given in _HYDRA.findall(text):
        last = given.rstrip("/").rsplit("/", 1)[-1]
        found += [o for o in others if f"/{last}/" in f"/{o}" and _shared(o, name) >= folder.count("/")]
    return found


def _hidden(name: str) -> bool:
    return any(part.startswith(".") and part != ".." for part in name.split("/"))


def _cut(group: list[str], texts: dict[str, str]) -> list[list[str]]:
    """The group whole, or where it is too large the folders of it, small neighbours together."""
    if sum(len(texts[name]) for name in group) <= MAX_BYTES or len(group) == 1:
        return [group]
    depth = min(_shared(name, group[0]) for name in group)
    table: dict[str, list[str]] = {}
    for name in sorted(group):
        parts = name.split("/")
        # a folder's own files come one by one, so that they can fill up its neighbours
        table.setdefault("/".join(parts[: depth + 1]), []).append(name)
    pieces = [piece for part in table.values() for piece in _cut(part, texts)]
    merged: list[list[str]] = []
    size = MAX_BYTES + 1
    for piece in pieces:
        own = sum(len(texts[name]) for name in piece)
        if size + own <= MAX_BYTES:
            merged[-1] += piece
            size += own
        else:
            merged.append(list(piece))
            size = own
    return merged
