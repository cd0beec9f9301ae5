"""Compile the TOML files of the catalogue to one file, of which an entry is read when it is asked for.

Standard library only: the build hook runs this file by path, before the package is installed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

PARTS = ("signs", "signatures", "modes", "rules")
TABLES = ("arguments", "tables", "versions")
"""Folders of small tables; each of their files is one entry of the part of that name."""


class CatalogueError(Exception):
    """A catalogue file is wrong; the message names the file, the entry and what to change."""


def files(root: Path) -> list[Path]:
    """Every TOML file of the catalogue under ``root``, in a stable order."""
    return sorted(p for part in (*PARTS, *TABLES) for p in (root / part).rglob("*.toml"))


def fingerprint(root: Path) -> str:
    """Names the state of the catalogue under ``root`` and of this file (see ``stamp``)."""
    own = Path(__file__).stat().st_mtime_ns
    state = stamp([root / part for part in (*PARTS, *TABLES)], (".toml",))
    return hashlib.sha256(f"{own} {state}".encode()).hexdigest()[:24]


def stamp(roots: Iterable[Path], endings: tuple[str, ...]) -> str:
    """A hash over paths, sizes and times of the files below ``roots``: a cache is never older than they are.

    To read 600 files takes 12 ms at every start, their times take 3 ms.
    """
    digest = hashlib.sha256()
    todo = [str(root) for root in roots if root.is_dir()]
    while todo:
        with os.scandir(todo.pop()) as entries:
            for entry in sorted(entries, key=lambda e: e.name):
                if entry.is_dir(follow_symlinks=False):
                    todo += [entry.path] * (entry.name != "__pycache__")
                elif entry.name.endswith(endings):
                    status = entry.stat()
                    digest.update(f"{entry.path}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    return digest.hexdigest()


def compile_tree(root: Path) -> dict[str, Any]:
    """The whole catalogue: ``{"signs", "needs", "modes", "rules"}`` by id, the list of ``"signatures"``, and the tables
    of each folder by name.

    Raises CatalogueError for a file that is no TOML, an entry without id, or an id given twice.
    """
    import tomllib  # a compiled catalogue does without

    result: dict[str, Any] = {"signs": {}, "needs": {}, "signatures": [], "modes": {}, "rules": {}}
    result |= {part: {} for part in TABLES}
    for path in files(root):
        where = path.relative_to(root).as_posix()
        try:
            data = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
            raise CatalogueError(f"{where}: no valid TOML: {problem}") from problem
        part = where.split("/", 1)[0]
        family = path.stem if part in ("signs", "signatures") else path.parent.name
        if part in TABLES:
            result[part][path.stem] = data
        elif part == "modes":
            _add(result["modes"], {"family": family, **data}, where)
            if data.get("id") != path.stem:
                raise CatalogueError(f"{where}: the id {data.get('id')!r} differs from the file name")
        elif part == "rules":
            for entry in data.get("rule", []):
                _add(result["rules"], {"family": path.stem, **entry}, where)
        elif part == "signs":
            for entry in data.get("sign", []):
                _add(result["signs"], {"family": family, **entry}, where)
            for entry in data.get("need", []):
                _add(result["needs"], entry, where)
        else:
            result["signatures"] += [{"family": family, **entry} for entry in data.get("signature", [])]
    return result


def _add(table: dict[str, Any], entry: dict[str, Any], where: str) -> None:
    name = entry.get("id")
    if not isinstance(name, str):
        raise CatalogueError(f"{where}: an entry has no id")
    if name in table:
        raise CatalogueError(f"{where}: the id {name!r} is given twice")
    table[name] = entry


def lines(data: dict[str, Any]) -> str:
    """A compiled catalogue as one line an entry: its part, its id and its JSON, with tabs between (JSON holds none).

    A catalogue of 1.5 MB takes 20 ms to be parsed, and a look at one script needs some ten entries of it."""
    rows = []
    for part, entries in data.items():
        items = entries.items() if isinstance(entries, dict) else [("", entries)]
        for name, entry in items:
            rows.append(f"{part}\t{name}\t{json.dumps(entry, ensure_ascii=True, separators=(',', ':'))}")
    return "\n".join([*rows, f"aliases\t\t{json.dumps(aliases(data))}"])


def aliases(data: Mapping[str, Any]) -> dict[str, str]:
    """The id for each other name of a sign, mode or rule."""
    return {
        alias.lower().replace("_", "-"): name
        for part in ("signs", "modes", "rules")
        for name, entry in data[part].items()
        for alias in entry.get("aliases", ())
    }


def write(root: Path, target: Path) -> None:
    """Compile ``root`` and write the lines to ``target``."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(lines(compile_tree(root)), encoding="ascii")
