"""Two lists that a function is given side by side, of which it puts one in an order and reads both by one number."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.project import Project
from trainwreck.code.scopes import Scope

ORDERS = frozenset(["sort", "sorted", "argsort", "shuffle", "lexsort"])


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


def arranged_between(project: Project) -> Iterator[tuple[ast.AST, Scope, str]]:
    """``texts = sorted(texts, key=len)`` (or ``texts.sort()``, ``zip(sorted(texts), labels)``) after ``labels`` was
    made beside it, element by element, and before both are read together.

    Yields where that is, and what is kept as it was."""
    for scope in project.scopes:
        for node, name, here in _sorts(scope) if scope.kind != "class" else ():
            for other in sorted(_made_beside(project, scope, name, node)):
                if other in here or (not here and _read_by_one(scope, name, other, node.lineno)):
                    yield node, scope, other
                    break


def _sorts(scope: Scope) -> Iterator[tuple[ast.Call, str, set[str]]]:
    """The calls that sort a list in place of itself, or on its way into a ``zip``, with what else goes into that."""
    for node in scope.nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=target)], value=ast.Call() as call) if _sorted(call) == target:
                yield call, target, set()
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=target), attr="sort")) as call):
                yield call, target, set()
            case ast.Call(func=ast.Name(id="zip"), args=given):
                for inner in given:
                    if isinstance(inner, ast.Call) and (name := _sorted(inner)):
                        yield inner, name, {a.id for a in given if isinstance(a, ast.Name)}


def _sorted(call: ast.Call) -> str:
    """The name of the list of which this is the sorted copy."""
    match call:
        case ast.Call(func=ast.Name(id="sorted"), args=[ast.Name(id=name)]):
            return name
    return ""


def _made_beside(project: Project, scope: Scope, name: str, sort: ast.Call) -> set[str]:
    """The lists that were made with one element for each of another one before it is sorted, and never since."""
    found = set()
    mine = [b for b in scope.bindings.get(name, ()) if b.line < sort.lineno]
    loops = {id(loop) for b in mine if b.kind == "append" and (loop := _loop(project, b.node, scope)) is not None}
    unpacked = {id(b.node) for b in mine if b.kind == "assign" and len(b.path) == 1 and isinstance(b.value, ast.Call)}
    for other, bindings in scope.bindings.items():
        if other == name or any(b.line >= sort.lineno for b in bindings) or _sorted_too(scope, other):
            continue
        made = [b for b in bindings if b.kind in ("assign", "append")]
        for b in made:
            beside = b.kind == "append" and id(_loop(project, b.node, scope)) in loops
            together = len(b.path) == 1 and id(b.node) in unpacked and len(made) == 1
            if beside or together or (b.kind == "assign" and len(made) == 1 and _of_each(b.value, name)):
                found.add(other)
    return found


def _of_each(value: ast.expr | None, name: str) -> bool:
    """True for ``[f(x) for x in name]``."""
    match value:
        case ast.ListComp(generators=[ast.comprehension(iter=ast.Name(id=source), ifs=[])]):
            return source == name
    return False


def _loop(project: Project, node: ast.AST, scope: Scope) -> ast.AST | None:
    return next((a for a in project.ancestors(node, scope) if isinstance(a, ast.For | ast.While)), None)


def _sorted_too(scope: Scope, name: str) -> bool:
    """True where a list is put in some order itself."""
    calls = (n for n in ast.walk(scope.node) if isinstance(n, ast.Call) and last_name(n.func) in ORDERS)
    return any(isinstance(n, ast.Name) and n.id == name for call in calls for n in ast.walk(call))


def _read_by_one(scope: Scope, one: str, other: str, line: int) -> bool:
    """True where both are read side by side later: in one ``zip``, or by the same number out of the same loop."""
    reads: dict[str, set[tuple[str, str]]] = {one: set(), other: set()}
    binders: list[tuple[str, str, ast.AST]] = []
    for node in ast.walk(scope.node):
        if isinstance(node, ast.ListComp | ast.GeneratorExp):
            binders += [(written(g.target), written(g.iter), node) for g in node.generators]
        elif isinstance(node, ast.For):
            binders.append((written(node.target), written(node.iter), node))
        elif isinstance(node, ast.Call) and last_name(node.func) == "zip":
            zipped = {a.id for a in node.args if isinstance(a, ast.Name)}
            if node.lineno > line and {one, other} <= zipped:
                return True
    for target, over, around in binders:
        for node in ast.walk(around):
            of_both = isinstance(node, ast.Subscript) and node.lineno > line and written(node.value) in reads
            if of_both and isinstance(node, ast.Subscript) and written(node.slice) == target:
                reads[written(node.value)].add((target, over))
    return bool(reads[one] & reads[other])


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
