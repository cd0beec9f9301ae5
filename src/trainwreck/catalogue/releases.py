"""What releases of libraries hold: names, signatures, defaults. One table is read when a program imports its package.

The tables are made by ``tools/versions.py``; ``renames.toml`` says what people should write instead, ``torch.toml``
what torch and torchvision deprecated and removed. A version between two releases of a table is only judged where both
agree; an older one than all of them counts as the oldest for what that one has, as lacking what came later.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

from trainwreck.catalogue import specifiers
from trainwreck.catalogue.load import catalogue
from trainwreck.catalogue.specifiers import Version
from trainwreck.core.row import Row

ROOT = Path(__file__).parent / "versions"
TABLES: Mapping[str, str] = {
    "transformers": "transformers",
    "trl": "trl",
    "peft": "peft",
    "accelerate": "accelerate",
    "datasets": "datasets",
    "lightning": "lightning",
    "pytorch_lightning": "lightning",
    "vllm": "vllm",
    "sglang": "sglang",
}
"""The table that answers for an import, by the first part of the import's name."""
BENIGN = frozenset(
    ["object", "ABC", "Generic", "Protocol", "Enum", "str", "dict", "Struct", "PydanticMsgspecMixin", "PushToHubMixin"]
)
"""Bases that take no keywords of their own."""

State = Literal["there", "gone", "not yet", "unknown"]
Bracket = tuple[int, int]
"""The releases of a table on both sides of a version; -1 is older than the table."""


class History(Row):
    """When something was there: ranges of releases, inclusive, oldest first."""

    table: Table
    owner: str
    ranges: Sequence[Sequence[Any]]

    def state(self, at: Bracket) -> State:
        states = {self._at(index) for index in at}
        return states.pop() if len(states) == 1 else "unknown"

    def _at(self, index: int) -> State:
        index = max(index, 0)
        if any(first <= index <= last for first, last, *_ in self.ranges):
            return "there"
        if not self.ranges:
            return "unknown"
        if index > self.ranges[-1][1]:
            return "gone"
        return "not yet" if index < self.ranges[0][0] else "unknown"

    @property
    def last(self) -> str:
        """The last release that has it, as major.minor."""
        return minor(self.table.releases[self.ranges[-1][1]])

    @property
    def first(self) -> str:
        return minor(self.table.releases[self.ranges[0][0]])

    @property
    def gone_by(self) -> str:
        """The first known release without it, "" if the newest has it."""
        after = self.ranges[-1][1] + 1
        return minor(self.table.releases[after]) if after < len(self.table.releases) else ""

    def default(self, at: Bracket) -> str | None:
        """The default as source text, None where it is not known."""
        for first, last, *rest in self.ranges:
            if first <= max(at[0], 0) and at[1] <= last:
                return str(rest[0]) if rest else None
        return None


class Table:
    """The releases of one package."""

    def __init__(self, package: str, data: Mapping[str, Any]) -> None:
        self.package = package
        self.releases: Sequence[str] = data["releases"]
        self.versions: Sequence[Version] = [specifiers.parse(text) for text in self.releases]
        self.names: Mapping[str, Any] = data["names"]
        self.modules: Mapping[str, Any] = data.get("modules", {})
        self.signatures: Mapping[str, Any] = data["signatures"]
        self.requires: Mapping[str, Any] = data.get("requires", {})

    @property
    def newest(self) -> Bracket:
        return len(self.releases) - 1, len(self.releases) - 1

    def bracket(self, version: Version) -> Bracket:
        """The releases around ``version``: one and the same where it is a patch of that release's minor."""
        below = [i for i, known in enumerate(self.versions) if known <= version]
        same = [i for i, known in enumerate(self.versions) if known[:2] == version[:2]]
        if same:
            low = max([i for i in same if self.versions[i] <= version], default=same[0])
            return low, low
        low = below[-1] if below else -1
        return low, min(low + 1, len(self.releases) - 1)

    def allowed(self, specifier: str) -> Sequence[Bracket]:
        """Where the releases lie that ``specifier`` allows, oldest first. Empty where that can't be said."""
        exact = specifiers.exact(specifier)
        if exact is not None:
            return (self.bracket(exact),)
        fitting = [(i, i) for i, known in enumerate(self.versions) if specifiers.allows(specifier, known)]
        if fitting:
            return fitting
        return ((-1, 0),) if specifiers.allows_some_below(specifier, self.versions[0]) else ()

    def name(self, name: str) -> History | None:
        """The history of a public name at the top of the package, None for one that no release has."""
        ranges = self.names.get(name)
        return History(self, "", ranges) if ranges else None

    def module(self, name: str) -> History | None:
        ranges = self.modules.get(name)
        return History(self, "", ranges) if ranges else None

    def signature(self, name: str) -> Mapping[str, Any] | None:
        found: Mapping[str, Any] | None = self.signatures.get(name)
        return found


@cache
def table(package: str) -> Table | None:
    """The table of a package, None if there is none."""
    path = ROOT / f"{package}.json"
    return Table(package, json.loads(path.read_bytes())) if package in TABLES.values() and path.is_file() else None


