"""Vocabularies that a program makes of its texts, and of which texts each is made."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import HELD, TRAIN, names_in
from trainwreck.code.project import Project
from trainwreck.code.scopes import Scope

WORDS = frozenset(["split", "tokenize", "Counter", "chain", "findall", "word_tokenize", "most_common", "update"])
"""Calls by which a table of numbers is one of words."""


def made_apart(project: Project) -> Iterator[tuple[Call, Call]]:
    """Vocabularies of evaluation texts that are made as the one of the training texts is: (theirs, the other)."""
    for walked in project.walked.values():
        for scope in walked.scopes:
            if scope.kind != "function" or not _numbers_words(project, scope):
                continue
            calls = project.callers(scope)
            held = [c for c in calls if _texts(c, HELD) and not _texts(c, TRAIN) and not _only_counted(project, c)]
            others = [c for c in calls if c not in held]
            if held and others:
                yield held[0], others[0]


def _only_counted(project: Project, call: Call) -> bool:
    """True for a table of which only the size and the words are asked, and no number."""
    statement = project.statement(call.node, call.scope)
    if not isinstance(statement, ast.Assign):
        return False
    names = {n.id for t in statement.targets for n in ast.walk(t) if isinstance(n, ast.Name)}
    if isinstance(statement.value, ast.Tuple) and isinstance(statement.targets[0], ast.Tuple):
        pairs = zip(statement.targets[0].elts, statement.value.elts, strict=False)
        names = {t.id for t, v in pairs if v is call.node and isinstance(t, ast.Name)}
    uses = [n for n in ast.walk(call.scope.node)
            if isinstance(n, ast.Name) and n.id in names and isinstance(n.ctx, ast.Load)]  # fmt: skip
    return bool(uses) and all(_counts(next(iter(project.ancestors(u, call.scope)), None)) for u in uses)


def _counts(above: ast.AST | None) -> bool:
    """``len(table)``, ``set(table)``, ``table.keys()``, ``word in table``."""
    if isinstance(above, ast.Call):
        return last_name(above.func) in ("len", "set", "sorted", "print")
    return isinstance(above, ast.Compare) or (isinstance(above, ast.Attribute) and above.attr == "keys")


def _texts(call: Call, words: re.Pattern[str]) -> bool:
    return any(names_in(a, words) for a in call.node.args[:2])


def _numbers_words(project: Project, scope: Scope) -> bool:
    """True if the function always makes a table that numbers the words of what it is given."""
    params = [p for p in scope.params if p not in ("self", "cls")]
    nodes = list(ast.walk(scope.node)) if params else []
    if not any(isinstance(n, ast.Name) and n.id == params[0] for n in nodes):
        return False
    words = any(isinstance(n, ast.Call) and last_name(n.func) in WORDS for n in nodes)
    nested = any(isinstance(n, ast.For) and any(isinstance(i, ast.For) for i in ast.walk(n) if i is not n)
                 for n in nodes)  # fmt: skip
    if not words and _by_column(nodes):
        return False
    for node in nodes:
        if _grows(node) or ((words or nested) and _enumerates(node)):
            return not any(isinstance(a, ast.If | ast.IfExp | ast.BoolOp) and _asks_for_one(a, params)
                           for a in project.ancestors(node, scope))  # fmt: skip
    return False


def _by_column(nodes: list[ast.AST]) -> bool:
    """``for name in columns: for value in table[name]`` (or ``rows[:, j]``): values of columns, no words of texts."""
    loops: list[tuple[ast.expr, ast.expr, list[ast.AST]]] = [
        (n.target, n.iter, [*n.body]) for n in nodes if isinstance(n, ast.For)
    ]
    loops += [(g.target, g.iter, [n]) for n in nodes if isinstance(n, ast.DictComp) for g in n.generators]
    for target, over, body in loops:
        names = {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
        cuts = [c for n in body for c in ast.walk(n) if isinstance(c, ast.Subscript) and isinstance(c.ctx, ast.Load)]
        picked = any(isinstance(c.slice, ast.Name) and c.slice.id in names for c in cuts)
        several = [c.slice.elts for c in cuts if isinstance(c.slice, ast.Tuple) and c.slice.elts]
        column = any(isinstance(s[0], ast.Slice) and isinstance(s[-1], ast.Name) and s[-1].id in names for s in several)
        if column or (picked and not (isinstance(over, ast.Call) and last_name(over.func) == "range")):
            return True
    return False


def _asks_for_one(above: ast.AST, params: list[str]) -> bool:
    """``if vocab is None``: one that is given is used."""
    test = above.test if isinstance(above, ast.If | ast.IfExp) else above
    return any(isinstance(n, ast.Name) and n.id in params for n in ast.walk(test))


def _grows(node: ast.AST) -> bool:
    """``table.setdefault(word, len(table))``, ``table[word] = len(table)``."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setdefault":
        return len(node.args) == 2 and _length_of(node.args[1], written(node.func.value))
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        return _length_of(node.value, written(node.targets[0].value))
    return False


def _length_of(node: ast.expr, table: str) -> bool:
    return any(isinstance(n, ast.Call) and last_name(n.func) == "len" and n.args and written(n.args[0]) == table
               for n in ast.walk(node))  # fmt: skip


def _enumerates(node: ast.AST) -> bool:
    """``{word: number for number, word in enumerate(...)}``, ``dict(zip(words, range(...)))``."""
    if isinstance(node, ast.DictComp):
        made = node.generators[0].iter
        return isinstance(made, ast.Call) and last_name(made.func) == "enumerate" and isinstance(node.key, ast.Name)
    if isinstance(node, ast.Call) and last_name(node.func) == "dict" and node.args:
        inner = node.args[0]
        zipped = isinstance(inner, ast.Call) and last_name(inner.func) == "zip" and len(inner.args) == 2
        second = inner.args[1] if isinstance(inner, ast.Call) and zipped else None
        return isinstance(second, ast.Call) and last_name(second.func) in ("range", "count")
    return False
