"""The labels that rows of a data set are given: ``{"label": names.index(name)}``, also under a name changed later."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.scopes import Scope
from trainwreck.code.values import lengths

LABELS = frozenset(["label", "labels", "label_ids"])


def label_columns(project: Project) -> frozenset[str]:
    """Names of columns that are labels, those that ``rename_column`` makes so included."""
    found = set(LABELS)
    for call in project.calls("rename_column"):
        old, new = call.argument("original_column_name", 0), call.argument("new_column_name", 1)
        if isinstance(old, ast.Constant) and isinstance(new, ast.Constant) and new.value in LABELS:
            found.add(str(old.value))
    return frozenset(found)


def label_values(project: Project) -> Iterator[tuple[ast.expr, Scope]]:
    """What rows are given as their label, in dicts that are written out."""
    columns = label_columns(project)
    for scope in project.scopes:
        for node in project.within(scope, ast.Dict):
            if not isinstance(node, ast.Dict) or len(node.keys) < 2:
                continue
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value in columns:
                    yield value, scope


def classes_in(project: Project, node: ast.expr, scope: Scope) -> tuple[int, str] | None:
    """How many classes a label has that is ``names.index(x)`` of names that are written out, and their name."""
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("float", "int")
        and node.args
    ):
        return classes_in(project, node.args[0], scope)
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name() as names, attr="index")):
            found = list(lengths(project, names, scope))
            return (found[0][0], names.id) if len(found) == 1 else None
    return None
