"""A program as read, never run: its files, their syntax trees, and what the names in them stand for."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import field

from trainwreck.core.frozen import Frozen
from trainwreck.core.row import Row
from trainwreck.core.source import Source


class Module(Frozen):
    """One Python file (or notebook, cells joined). ``cells`` gives the first line of each cell, None for a script."""

    path: str
    text: str
    tree: ast.Module = field(repr=False)
    lines: Sequence[str] = field(repr=False)
    cells: Sequence[int] | None = None


class Problem(Row):
    """Why a file, or a part of it, was not analysed. ``syntax`` is True where the language itself refuses it, False
    where it could not be read or was left out."""

    path: str
    reason: str
    line: int | None = None
    column: int | None = None
    cell: int | None = None
    syntax: bool = False


class Program(Row):
    """All modules that were read, by relative posix path, and what could not be read.

    ``others`` are what stood beside them: requirements, lock files, configurations, scripts; read when asked for.
    """

    modules: Mapping[str, Module]
    problems: Sequence[Problem] = ()
    others: Sequence[Source] = ()