class Answer(Row):
    """Whether a keyword is taken. ``history`` is that of the nearest class that ever listed it, None if none did."""

    state: State
    history: History | None = None


def parameter(home: Table, owner: str, name: str, at: Mapping[str, Bracket]) -> Answer:
    """Whether class or function ``owner`` takes the keyword ``name`` in the releases ``at`` (a bracket by package).

    "unknown" where a base is not in a table, or where ``**kwargs`` may take anything.
    """
    states: list[State] = []
    history: History | None = None
    for index in sorted(set(at[home.package])):
        seen: set[str] = set()
        state, found = _parameter_at(home, owner, name, max(index, 0), at, seen)
        states.append(state)
        history = history or found
    return Answer(states[0] if len(set(states)) == 1 else "unknown", history)


def _parameter_at(
    home: Table, owner: str, name: str, index: int, at: Mapping[str, Bracket], seen: set[str]
) -> tuple[State, History | None]:
    row = home.signature(owner)
    if owner in seen:
        return "gone", None
    if row is None or not _covers(row["ranges"], index):
        return "unknown", None
    seen.add(owner)
    own = row["parameters"].get(name)
    history = History(home, owner, own) if own else None
    if own and _covers(own, index):
        return "there", history
    states: list[State] = []
    opened = row["open"]
    if opened is True or (isinstance(opened, list) and _covers(opened, index)):
        states.append("unknown")
    for base in _bases(row["bases"], index) if not _covers(row.get("init", ()), index) else ():
        state, found = _base(home, base, name, index, at, seen)
        states.append(state)
        history = history or found
    if "there" in states or "unknown" in states:
        return ("there" if "there" in states else "unknown"), history
    if history is None:
        return "gone", None
    return history.state(at.get(history.table.package, history.table.newest)), history


def _base(
    home: Table, base: str, name: str, index: int, at: Mapping[str, Bracket], seen: set[str]
) -> tuple[State, History | None]:
    base = base.split("[", 1)[0]
    if base in BENIGN:
        return "gone", None
    if home.signature(base) is not None:
        return _parameter_at(home, base, name, index, at, seen)
    other = table("transformers") if home.package == "trl" else None
    if other is None or other.signature(base) is None:
        return "unknown", None
    inner = [_parameter_at(other, base, name, max(i, 0), at, set(seen)) for i in at.get("transformers", other.newest)]
    states = {state for state, _ in inner}
    return (states.pop() if len(states) == 1 else "unknown"), next((h for _, h in inner if h), None)


def _bases(ranges: Sequence[Any], index: int) -> Sequence[str]:
    if ranges and isinstance(ranges[0], str):
        return ranges
    return next((bases for first, last, bases in ranges if first <= index <= last), ())


def _covers(ranges: Sequence[Sequence[Any]], index: int) -> bool:
    return any(first <= index <= last for first, last, *_ in ranges)


def minor(version: str) -> str:
    """``4.46`` for ``4.46.3``."""
    return ".".join(version.split(".")[:2])


class Rename(Row):
    """One entry of ``renames.toml``: which rule speaks of these names, and what to write instead of each.

    ``kind``: argument (of the ``owners``), name (of the package), open (a keyword that ``**kwargs`` took, gone
    ``since``), task (of pipeline), flag (of a command). ``new`` of a name is "" where nothing replaces it.
    """

    rule: str
    package: str
    kind: str
    names: Mapping[str, str]
    owners: Sequence[str] = ()
    pattern: str = ""
    since: str = ""
    instead: str = ""
    safe: bool = False
    said: str = ""

    def fits(self, name: str, owner: str = "") -> bool:
        if self.owners and owner and owner not in self.owners:
            return False
        return name in self.names or bool(self.pattern and re.fullmatch(self.pattern, name))


@cache
def renames() -> Sequence[Rename]:
    """The table of ``renames.toml``."""
    data = catalogue().raw("versions")["renames"]
    return tuple(
        Rename(
            entry["rule"],
            entry["package"],
            entry["kind"],
            entry.get("names", {}),
            tuple(entry.get("owners", ())),
            entry.get("pattern", ""),
            entry.get("since", ""),
            entry.get("instead", ""),
            bool(entry.get("safe", False)),
            entry.get("said", ""),
        )
        for entry in data["rename"]
    )


def rename(package: str, kind: str, name: str, owner: str = "") -> Rename | None:
    """The entry that speaks of ``name``."""
    return next((r for r in renames() if r.package == package and r.kind == kind and r.fits(name, owner)), None)


@cache
def torch_changes() -> Mapping[str, Mapping[str, Any]]:
    """What torch and torchvision deprecated and removed, by full name."""
    data = catalogue().raw("versions")["torch"]
    return {entry["name"]: entry for entry in data["change"]}


def conflicts(home: Table, index: int, other: str) -> Iterator[str]:
    """What release ``index`` demands of the package ``other``."""
    for first, last, demand in home.requires.get(other, ()):
        if first <= index <= last:
            yield str(demand)
