"""Mutations of what people write: programs by token, tree and indentation, notebooks, configurations, launch scripts."""
# ruff: noqa: E501

from __future__ import annotations

import ast
import copy
import io
import json
import random
import tokenize
from collections.abc import Sequence
from typing import Any

Seed = tuple[str, bytes]
"""A file's name and its content."""

WORDS = (
    "None", "True", "0", "1", "-1", "1e999", "float('nan')", "''", "[]", "{}", "()", "lambda: 0", "*args", "**kwargs", "x", "self",
    "model", "loss", "yield", "await", "return", "lambda x: x", "...", "f'{x}'", "b'\\xff'", "10**400", ":=", "->", "@", "async",
    "not", "import torch", "from . import *", "class A(A): pass", "def f(): return f()", "del x", "global x", "match x:", "type X = int",
)  # fmt: skip
PIECES = (
    "&a *a", "*b", "<<: *a", "!!python/object/apply:os.system", "${a.b}", "${oc.env:X}", "$((1/0))", "$(", "`x`", "<<EOF", "|", "\t", "- -",
    "{{", "? :", "---", "...", "%", "1e999", ".nan", "0x", "1_0", "[[", "]]", "=", "\\", "'", '"', "#", "\u2028", "\ufeff", "\x00", "null",
    "~", "yes", "1:2:3", "2020-01-01", "torchrun --nproc_per_node=", "accelerate launch", "deepspeed", "--", "export A=", "@package _global_",
)  # fmt: skip
CELL_KEYS: Sequence[Any] = (
    None,
    0,
    "",
    [],
    {},
    ["x"],
    "code",
    "markdown",
    [1, 2],
    True,
    "%%bash\nls",
    "!pip install torch==",
)


def program(data: bytes, rng: random.Random, others: Sequence[Seed]) -> bytes:
    """A program after one to four edits, most of them such that it still parses."""
    text = data.decode("utf-8", "replace")
    for _ in range(rng.randint(1, 4)):
        edit = rng.choice((_tokens, _tree, _tree, _indent, _splice))
        try:
            text = edit(text, rng, others)
        except (SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError, IndexError, TypeError):
            text = _indent(text, rng, others)
        text = text[:40_000]
    return text.encode("utf-8", "surrogatepass")


def _tokens(text: str, rng: random.Random, _: Sequence[Seed]) -> str:
    """Leave out, double, swap or replace a few tokens."""
    found = [t for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.string.strip()]
    rows = text.splitlines(keepends=True)
    for token in sorted(rng.sample(found, min(len(found), rng.randint(1, 4))), key=lambda t: t.start, reverse=True):
        if token.start[0] != token.end[0] or token.start[0] > len(rows):
            continue
        row = rows[token.start[0] - 1]
        new = rng.choice(("", f"{token.string} {token.string}", rng.choice(WORDS), rng.choice(found).string))
        rows[token.start[0] - 1] = row[: token.start[1]] + new + row[token.end[1] :]
    return "".join(rows)


def _tree(text: str, rng: random.Random, others: Sequence[Seed]) -> str:
    """Change the syntax tree: drop, move, double and wrap statements and expressions."""
    tree = ast.parse(text)
    nodes = [n for n in ast.walk(tree) if isinstance(n, ast.stmt | ast.expr)]
    expressions = [n for n in nodes if isinstance(n, ast.expr) and isinstance(getattr(n, "ctx", None), ast.Load | None)]
    for _ in range(rng.randint(1, 3)):
        holders = [n for n in ast.walk(tree) if isinstance(getattr(n, "body", None), list) and n.body]  # type: ignore[attr-defined]
        holder: Any = rng.choice(holders)
        at = rng.randrange(len(holder.body))
        kind = rng.randrange(9)
        if kind == 0 and len(holder.body) > 1:
            del holder.body[at]
        elif kind == 1:
            holder.body.insert(at, copy.deepcopy(rng.choice(rng.choice(holders).body)))  # type: ignore[attr-defined]
        elif kind == 2:
            rng.shuffle(holder.body)
        elif kind == 3:
            wrap: Any = ast.parse(
                rng.choice(("for x in x:\n pass", "with x as x:\n pass", "if x:\n pass", "def f(x):\n pass"))
            ).body[0]
            wrap.body = [holder.body[at]]
            holder.body[at] = wrap
        elif kind == 4 and expressions:
            inner: Any = rng.choice(expressions)
            for name, value in ast.iter_fields(inner):
                if isinstance(value, ast.expr):
                    setattr(inner, name, copy.deepcopy(rng.choice(expressions)))
        elif kind == 5:
            calls = [n for n in nodes if isinstance(n, ast.Call)]
            if calls and expressions:
                call = rng.choice(calls)
                call.args.insert(0, copy.deepcopy(rng.choice(expressions)))
                call.keywords = [*call.keywords[:1], ast.keyword(None, copy.deepcopy(rng.choice(expressions)))]
        elif kind == 6:
            names = [n for n in nodes if isinstance(n, ast.Name)]
            if names:
                one, two = rng.choice(names).id, rng.choice(names).id
                for node in names:
                    node.id = two if node.id == one else node.id
        elif kind == 7:
            for node in nodes:
                if isinstance(node, ast.Constant) and rng.random() < 0.2:
                    node.value = rng.choice((0, -1, 1e999, "", None, True, b"", 1j, 10**40, "x" * 50, ...))
        else:
            other = next((d for n, d in rng.sample(list(others), min(5, len(others))) if n.endswith(".py")), b"pass")
            holder.body[at:at] = ast.parse(other.decode("utf-8", "replace")).body[:3]
    return ast.unparse(ast.fix_missing_locations(tree))


