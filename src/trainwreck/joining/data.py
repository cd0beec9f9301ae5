"""Where data is made: the computation in a data set that can give NaN, the assignment that a target comes from."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name
from trainwreck.code.flow import back
from trainwreck.code.project import Project
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import dataset_classes, losses
from trainwreck.joining.paths import top

Found = tuple[str, int]
BIRTHS = frozenset(
    ["log", "log2", "log10", "log1p", "sqrt", "power", "pow", "divide", "true_divide", "arccos", "acos", "arctanh"]
)
"""Functions that give NaN or infinity outside of their domain."""
GUARDS = frozenset(["clip", "clamp", "clamp_min", "maximum", "nan_to_num", "abs", "fmax", "where", "max"])
SAMPLES = ("__getitem__", "__iter__", "__getitems__", "collate", "collate_fn", "__call__", "transform")


def births(project: Project) -> Found | None:
    """The computation in a data set, or on the way to one, that can leave the finite numbers and is not guarded."""
    classes = dataset_classes(project)
    inside = [s for s in project.functions if s.owner in classes]
    ordered = sorted(inside, key=lambda s: s.name not in SAMPLES)
    for group in (ordered, [s for s in project.functions if s not in inside and s.name in SAMPLES]):
        for scope in group:
            for node in _unguarded(project, scope):
                return scope.module.path, node.lineno
    return None


def _unguarded(project: Project, scope: Scope) -> Iterator[ast.expr]:
    for node in scope.nodes:
        if isinstance(node, ast.Call) and last_name(node.func) in BIRTHS and node.args and not _guarded(node):
            yield node
    for node in scope.nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            if isinstance(node.right, ast.Constant) or _guarded(node.right):
                continue
            yield node


def _guarded(node: ast.AST) -> bool:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call) and last_name(inner.func) in GUARDS:
            return True
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Add) and _small(inner):
            return True
    return False


def _small(node: ast.BinOp) -> bool:
    names = [last_name(s) or "" for s in (node.left, node.right) if isinstance(s, ast.Name | ast.Attribute)]
    if any("eps" in n.lower() for n in names):
        return True
    return any(isinstance(s, ast.Constant) and isinstance(s.value, int | float) for s in (node.left, node.right))


def target(project: Project, path: str | None, line: int | None) -> Found | None:
    """The assignment outside of the training step that the target of its loss comes from."""
    module = top(project, path)
    calls = [c for c in losses(project) if module is None or c.scope.module is module.module]
    calls.sort(key=lambda c: abs(c.line - (line or 0)))
    for call in calls[:1]:
        value = call.argument("target", 1)
        if value is not None:
            return _given(project, call, value)
    return None


def _given(project: Project, call: Call, value: ast.expr) -> Found | None:
    best: Found | None = None
    for step in back(project, value, call.scope):
        statement = project.statement(step.node, step.scope)
        if (
            isinstance(statement, ast.Assign)
            and statement.value is step.node
            and not isinstance(step.node, ast.Subscript)
        ):
            best = (step.scope.module.path, statement.lineno)
            if not isinstance(step.node, ast.Name):
                return best
            return best
    return best
