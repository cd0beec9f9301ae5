"""The nodes of one scope, in the order of the text."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.scopes import Scope

UNINDEXED = (ast.Name, ast.Constant, ast.Attribute, ast.expr_context, ast.operator, ast.arg, ast.keyword)
ABSTRACT = frozenset([ast.AST, ast.stmt, ast.expr])


def nodes_of(scope: Scope) -> Iterator[ast.AST]:
    """Every node of the body of ``scope`` in the order of the text, functions and classes in it unopened."""
    todo: list[ast.AST] = list(reversed(getattr(scope.node, "body", [])))
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            todo.extend(reversed(list(ast.iter_child_nodes(node))))
