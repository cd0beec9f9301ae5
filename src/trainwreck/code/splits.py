"""Where a program divides its samples at random: library calls, and permutations that are cut."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import only, option
from trainwreck.code.project import Project
from trainwreck.code.scopes import Scope
from trainwreck.core.row import Row

CROSS = ("cross_val_score", "cross_validate", "cross_val_predict")
PERMUTES = frozenset(["permutation", "randperm"])


class Split(Row):
    """A division of samples at random: where, and the expressions of what is divided (features first)."""

    place: Call
    data: tuple[ast.expr, ...]
    scope: Scope


def random_splits(project: Project) -> Iterator[Split]:
    """Every division at random whose data can be named. One that keeps the order is none."""
    for call in project.calls("train_test_split"):
        ordered = only(project, option(project, call, "shuffle")) not in (None, True)
        if project.called(call).startswith("sklearn") and call.node.args and not ordered:
            yield Split(call, tuple(call.node.args), call.scope)
    for call in project.calls("random_split"):
        if project.called(call).startswith("torch") and call.node.args:
            yield Split(call, (call.node.args[0],), call.scope)
    for call in project.calls("split"):
        folds = isinstance(call.receiver, ast.Name | ast.Call) and call.node.args and _folds(project, call)
        if folds:
            yield Split(call, tuple(call.node.args), call.scope)
    for call in project.calls(*CROSS):
        if project.called(call).startswith("sklearn") and len(call.node.args) > 1:
            yield Split(call, tuple(call.node.args[1:]), call.scope)
    for call in project.calls(*sorted(PERMUTES)):
        yield from _permuted(project, call)


def _folds(project: Project, call: Call) -> bool:
    from trainwreck.code.facts import made

    names = {c.name for c in made(project, call.receiver, call.scope)} if call.receiver is not None else set()
    return bool(names & {"KFold", "StratifiedKFold", "ShuffleSplit", "StratifiedShuffleSplit", "RepeatedKFold"})


def _learns(loop: ast.AST) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr == "backward" for n in ast.walk(loop))


def _permuted(project: Project, call: Call) -> Iterator[Split]:
    """``perm = permutation(len(X))``, and ``X[perm[:n]]`` or ``X = X[perm]`` with ``X[:n]``."""
    sized = call.node.args[0] if call.node.args else None
    if not isinstance(sized, ast.Call) or last_name(sized.func) != "len" or len(sized.args) != 1:
        return
    statement = project.statement(call.node, call.scope)
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return
    if any(isinstance(a, ast.For | ast.While) and _learns(a) for a in project.ancestors(call.node, call.scope)):
        return  # the order of the batches of an epoch
    name, data = statement.targets[0].id, sized.args[0]
    cuts = [
        n
        for n in project.within(call.scope, ast.Subscript)
        if isinstance(n, ast.Subscript)
        and isinstance(n.slice, ast.Slice)
        and written(n.value) in (name, written(data))
        and n.lineno > statement.lineno
    ]
    if cuts:
        yield Split(call, (data,), call.scope)
