"""Arguments of libraries that contradict one another, as data: one table for Python, YAML, JSON and shell.

An entry of ``contradictions.toml`` holds for a group of classes (``[[group]]``: their names, spellings that mean the
same argument, defaults) when every condition of it holds:

``{key, is}`` equal (a list: one of them); ``{key, unlike}`` known and none of these; ``{key, given = true|false}``
written or not written; ``{key, differs_from}``, ``{key, no_multiple_of}`` another argument; ``{key, above}``,
``{key, below}`` a number, or ``above_key`` another argument. A value that is not known never fulfils a condition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from trainwreck.catalogue.load import catalogue
from trainwreck.core.row import Row

UNKNOWN = object()
"""The value of an argument that is written and can't be told."""
ABSENT = object()
"""The value of an argument that is not written and has no known default."""


@dataclass(frozen=True)
class Group:
    """Classes whose arguments mean the same. ``names``: the constructors."""

    id: str
    package: str
    names: Sequence[str]
    aliases: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    own: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Defaults of one of the classes that differ."""


class Contradiction(Row):
    """One entry. ``place``: the arguments to point at, the first that is written; ``since``/``until`` releases."""

    id: str
    group: str
    conditions: Sequence[Mapping[str, Any]]
    says: str
    place: Sequence[str]
    fix: str = ""
    severity: str = ""
    classes: Sequence[str] = ()
    since: str = ""
    until: str = ""


@cache
def _data() -> Mapping[str, Any]:
    table: Mapping[str, Any] = catalogue().raw("arguments")["contradictions"]
    return table


@cache
def groups() -> Mapping[str, Group]:
    """All groups by id."""
    return {entry["id"]: Group(**entry) for entry in _data()["group"]}


@cache
def contradictions() -> Sequence[Contradiction]:
    """All entries, in the order of the file."""
    return tuple(Contradiction(**entry) for entry in _data()["contradiction"])


def holds(entry: Contradiction, owner: str, given: Mapping[str, Any], *, closed: bool) -> bool:
    """True if all conditions of ``entry`` hold for an ``owner`` that is given these arguments.

    ``given``: values by name, UNKNOWN where one can't be told. ``closed``: nothing else is given.
    """
    group = groups()[entry.group]
    if owner not in group.names or (entry.classes and owner not in entry.classes):
        return False
    named = {group.aliases.get(name, name): value for name, value in given.items()}
    return all(_fulfilled(group, owner, named, closed, condition) for condition in entry.conditions)


def value_of(group: Group, owner: str, named: Mapping[str, Any], closed: bool, key: str) -> Any:
    """What an argument is: as given, else its default, UNKNOWN where either can't be told."""
    if key in named:
        return named[key]
    if not closed:
        return UNKNOWN
    return group.own.get(owner, {}).get(key, group.defaults.get(key, ABSENT))


def _fulfilled(group: Group, owner: str, named: Mapping[str, Any], closed: bool, condition: Mapping[str, Any]) -> bool:
    key = condition["key"]
    if "given" in condition:
        return (key in named) if condition["given"] else (key not in named and closed)
    value = value_of(group, owner, named, closed, key)
    if value is UNKNOWN or value is ABSENT:
        return False
    other = next((condition[w] for w in ("differs_from", "no_multiple_of", "above_key") if w in condition), None)
    if other is not None:
        return _compared(condition, value, value_of(group, owner, named, closed, other))
    if "is" in condition:
        return _among(value, condition["is"])
    if "unlike" in condition:
        return not _among(value, condition["unlike"])
    if not _numeric(value):
        return False
    if "above" in condition:
        return bool(value > condition["above"])
    return bool(value < condition["below"])


def _compared(condition: Mapping[str, Any], value: Any, other: Any) -> bool:
    if other is UNKNOWN or other is ABSENT or other is None:
        return False
    if "differs_from" in condition:
        return bool(value != other)
    if not _numeric(value) or not _numeric(other):
        return False
    if "above_key" in condition:
        return bool(value > other)
    return bool(other >= 1 and value >= 1 and value % other != 0)


def _among(value: Any, wanted: Any) -> bool:
    choices = wanted if isinstance(wanted, list) else [wanted]
    return any(type(value) is type(choice) and value == choice for choice in choices) or (
        _numeric(value) and any(_numeric(c) and c == value for c in choices)
    )


def _numeric(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
