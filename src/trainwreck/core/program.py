"""A program as read, never run: its files, their syntax trees, and what the names in them stand for."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Module:
    """One Python file (or notebook, cells joined). ``cells`` gives the first line of each cell, None for a script."""

    path: str
    text: str
    tree: ast.Module = field(repr=False)
    lines: Sequence[str] = field(repr=False)
    cells: Sequence[int] | None = None


@dataclass(frozen=True)
class Program:
    """All modules that were read, by relative posix path. ``problems`` are files that are no valid Python."""

    modules: Mapping[str, Module]
    problems: Sequence[tuple[str, str]] = ()
