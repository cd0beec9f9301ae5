"""Two lists that a function is given side by side, of which it puts one in an order and reads both by one number."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.project import Project
from trainwreck.code.scopes import Scope


def arranged_alone(project: Project) -> Iterator[tuple[ast.AST, Scope, str]]:
    """``self.texts = sorted(texts, key=len)`` beside ``self.labels = labels``, both cut by ``[s : s + n]`` later.

    Yields where that is, and what is kept as it was."""
    for scope in project.functions:
        params = set(scope.params)
        kept: dict[str, tuple[ast.Assign, str]] = {}
        arranged: dict[str, tuple[ast.Assign, str]] = {}
        for node in scope.nodes:
            if not isinstance(node, ast.Assign) or len(node.targets) != 1:
                continue
            target, value = written(node.targets[0]), node.value
            if isinstance(value, ast.Name) and value.id in params and target != value.id:
                kept[target] = (node, value.id)
            elif isinstance(value, ast.Call) and last_name(value.func) == "sorted" and value.args:
                first = value.args[0]
                if isinstance(first, ast.Name) and first.id in params and isinstance(value.func, ast.Name):
                    arranged[target] = (node, first.id)
        for name, (node, source) in arranged.items():
            others = [n for n, (_, given) in kept.items() if given != source and n.startswith("self.")]
            if not name.startswith("self.") or scope.owner is None or len(_stores(scope.owner, name)) > 1:
                continue
            for other in others:
                if len(_stores(scope.owner, other)) == 1 and _read_together(scope.owner, name, other):
                    yield node, scope, other
                    break


def _stores(owner: Scope, name: str) -> list[ast.AST]:
    return [n for n in ast.walk(owner.node)
            if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store) and written(n) == name]  # fmt: skip


def _read_together(owner: Scope, one: str, other: str) -> bool:
    """True where a method takes parts of both by the same number or slice."""
    for method in owner.children:
        cuts: dict[str, set[str]] = {one: set(), other: set()}
        for node in ast.walk(method.node):
            if isinstance(node, ast.Subscript) and written(node.value) in cuts and not _constant(node.slice):
                cuts[written(node.value)].add(written(node.slice))
        if cuts[one] & cuts[other]:
            return True
    return False


def _constant(index: ast.expr) -> bool:
    return not any(isinstance(n, ast.Name | ast.Attribute) for n in ast.walk(index))
