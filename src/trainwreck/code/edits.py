"""Corrections of the text of a program, made from syntax nodes: everything around them stays as it was written.

Each function gives a ``Fix`` for ``sighting(..., fix=)``. Where the text can't be edited without guessing it holds the
words alone. Several fixes on one line are applied one after another by ``--fix``.
"""

from __future__ import annotations

import ast

from trainwreck.code.rule import at
from trainwreck.code.scopes import Scope
from trainwreck.core.fix import Edit, Fix


def replace(node: ast.AST, scope: Scope, text: str, words: str, *, safe: bool = False) -> Fix:
    """``node`` is written as ``text`` instead."""
    end = getattr(node, "end_lineno", None), getattr(node, "end_col_offset", None)
    start = getattr(node, "lineno", None), getattr(node, "col_offset", None)
    return _spliced(scope, start, end, text, node, words, safe)


def rename_keyword(call: ast.Call, old: str, new: str, scope: Scope, words: str, *, safe: bool = False) -> Fix:
    """The keyword argument ``old`` of ``call`` is named ``new``; its value stays. Nothing where ``new`` is there."""
    named = {k.arg: k for k in call.keywords}
    if old not in named or new in named:
        return Fix(words)
    item = named[old]
    start = (item.lineno, item.col_offset)
    return _spliced(scope, start, (item.lineno, item.col_offset + len(old.encode())), new, item, words, safe)


def rename_attribute(node: ast.Attribute, new: str, scope: Scope, words: str, *, safe: bool = False) -> Fix:
    """The attribute (the part after the last dot) is named ``new``."""
    if node.end_lineno is None or node.end_col_offset is None:
        return Fix(words)
    start = (node.end_lineno, node.end_col_offset - len(node.attr.encode()))
    return _spliced(scope, start, (node.end_lineno, node.end_col_offset), new, node, words, safe)


def remove_keyword(call: ast.Call, name: str, scope: Scope, words: str, *, safe: bool = False) -> Fix:
    """The keyword argument ``name`` of ``call`` goes, with the comma that held it."""
    every: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    arguments = sorted(every, key=lambda a: (a.lineno, a.col_offset))
    place = next((i for i, a in enumerate(arguments) if isinstance(a, ast.keyword) and a.arg == name), None)
    if place is None:
        return Fix(words)
    item = arguments[place]
    start: tuple[int | None, int | None] = (item.lineno, item.col_offset)
    end = (item.end_lineno, item.end_col_offset)
    if place + 1 < len(arguments):
        following = arguments[place + 1]
        end = (following.lineno, following.col_offset)
    elif place:
        before = arguments[place - 1]
        start = (before.end_lineno, before.end_col_offset)
    if start[0] != end[0]:
        lines = scope.module.lines
        between = [lines[n - 1] for n in range(start[0] or 1, (end[0] or 1) + 1)]
        if any("#" in text for text in between):
            return Fix(words)
    return _spliced(scope, start, end, "", item, words, safe)


def _spliced(
    scope: Scope,
    start: tuple[int | None, int | None],
    end: tuple[int | None, int | None],
    text: str,
    node: ast.AST,
    words: str,
    safe: bool,
) -> Fix:
    """The bytes from ``start`` to ``end`` (line, column in bytes) become ``text``."""
    lines = scope.module.lines
    (first, left), (last, right) = start, end
    if first is None or last is None or not 0 < first <= last <= len(lines):
        return Fix(words)
    before = lines[first - 1].encode()[:left].decode("utf-8", "replace")
    after = lines[last - 1].encode()[right:].decode("utf-8", "replace")
    path, line, _, cell = at(node, scope)
    shift = line - int(getattr(node, "lineno", line))
    return Fix(words, (Edit(path, first + shift, last + shift, before + text + after, cell),), safe)
