"""Loops in which one figure is summed up and its companion is thrown away at every turn."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import last_name
from trainwreck.code.facts import names
from trainwreck.code.order import position
from trainwreck.code.project import Project
from trainwreck.code.scopes import Scope

SIZES = frozenset(["len", "numel", "size", "nelement"])
JOINED = frozenset(["cat", "concat", "concatenate", "vstack", "hstack", "stack"])
MAX_LOOP = 60
"""Statements of a loop that is looked at: one of evaluation is short."""


def thrown_away(project: Project) -> Iterator[tuple[ast.Assign, ast.stmt, Scope, str]]:
    """The assignment of a loop, the statement after the loop that reads it, and the name.

    Either the name is set to a count of one batch and later stands in a ratio with what the same loop summed up
    (``right += ...; total = len(y)`` and ``right / total``), or it is set to a list of one element that is joined
    after the loop."""
    for walked in project.walked.values():
        for scope in walked.scopes:
            for loop in project.within(scope, ast.For):
                assert isinstance(loop, ast.For)
                if len(loop.body) <= MAX_LOOP and not loop.orelse:
                    yield from _in(project, loop, scope)


def _in(project: Project, loop: ast.For, scope: Scope) -> Iterator[tuple[ast.Assign, ast.stmt, Scope, str]]:
    single = [n for n in loop.body if isinstance(n, ast.Assign) and len(n.targets) == 1]
    wanted = [n for n in single if isinstance(n.targets[0], ast.Name) and isinstance(n.value, ast.Call | ast.List)]
    if not wanted:
        return
    inside = [n for statement in loop.body for n in ast.walk(statement)]
    if any(isinstance(n, ast.Break | ast.Return | ast.Yield | ast.YieldFrom) for n in inside):
        return
    summed = {n.target.id for n in inside if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)}
    data = _of_data(loop)
    for node in wanted:
        name = written_name(node)
        if name in summed or sum(isinstance(n, ast.Name) and n.id == name for n in inside) != 1:
            continue
        if not names(node.value) & data or names(node.value) & summed:
            continue
        after = _first_read(project, loop, scope, name)
        if after is not None and (_one_of_many(node, after, name) or _beside(node, after, name, summed)):
            yield node, after, scope, name


def written_name(node: ast.Assign) -> str:
    target = node.targets[0]
    return target.id if isinstance(target, ast.Name) else ""


def _of_data(loop: ast.For) -> set[str]:
    """Names that hold something of this turn's batch; the number of the turn does not count."""
    target: ast.AST = loop.target
    iterator = loop.iter
    if isinstance(iterator, ast.Call) and last_name(iterator.func) in ("range", "count"):
        return set()
    if isinstance(iterator, ast.Call) and last_name(iterator.func) == "enumerate" and isinstance(target, ast.Tuple):
        target = target.elts[-1]
    found = names(target)
    for statement in loop.body:
        if isinstance(statement, ast.Assign) and names(statement.value) & found:
            found |= {n for t in statement.targets for n in names(t)}
    return found


def _first_read(project: Project, loop: ast.For, scope: Scope, name: str) -> ast.stmt | None:
    """The statement of the same function after the loop in which the name is read before it is set again."""
    end = loop.end_lineno or loop.lineno
    uses = [n for n in scope.nodes if isinstance(n, ast.Name) and n.id == name and n.lineno > end]
    uses.sort(key=position)
    if not uses or not isinstance(uses[0].ctx, ast.Load):
        return None
    statement = project.statement(uses[0], scope)
    return statement if isinstance(statement, ast.stmt) else None


def _one_of_many(node: ast.Assign, after: ast.stmt, name: str) -> bool:
    if not isinstance(node.value, ast.List) or len(node.value.elts) != 1:
        return False
    return any(
        isinstance(n, ast.Call)
        and last_name(n.func) in JOINED
        and n.args
        and isinstance(n.args[0], ast.Name)
        and n.args[0].id == name
        for n in ast.walk(after)
    )


def _beside(node: ast.Assign, after: ast.stmt, name: str, summed: set[str]) -> bool:
    """True for a ratio of the name and of what the loop summed up."""
    sized = _counts(node.value)
    for ratio in (n for n in ast.walk(after) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Div)):
        if sized:
            if isinstance(ratio.right, ast.Name) and ratio.right.id == name and names(ratio.left) & summed:
                return True
        elif _sums(node.value) and name in names(ratio) and names(ratio) & summed:
            return True
    return False


def _counts(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and last_name(value.func) in SIZES


def _sums(value: ast.expr) -> bool:
    """``(pred == y).sum().item()``: a count of what is so in one batch."""
    calls = [last_name(n.func) for n in ast.walk(value) if isinstance(n, ast.Call)]
    return "sum" in calls and any(isinstance(n, ast.Compare | ast.BinOp) for n in ast.walk(value))


__all__ = ["thrown_away"]