def _indent(text: str, rng: random.Random, _: Sequence[Seed]) -> str:
    rows = text.splitlines(keepends=True)
    for _n in range(min(len(rows), rng.randint(1, 5))):
        at = rng.randrange(len(rows))
        rows[at] = rng.choice(("    ", "\t", " ", "")) + rows[at].lstrip() if rng.random() < 0.5 else "    " + rows[at]
    return "".join(rows)


def _splice(text: str, rng: random.Random, others: Sequence[Seed]) -> str:
    rows = text.splitlines(keepends=True)
    other = rng.choice(others)[1].decode("utf-8", "replace").splitlines(keepends=True)
    start, at = rng.randrange(len(other) + 1), rng.randrange(len(rows) + 1)
    rows[at : at + rng.randint(0, 10)] = other[start : start + rng.randint(1, 30)]
    return "".join(rows)


def notebook(data: bytes, rng: random.Random, others: Sequence[Seed]) -> bytes:
    """A notebook of the program's parts, with cells and keys that should not be."""
    rows = program(data, rng, others).decode("utf-8", "replace").splitlines(keepends=True)
    cells: list[Any] = []
    while rows:
        size = rng.randint(1, 15)
        part: Any = rows[:size] if rng.random() < 0.7 else "".join(rows[:size])
        cells.append({"cell_type": "code", "metadata": {}, "outputs": [], "source": part})
        rows = rows[size:]
    book: Any = {"cells": cells, "metadata": {"kernelspec": {"language": "python"}}, "nbformat": 4, "nbformat_minor": 5}
    for _ in range(rng.randint(0, 3)):
        kind = rng.randrange(6)
        if kind == 0 and cells:
            rng.choice(cells)[rng.choice(("source", "cell_type", "metadata", "outputs"))] = rng.choice(CELL_KEYS)
        elif kind == 1 and cells:
            cells[rng.randrange(len(cells))] = rng.choice(
                ({}, {"cell_type": "code"}, {"cell_type": "raw", "source": "x"})
            )
        elif kind == 2:
            book[rng.choice(("cells", "metadata", "nbformat", "worksheets"))] = rng.choice(CELL_KEYS)
        elif kind == 3:
            cells.insert(
                0,
                {
                    "cell_type": "code",
                    "source": rng.choice(("%%bash\npip install trl==0.1\n", "!ls $(", "%magic", "%%time", "?x")),
                },
            )
        elif kind == 4:
            book["metadata"] = {"kernelspec": rng.choice(CELL_KEYS), "language_info": rng.choice(CELL_KEYS)}
    text = json.dumps(book, indent=rng.choice((None, 1)))
    if rng.random() < 0.2:
        at = rng.randrange(len(text))
        text = text[:at] + rng.choice(PIECES) + text[at + rng.randint(0, 30) :]
    return text.encode("utf-8", "surrogatepass")


def configuration(data: bytes, rng: random.Random, others: Sequence[Seed]) -> bytes:
    """YAML, JSON, TOML, requirements or a launch script after a few edits by line and by piece."""
    rows = data.decode("utf-8", "replace").splitlines(keepends=True) or [""]
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(rows))
        row = rows[at]
        kind = rng.randrange(7)
        if kind == 0:
            cut = rng.randrange(len(row) + 1)
            rows[at] = row[:cut] + rng.choice(PIECES) * rng.choice((1, 1, 40)) + row[cut:]
        elif kind == 1 and len(rows) > 1:
            del rows[at]
        elif kind == 2:
            rows.insert(at, rng.choice(rows) * rng.choice((1, 2, 50)))
        elif kind == 3:
            rows[at] = rng.choice(("  ", "\t", "-")) + row
        elif kind == 4:
            rows[at] = row.replace(rng.choice((":", "=", ",", '"', "-")), rng.choice((":", "=", "", "::", "\n")))
        elif kind == 5:
            other = rng.choice(others)[1].decode("utf-8", "replace").splitlines(keepends=True)
            rows[at:at] = other[:5]
        else:
            rows[at] = row[: rng.randrange(len(row) + 1)]
    return "".join(rows)[:40_000].encode("utf-8", "surrogatepass")
