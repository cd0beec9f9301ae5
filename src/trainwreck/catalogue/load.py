"""Load the catalogue: the lines that the build made, or in a checkout a cache keyed by the state of the TOML files."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from trainwreck.catalogue import compile as compiler
from trainwreck.catalogue.model import Mode, Sign, mode_from, sign_from

ROOT = Path(__file__).parent
BUILT = ROOT / "catalogue.tsv"
CODE_PREFIX = "code-"


class Entries(Mapping[str, Any]):
    """The entries of one part, by id. The JSON of an entry is parsed when it is asked for."""

    def __init__(self) -> None:
        self.raw: dict[str, str] = {}
        self._parsed: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._parsed:
            self._parsed[name] = json.loads(self.raw[name])
        return self._parsed[name]

    def __contains__(self, name: object) -> bool:
        return name in self.raw

    def __iter__(self) -> Iterator[str]:
        return iter(self.raw)

    def __len__(self) -> int:
        return len(self.raw)


class Catalogue:
    """Signs, signatures and failure modes by id. Entries become objects only when they are asked for."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = data
        self._modes: dict[str, Mode] = {}
        self._signs: dict[str, Sign] = {}

    @property
    def mode_ids(self) -> Sequence[str]:
        return sorted(self._data["modes"])

    @property
    def sign_ids(self) -> Sequence[str]:
        return sorted(self._data["signs"])

    @property
    def rules(self) -> Mapping[str, Mapping[str, Any]]:
        """Static findings that are no failure mode, by id: ``title``, ``severity``, ``why``, ``fix``."""
        rules: Mapping[str, Mapping[str, Any]] = self._data["rules"]
        return rules

    @property
    def signatures(self) -> Sequence[Mapping[str, Any]]:
        """Error signatures as written: ``sign``, ``contains``, ``pattern``, ``scope``; see docs/catalogue.md."""
        kept = self._data["signatures"]
        signatures: Sequence[Mapping[str, Any]] = kept[""] if isinstance(kept, Entries) else kept
        return signatures

    def mode(self, name: str) -> Mode | None:
        """The failure mode of this id, alias or ``code-`` sign."""
        found = self.resolve(name)
        if found is None or found not in self._data["modes"]:
            return None
        if found not in self._modes:
            self._modes[found] = mode_from(self._data["modes"][found])
        return self._modes[found]

    def modes(self) -> list[Mode]:
        return [mode for name in self.mode_ids if (mode := self.mode(name)) is not None]

    def sign(self, name: str) -> Sign | None:
        """The sign of this id. A ``code-<id>`` sign takes its meaning from the mode or rule that it proves."""
        if name in self._signs:
            return self._signs[name]
        entry = self._data["signs"].get(name)
        if entry is None and name.startswith(CODE_PREFIX):
            owner = name.removeprefix(CODE_PREFIX)
            meant = self._data["modes"].get(owner) or self._data["rules"].get(owner)
            if meant is None:
                return None
            entry = {"id": name, "meaning": f"the code shows it: {meant['title']}", "family": "code", "symptom": False}
        if entry is None:
            return None
        self._signs[name] = sign_from(entry)
        return self._signs[name]

    def resolve(self, name: str) -> str | None:
        """The id for an id, an alias, an underscore spelling or a ``code-`` sign; None if unknown."""
        key = name.strip().lower().replace("_", "-")
        if key in self._data["modes"] or key in self._data["signs"] or key in self._data["rules"]:
            return key
        if key in self.aliases:
            return self.aliases[key]
        if key.startswith(CODE_PREFIX):
            return self.resolve(key.removeprefix(CODE_PREFIX))
        return None

    @cached_property
    def aliases(self) -> Mapping[str, str]:
        kept = self._data.get("aliases")
        names: Mapping[str, str] = kept[""] if kept is not None else compiler.aliases(self._data)
        return names

    @cached_property
    def modes_by_sign(self) -> Mapping[str, Sequence[str]]:
        """For each sign, the modes that speak of it."""
        table: dict[str, list[str]] = {}
        for name in self.mode_ids:
            for entry in self._data["modes"][name].get("signs", ()):
                table.setdefault(entry["sign"], []).append(name)
        return table

    def raw(self, part: str) -> Mapping[str, Any]:
        """One part as plain data, for the search index."""
        data: Mapping[str, Any] = self._data[part]
        return data


@cache
def catalogue() -> Catalogue:
    """The catalogue of this installation, loaded once."""
    return Catalogue(_data())


def _data() -> dict[str, Entries]:
    if not (ROOT / "modes").is_dir():
        return read(BUILT.read_text(encoding="ascii"))
    cached = cache_directory() / f"catalogue-{compiler.fingerprint(ROOT)}.tsv"
    with contextlib.suppress(OSError, ValueError, KeyError):
        return read(cached.read_text(encoding="ascii"))
    text = compiler.lines(compiler.compile_tree(ROOT))
    with contextlib.suppress(OSError):
        _write_atomically(cached, text)
    return read(text)


def read(text: str) -> dict[str, Entries]:
    """What ``compile.lines`` wrote. Raises ValueError or KeyError where a line is none of it, or the end is missing."""
    data = {part: Entries() for part in (*compiler.PARTS, *compiler.TABLES, "needs", "aliases")}
    for line in text.split("\n"):
        part, name, entry = line.split("\t")
        data[part].raw[name] = entry
    if not data["aliases"].raw or not text.endswith("}"):
        raise ValueError("the file was cut off")
    return data


def cache_directory() -> Path:
    """Where caches live: never in a project."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "trainwreck"


def _write_atomically(path: Path, text: str) -> None:
    import tempfile  # an installed catalogue is never written

    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    with os.fdopen(handle, "w", encoding="ascii") as stream:
        stream.write(text)
    os.replace(name, path)
