"""Sources become a ``Program``: Python files and notebooks, parsed and never run."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Sequence
from typing import Any

from trainwreck.core.program import Module, Program
from trainwreck.core.source import Source

MAX_BYTES = 5 << 20
"""A larger Python file is generated; it costs seconds and holds nothing that a person wrote."""
MAX_INDENT = 400
"""Columns of indentation beyond which the parser's own recursion is at risk."""

_MAGIC = re.compile(r"^\s*(?:[%!]|\?)|^\s*\w+\?{1,2}\s*$")


def build(sources: Sequence[Source]) -> Program:
    """The program that the Python sources (and notebooks) among ``sources`` make up. Never raises."""
    modules: dict[str, Module] = {}
    problems: list[tuple[str, str]] = []
    for source in sources:
        base = source.basename
        if not base.endswith((".py", ".pyw", ".ipynb")):
            continue
        if source.size is not None and source.size > MAX_BYTES:
            problems.append((source.name, f"is larger than {MAX_BYTES >> 20} MB and was left out"))
            continue
        try:
            text = source.text()
        except (OSError, EOFError, ValueError) as problem:
            problems.append((source.name, f"could not be read ({type(problem).__name__}); check the file"))
            continue
        cells: Sequence[int] | None = None
        if base.endswith(".ipynb"):
            joined = _notebook(text)
            if joined is None:
                problems.append((source.name, "is no valid notebook (JSON with code cells expected)"))
                continue
            text, cells = joined
        module = parse(source.name, text, cells)
        if isinstance(module, str):
            problems.append((source.name, module))
        else:
            modules[source.name] = module
    return Program(modules, problems)


def parse(name: str, text: str, cells: Sequence[int] | None = None) -> Module | str:
    """The module, or one sentence saying why there is none."""
    text = text.replace("\x00", "").replace("\r\n", "\n").replace("\r", "\n")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text, filename=name)
    except SyntaxError as problem:
        line = problem.lineno or 1
        return f"line {line} is no valid Python ({problem.msg})"
    except (RecursionError, MemoryError):
        return "is nested too deeply to be parsed"
    except ValueError as problem:
        return f"is no valid Python ({problem})"
    return Module(name, text, tree, tuple(text.split("\n")), cells)


def _notebook(text: str) -> tuple[str, Sequence[int]] | None:
    """Code cells joined, magics commented out, and the first line of each cell."""
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    found = data.get("cells") if isinstance(data, dict) else None
    if not isinstance(found, list):
        return None
    lines: list[str] = []
    starts: list[int] = []
    for cell in found:
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        content = cell.get("source", "")
        content = "".join(map(str, content)) if isinstance(content, list) else str(content)
        starts.append(len(lines) + 1)
        body = content.split("\n")
        if body and body[0].lstrip().startswith("%%"):
            python = body[0].lstrip().split()[0] in ("%%time", "%%timeit", "%%capture")
            body = [f"# {body[0]}", *(line if python else f"# {line}" for line in body[1:])]
        lines += [_plain(line) for line in body]
    return "\n".join(lines), starts


def _plain(line: str) -> str:
    """A shell or magic line of a notebook as ``pass``, so that the block around it stays valid."""
    if not _MAGIC.match(line):
        return line
    indent = line[: len(line) - len(line.lstrip())]
    return f"{indent}pass  # {line.strip()}"
