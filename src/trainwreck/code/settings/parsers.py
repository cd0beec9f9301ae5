"""What a program takes from its command line: the options of argparse, HfArgumentParser, click and tyro."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from trainwreck.code.project import Project
from trainwreck.code.scopes import Scope
from trainwreck.code.settings.tree import UNKNOWN
from trainwreck.core.row import Row

Takes = Literal["nothing", "maybe", "one", "many", "unknown"]


class Option(Row):
    """One option: ``names`` as written (``--lr``, ``-l``), ``dest`` the attribute. ``type`` is int, float, str, bool or
    "" for anything else; ``choices`` None where any value goes; ``default`` UNKNOWN where it can't be told."""

    names: tuple[str, ...]
    dest: str
    node: ast.AST
    scope: Scope
    type: str = ""
    choices: tuple[Any, ...] | None = None
    takes: Takes = "one"
    required: bool = False
    default: Any = UNKNOWN
    positional: bool = False


class Library(Row):
    """A dataclass of a library whose fields are options: the table and the class in it."""

    package: str
    owner: str


@dataclass(frozen=True, eq=False)
class Parser:
    """The options of one script. ``closed``: what is not listed is refused, so that the program ends at once.

    ``libraries`` are classes whose fields are options too; they change with the release. ``prefixes``: an unambiguous
    beginning of an option is taken for it.
    """

    kind: Literal["argparse", "hf", "trl", "click", "tyro"]
    path: str
    node: ast.AST
    scope: Scope
    options: Sequence[Option]
    closed: bool
    libraries: Sequence[Library] = ()
    prefixes: bool = True
    by_name: Mapping[str, Option] = field(default_factory=dict, repr=False)
    namespaces: Sequence[tuple[str, Scope]] = field(default=(), repr=False)
    """The variables that hold what was parsed (argparse)."""
    defaults: frozenset[str] = frozenset()
    """Names that ``set_defaults`` adds."""

    def option(self, written: str) -> Option | None:
        """The option that is written like this, exactly."""
        return self.by_name.get(written)

    def beginning(self, written: str) -> list[str]:
        """Names of options that begin with what is written."""
        return [name for name in self.by_name if name.startswith(written)] if self.prefixes else []

    def dest(self, name: str) -> Option | None:
        return next((o for o in self.options if o.dest == name), None)


def made(
    kind: Literal["argparse", "hf", "trl", "click", "tyro"],
    node: ast.AST,
    scope: Scope,
    options: Sequence[Option],
    closed: bool,
    libraries: Sequence[Library] = (),
    prefixes: bool = True,
    namespaces: Sequence[tuple[str, Scope]] = (),
    defaults: frozenset[str] = frozenset(),
) -> Parser:
    table = {name: option for option in options for name in option.names}
    path = scope.module.path
    return Parser(kind, path, node, scope, options, closed, libraries, prefixes, table, namespaces, defaults)


def parser_of(project: Project, path: str) -> Parser | None:
    """The parser of the command line of the script ``path``; None where there is none, or more than one."""
    key = f"parser of {path}"
    if key not in project.memo:
        project.memo[key] = _find(project, path)
    found: Parser | None = project.memo[key]
    return found


def _find(project: Project, path: str) -> Parser | None:
    from trainwreck.code.settings import argparse_model, click_model, dataclass_model

    if path not in project.walked:
        return None
    for way in (dataclass_model.find, argparse_model.find, click_model.find):
        found = way(project, path)
        if found is not None:
            return found
    return None


def reached_modules(project: Project, path: str) -> set[str]:
    """The script and the modules of the project whose functions or classes it calls by name."""
    key = f"reached from {path}"
    if key not in project.memo:
        found = {path}
        for node, scope in project.walked[path].calls:
            target = project.resolve(node.func, scope) if isinstance(node.func, ast.Name | ast.Attribute) else None
            if target is not None:
                found.add(target.module.path)
        project.memo[key] = found
    reached: set[str] = project.memo[key]
    return reached
