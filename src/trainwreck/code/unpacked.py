"""Pairs that one function of the program gives, taken apart in two orders: ``a, b = f()`` here, ``b, a = f()`` there,
or as the targets of a loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.project import Project
from trainwreck.code.scopes import Scope
from trainwreck.core.row import Row


class Unpacked(Row):
    """Where the two results of a call get their names."""

    node: ast.Assign | ast.For
    scope: Scope
    names: tuple[str, str]


def taken_apart(project: Project) -> Iterator[list[Unpacked]]:
    """For each function that is defined in the program: the calls whose two results get the same two names, in
    whichever order."""
    defined = {
        n.name
        for walked in project.walked.values()
        for scope in walked.scopes
        for n in project.within(scope, ast.FunctionDef)
        if isinstance(n, ast.FunctionDef)
    }
    found: dict[tuple[str, frozenset[str]], list[Unpacked]] = {}
    for walked in project.walked.values():
        for scope in walked.scopes:
            for node in project.within(scope, ast.Assign, ast.For):
                assert isinstance(node, ast.Assign | ast.For)
                target, value = (
                    (node.targets[0], node.value) if isinstance(node, ast.Assign) else (node.target, node.iter)
                )
                if not isinstance(target, ast.Tuple) or not isinstance(value, ast.Call):
                    continue
                names = [n.id for n in target.elts if isinstance(n, ast.Name)]
                called = written(value.func)
                if len(names) != 2 or len(target.elts) != 2 or called.rpartition(".")[2] not in defined:
                    continue
                key = (called, frozenset(names))
                found.setdefault(key, []).append(Unpacked(node, scope, (names[0], names[1])))
    yield from found.values()
