"""Sources become a ``Program``: Python files and notebooks, parsed and never run."""

from __future__ import annotations

import ast
import codecs
import re
import warnings
from bisect import bisect_right
from collections.abc import Sequence

from trainwreck.code.notebook import joined
from trainwreck.core.program import Module, Problem, Program
from trainwreck.core.source import Source, guess_encoding

MAX_BYTES = 5 << 20
"""A larger Python file is generated; it costs seconds and holds nothing that a person wrote."""
MAX_BROKEN_CELLS = 20
"""Cells of one notebook that may be no Python before the rest is given up: each costs another parse."""

_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")


def build(sources: Sequence[Source]) -> Program:
    """The program that the Python sources (and notebooks) among ``sources`` make up. Never raises."""
    modules: dict[str, Module] = {}
    problems: list[Problem] = []
    for source in sources:
        if not source.basename.endswith((".py", ".pyw", ".ipynb")):
            continue
        module = _read(source, problems)
        if module is not None:
            modules[source.name] = module
    others = [source for source in sources if not source.basename.endswith((".py", ".pyw", ".ipynb"))]
    return Program(modules, problems, others)


def _read(source: Source, problems: list[Problem]) -> Module | None:
    name = source.name
    too_large = Problem(name, f"is larger than {MAX_BYTES >> 20} MB and was left out")
    if source.size is not None and source.size > MAX_BYTES:
        problems.append(too_large)
        return None
    try:
        with source.open() as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, EOFError, ValueError) as problem:
        problems.append(Problem(name, f"could not be read ({type(problem).__name__}); check the file"))
        return None
    if len(data) > MAX_BYTES:
        problems.append(too_large)
        return None
    if source.basename.endswith(".ipynb"):
        notebook = joined(name, data.decode(guess_encoding(data), "replace").lstrip("\ufeff"))
        if isinstance(notebook, Problem):
            problems.append(notebook)
            return None
        return _parse_cells(name, *notebook, problems) if notebook[1] else None
    text, odd = decoded(name, data)
    module = parse(name, text)
    if isinstance(module, Problem):
        problems.append(odd or module)
        return None
    problems += [odd] if odd else []
    return module


def decoded(name: str, data: bytes) -> tuple[str, Problem | None]:
    """The text of a Python file as the interpreter reads it (PEP 263), and what the interpreter would object to."""
    guessed = guess_encoding(data)
    if guessed != "utf-8" and not data.startswith(codecs.BOM_UTF8):
        text = data.decode(guessed, "replace").lstrip("\ufeff")
        told = f"is written in {guessed[:6].upper()}, which Python does not run; save it as UTF-8"
        return text, Problem(name, told, 1, 1, syntax=True)
    data = data.removeprefix(codecs.BOM_UTF8)
    declared = declared_encoding(data)
    try:
        return data.decode(declared), None
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        told = f"byte 0x{data[problem.start]:02x} is no {declared.upper()}; save it as UTF-8 or declare its encoding"
        return data.decode(declared, "replace"), Problem(name, told, line, 1, syntax=True)
    except LookupError:
        return data.decode("utf-8", "replace"), Problem(name, f"unknown encoding {declared}", 1, 1, syntax=True)


def declared_encoding(data: bytes) -> str:
    """What the first two lines of a Python file declare (PEP 263), else UTF-8. May name an encoding that is none."""
    if data.startswith(codecs.BOM_UTF8):
        return "utf-8"
    return next((m[1].decode() for row in data.split(b"\n", 2)[:2] if (m := _COOKIE.match(row))), "utf-8")


def parse(name: str, text: str, cells: Sequence[int] | None = None) -> Module | Problem:
    """The module, or why there is none."""
    if "\x00" in text:
        line = text.count("\n", 0, text.index("\x00")) + 1
        return Problem(name, "contains null bytes, which Python refuses; is it damaged?", line, 1, syntax=True)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text, filename=name)
    except SyntaxError as problem:
        told = f"no valid Python: {problem.msg}"
        return Problem(name, told, problem.lineno or 1, max(problem.offset or 1, 1), syntax=True)
    except (RecursionError, MemoryError):
        return Problem(name, "is nested too deeply to be parsed")
    except ValueError as problem:
        return Problem(name, f"no valid Python: {problem}", 1, 1, syntax=True)
    return Module(name, text, tree, tuple(text.split("\n")), cells)


def _parse_cells(name: str, text: str, cells: Sequence[int], problems: list[Problem]) -> Module | None:
    """A notebook: a cell that is no Python is told and left out, the others are kept."""
    lines = text.split("\n")
    broken: set[int] = set()
    while True:
        module = parse(name, "\n".join(lines), cells)
        if not isinstance(module, Problem):
            return module
        line = min(max(module.line or 1, 1), len(lines))
        cell = bisect_right(cells, line)
        place = Problem(name, module.reason, line - cells[cell - 1] + 1, module.column, cell, module.syntax)
        problems.append(place if module.line is not None else module)
        if module.line is None or cell in broken or len(broken) >= MAX_BROKEN_CELLS:
            return None
        broken.add(cell)
        end = cells[cell] - 1 if cell < len(cells) else len(lines)
        lines[cells[cell - 1] - 1 : end] = ["pass"] * (end - cells[cell - 1] + 1)
