"""A configuration that is written as a dict in Python, as a located document."""

from __future__ import annotations

import ast
from typing import Any

from trainwreck.code.project import Project
from trainwreck.code.rule import at
from trainwreck.code.scopes import Scope
from trainwreck.code.settings.tree import MAX_DEPTH, UNKNOWN, Document, Key, Node, document
from trainwreck.code.values import literal, values


def dict_document(project: Project, node: ast.expr, scope: Scope) -> Document | None:
    """The dict that ``node`` stands for; None where it is none, or where keys are added to it afterwards."""
    if scope.module.cells is not None:
        return None  # places in cells are those of the cell
    found = literal(project, node, scope)
    if found is None or not isinstance(found[0], ast.Dict):
        return None
    if isinstance(node, ast.Name) and any(b.kind != "assign" for b in project.lookup(node.id, scope)):
        return None
    root = _node(project, found[0], found[1], 0)
    return document(found[1].module.path, "python", root)


def _node(project: Project, node: ast.expr, scope: Scope, depth: int) -> Node:
    _, line, column, _ = at(node, scope)
    end = column + ((node.end_col_offset or 0) - node.col_offset if node.end_lineno == node.lineno else 1)
    if depth > MAX_DEPTH:
        return Node("scalar", line, column, end, UNKNOWN)
    if isinstance(node, ast.Dict):
        pairs = []
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                _, row, start, _ = at(key, scope)
                pairs.append((Key(key.value, row, start + 1), _node(project, value, scope, depth + 1)))
        return Node("mapping", line, column, end, pairs=tuple(pairs))
    if isinstance(node, ast.List | ast.Tuple):
        items = tuple(_node(project, item, scope, depth + 1) for item in node.elts)
        return Node("sequence", line, column, end, items=items)
    known = values(project, node, scope)
    constant: Any = known[0].value if len(known) == 1 else UNKNOWN
    return Node("scalar", line, column, end, constant, str(constant), isinstance(constant, str))
