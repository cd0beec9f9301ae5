"""Sizes that a function reads off a tensor by name (``b, c, h, w = z.shape``) and asks for again in a ``reshape``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.scopes import Scope


def inner_axis_last(run: Rehearsing) -> Iterator[Answer]:
    """``z.reshape(-1, c)`` of a ``z`` in which ``c`` is not the last axis: rows of so many neighbours are no rows of
    that axis. Said where the numbers hide it too (16 channels of 4 x 4)."""
    for walked in run.project.walked.values():
        for scope in walked.scopes:
            if scope.kind != "function" or id(scope.node) not in run.executed:
                continue
            for node in scope.nodes:
                found = _asked(node)
                if found is None:
                    continue
                base, size, call = found
                names, line = _unpacked(scope, base, call.lineno)
                if size in names[1:-1] and not _set_again(scope, base, line, call.lineno):
                    text = f"{size} is axis {names.index(size)} of {base}, and rows of {size} neighbours are read here"
                    yield Answer((call, scope), text)
                    return


def _asked(node: ast.AST) -> tuple[str, str, ast.Call] | None:
    """Of ``z.reshape(-1, c)``: z, c and the call."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or len(node.args) != 2:
        return None
    if node.func.attr not in ("reshape", "view") or not isinstance(node.func.value, ast.Name):
        return None
    rest, size = node.args
    return (node.func.value.id, size.id, node) if ast.unparse(rest) == "-1" and isinstance(size, ast.Name) else None


def _unpacked(scope: Scope, base: str, before: int) -> tuple[list[str], int]:
    """The names that the sizes of a tensor are read off by, last before a line, and where."""
    found: tuple[list[str], int] = ([], 0)
    for node in scope.nodes:
        if not isinstance(node, ast.Assign) or node.lineno > before or not isinstance(node.targets[0], ast.Tuple):
            continue
        if ast.unparse(node.value) in (f"{base}.shape", f"{base}.size()"):
            found = [t.id if isinstance(t, ast.Name) else "" for t in node.targets[0].elts], node.lineno
    return found


def _set_again(scope: Scope, base: str, line: int, before: int) -> bool:
    stored = (n for n in scope.nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load))
    return any(n.id == base and line < n.lineno <= before for n in stored)
