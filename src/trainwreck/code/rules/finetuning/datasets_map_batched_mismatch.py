"""A function for one row is mapped over batches.

What: ``map(f, batched=True)`` where ``f`` calls a method of text on a column, or writes it into a text.
Why it matters: with ``batched=True`` each column is a list: the method does not exist, or the text of the list itself
goes into training.
When it is fine: without ``batched``, or with a loop over the rows.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.facts import only, option
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

BAD = (
    """
from datasets import load_dataset
def clean(row):
    return {"text": row["text"].lower().strip()}  # expect
data = load_dataset("imdb", split="train").map(clean, batched=True)
""",
    """
from datasets import load_dataset
data = load_dataset("squad")
def prompt(examples):
    text = f"Question: {examples['question']} Answer: {examples['answer']}"  # expect
    return tok(text)
data = data.map(prompt, batched=True, remove_columns=["id"])
""",
)
GOOD = """
from datasets import load_dataset
def one(row):
    return {"text": row["text"].lower()}
def many(rows):
    return {"text": [t.lower() for t in rows["text"]]}
def pairs(rows):
    return tok([f"{q} {a}" for q, a in zip(rows["question"], rows["answer"])])
def kinds(rows):
    print(f"{len(rows['text'])} rows")
    return {"x": [rows["text"][i].lower() for i in range(len(rows["text"]))]}
data = load_dataset("imdb", split="train")
data.map(one), data.map(one, batched=False), data.map(many, batched=True), data.map(pairs, batched=True)
data.map(kinds, batched=True)
"""
TEXT_METHODS = frozenset(
    [
        "lower",
        "upper",
        "strip",
        "split",
        "replace",
        "startswith",
        "endswith",
        "format",
        "encode",
        "splitlines",
        "rstrip",
    ]
)


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("map"):
        if call.receiver is None or only(project, option(project, call, "batched")) is not True:
            continue
        given = option(project, call, "function", 0)
        function = project.resolve(*given) if given is not None else None
        if function is None or function.kind != "function" or not function.params:
            continue
        rows = function.params[0] if function.params[0] != "self" else [*function.params, ""][1]
        found = next(_as_one(project, function, rows), None)
        if found is not None:
            text = f"{written(found)[:50]} takes one row, and with batched=True each column is a list"
            yield sighting(__name__, (found, function), text, proof=[call], fix=Fix("leave batched=True out"))


def _as_one(project: Project, function: Scope, rows: str) -> Iterator[ast.AST]:
    """Places that treat a column of ``rows`` as one text."""
    for node in ast.walk(function.node):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Subscript() as column, attr=method)):
                if method in TEXT_METHODS and _column(column, rows):
                    yield node
            case ast.JoinedStr(values=parts):
                columns = [p for p in parts if isinstance(p, ast.FormattedValue) and _column(p.value, rows)]
                above = project.parent(node, function)
                told = isinstance(above, ast.Call) and getattr(above.func, "id", getattr(above.func, "attr", "")) in (
                    "print", "info", "debug", "warning", "ValueError",
                )  # fmt: skip
                if columns and not told:
                    yield node


def _column(node: ast.expr, rows: str) -> bool:
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id == rows
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
    )
