"""The same value on its way: from an expression back to what computed it, through names, returns and reshapes only."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name
from trainwreck.code.order import constructors
from trainwreck.code.project import Project
from trainwreck.code.scopes import Binding, Path, Scope

RESHAPES = frozenset(
    ["view", "reshape", "squeeze", "unsqueeze", "flatten", "contiguous", "float", "to", "permute", "transpose", "clone"]
)
MAX_DEPTH = 14

End = tuple[ast.expr, Scope]


def ends(project: Project, node: ast.expr, scope: Scope, path: Path = (), *, reshapes: bool = True) -> list[End]:
    """The expressions that compute the value of ``node``; with ``reshapes`` a view of a value counts as the value."""
    found: list[End] = []
    seen: set[tuple[int, Path]] = set()
    _walk(project, node, scope, path, reshapes, 0, found, seen)
    return found


def _walk(
    project: Project,
    node: ast.expr,
    scope: Scope,
    path: Path,
    reshapes: bool,
    depth: int,
    found: list[End],
    seen: set[tuple[int, Path]],
) -> None:
    key = (id(node), path)
    if key in seen:
        return
    seen.add(key)
    further = list(onwards(project, node, scope, path, reshapes=reshapes)) if depth < MAX_DEPTH else []
    if not further:
        found.append((node, scope))
    for value, where, part in further:
        _walk(project, value, where, part, reshapes, depth + 1, found, seen)


def onwards(
    project: Project, node: ast.expr, scope: Scope, path: Path = (), *, reshapes: bool = True
) -> Iterator[tuple[ast.expr, Scope, Path]]:
    """One step back: the expressions that ``node`` (or its part ``path``) is just another name for."""
    match node:
        case ast.Name():
            bindings = [b for b in project.lookup(node.id, scope) if b.kind != "append"]
            before = [b for b in bindings if b.scope is not scope or b.line < node.lineno or b.kind == "param"]
            for binding in _latest(project, before, node) or bindings:
                if binding.kind == "param":
                    for value, where in project.arguments(binding):
                        yield value, where, path
                elif binding.value is not None and binding.kind in ("assign", "with"):
                    yield binding.value, binding.scope, (*binding.path, *path)
        case ast.Attribute() if isinstance(node.value, ast.Name) and node.value.id == "self":
            for binding in project.bindings(node, scope):
                if binding.value is not None and binding.kind == "assign":
                    yield binding.value, binding.scope, (*binding.path, *path)
        case ast.Tuple() | ast.List() if path and isinstance(path[0], int) and path[0] < len(node.elts):
            yield node.elts[path[0]], scope, path[1:]
        case ast.IfExp():
            yield node.body, scope, path
            yield node.orelse, scope, path
        case ast.NamedExpr() | ast.Await():
            yield node.value, scope, path
        case ast.Dict() if path and isinstance(path[0], str):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == path[0]:
                    yield value, scope, path[1:]
        case ast.Subscript(slice=ast.Constant(value=str() | int() as key)):
            yield from onwards(project, node.value, scope, (key, *path), reshapes=reshapes)
        case ast.Subscript() if reshapes and not isinstance(node.slice, ast.Constant):
            yield node.value, scope, path
        case ast.Call():
            yield from _through_call(project, node, scope, path, reshapes)


def _latest(project: Project, bindings: list[Binding], node: ast.Name) -> list[Binding]:
    """The bindings that can hold at ``node``: the last plain one in its own block hides those before it."""
    plain = [b for b in bindings if b.kind == "assign" and b.line < node.lineno]
    if not plain:
        return bindings
    last = max(plain, key=lambda b: b.line)
    above = project.parent(last.node, last.scope)
    if above is last.scope.node or any(a is above for a in project.ancestors(node, last.scope)):
        return [b for b in bindings if b.line >= last.line and b.kind != "param"]
    return bindings


def _through_call(
    project: Project, node: ast.Call, scope: Scope, path: Path, reshapes: bool
) -> Iterator[tuple[ast.expr, Scope, Path]]:
    target = project.resolve(node.func, scope)
    if target is None:
        owner = project.class_of(node.func, scope)
        target = project.find_method(owner, "forward") or project.find_method(owner, "__call__") if owner else None
    if target is not None and target.kind == "function":
        for value in target.returns:
            if value is not None:
                yield value, target, path
        return
    receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
    if (
        reshapes
        and receiver is not None
        and last_name(node.func) in RESHAPES
        and project.bindings_of_values(receiver, scope)
    ):
        yield receiver, scope, path
        return
    for made in constructors(project, node.func, scope):
        if made.name == "Sequential" and made.node.args and not path:
            last = made.node.args[-1]
            if isinstance(last, ast.Call):
                yield last, made.scope, ()
        return


def call_ends(project: Project, node: ast.expr, scope: Scope, path: Path = ()) -> list[Call]:
    """Those ends that are calls."""
    return [Call(n, s) for n, s in ends(project, node, scope, path) if isinstance(n, ast.Call)]


def made_by(project: Project, call: Call) -> set[str]:
    """Names of what ``call`` calls: its own last name, and the layer where it calls a layer object."""
    names = {call.name}
    if isinstance(call.node.func, ast.Name | ast.Attribute):
        names |= {made.name for made in constructors(project, call.node.func, call.scope)}
    return names
