"""What a value can be: constants, arithmetic and lengths of literals, over all branches and call sites, with proof."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator
from typing import Any

from trainwreck.code.calls import last_name, written
from trainwreck.code.flow import option_defaults
from trainwreck.code.project import Project
from trainwreck.code.scopes import Binding, Scope
from trainwreck.code.tables import entries
from trainwreck.core.row import Row

MAX_VALUES = 24
MAX_DEPTH = 10
MAX_LOOKS = 400
"""Values met on all ways to one name, the same again included; more is a function with hundreds of callers of callers,
and nothing is said of it."""
MAX_SIZE = 1 << 64

Proof = tuple[tuple[str, int, str], ...]
"""(path, line, what stands there), from the question to its answer."""

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}


class Known(Row):
    """One value that an expression can have, and the chain that shows it."""

    value: Any
    proof: Proof = ()

    @property
    def line(self) -> int | None:
        return self.proof[-1][1] if self.proof else None


def values(project: Project, node: ast.expr | None, scope: Scope) -> list[Known]:
    """Every value found for ``node``. An empty list means unknown; the list need not be complete."""
    if node is None:
        return []
    memo: dict[tuple[ast.expr, Scope], list[Known]] = project.memo.setdefault("values", {})
    if (node, scope) not in memo:
        memo[node, scope] = _all(project, node, scope)
    return list(memo[node, scope])


def _all(project: Project, node: ast.expr, scope: Scope) -> list[Known]:
    found: list[Known] = []
    for looks, known in enumerate(_values(project, node, scope, 0)):
        if looks >= MAX_LOOKS:
            return []
        if not any(type(k.value) is type(known.value) and k.value == known.value for k in found):
            found.append(known)
        if len(found) >= MAX_VALUES:
            break
    return found


def number(project: Project, node: ast.expr | None, scope: Scope) -> float | None:
    """The one number that ``node`` can be, None where it is unknown or several."""
    found = [k.value for k in values(project, node, scope)]
    if len(found) == 1 and isinstance(found[0], int | float) and not isinstance(found[0], bool):
        return found[0]
    return None


def is_true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def is_false(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _here(node: ast.expr, scope: Scope) -> Proof:
    return ((scope.module.path, node.lineno, written(node)[:80]),)


def _values(project: Project, node: ast.expr, scope: Scope, depth: int) -> Iterator[Known]:
    if depth > MAX_DEPTH:
        return
    match node:
        case ast.Constant():
            yield Known(node.value, _here(node, scope))
        case ast.Name() | ast.Attribute():
            found = False
            for binding in project.bindings(node, scope):
                if binding.kind != "append":
                    found = True
                    for known in _bound(project, binding, depth):
                        yield Known(known.value, (*_here(node, scope), *known.proof))
            if not found and isinstance(node, ast.Attribute):
                for default, where in option_defaults(project, node, scope):
                    yield from _values(project, default, where, depth + 1)
                for default, where in entries(project, node.value, node.attr, scope):
                    yield from _values(project, default, where, depth + 1)
        case ast.Subscript(slice=ast.Constant(value=str() | int() as key)):
            for value, where in entries(project, node.value, key, scope):
                for known in _values(project, value, where, depth + 1):
                    yield Known(known.value, (*_here(node, scope), *known.proof))
        case ast.UnaryOp(op=ast.USub()):
            for known in _values(project, node.operand, scope, depth + 1):
                if isinstance(known.value, int | float):
                    yield Known(-known.value, known.proof)
        case ast.BinOp():
            yield from _arithmetic(project, node, scope, depth)
        case ast.IfExp():
            yield from _values(project, node.body, scope, depth + 1)
            yield from _values(project, node.orelse, scope, depth + 1)
        case ast.BoolOp():
            for item in node.values:
                yield from _values(project, item, scope, depth + 1)
        case ast.Call():
            yield from _call(project, node, scope, depth)
        case ast.Tuple() | ast.List():
            items = [list(_values(project, item, scope, depth + 1)) for item in node.elts]
            if all(len(i) == 1 for i in items):
                yield Known(tuple(i[0].value for i in items), _here(node, scope))


def _bound(project: Project, binding: Binding, depth: int) -> Iterator[Known]:
    if binding.kind == "param":
        for value, scope in project.arguments(binding):
            yield from _values(project, value, scope, depth + 1)
    elif binding.kind in ("assign", "with") and binding.value is not None:
        value = binding.value
        for step in binding.path:
            if isinstance(step, int) and isinstance(value, ast.Tuple | ast.List) and step < len(value.elts):
                value = value.elts[step]
            else:
                return
        yield from _values(project, value, binding.scope, depth + 1)


def _arithmetic(project: Project, node: ast.BinOp, scope: Scope, depth: int) -> Iterator[Known]:
    apply = _BINARY.get(type(node.op))
    if apply is None:
        return
    rights = list(_values(project, node.right, scope, depth + 1))[:MAX_VALUES]
    for left in list(_values(project, node.left, scope, depth + 1))[:MAX_VALUES]:
        for right in rights:
            if not all(isinstance(k.value, int | float) and abs(k.value) < MAX_SIZE for k in (left, right)):
                continue
            if isinstance(node.op, ast.Pow) and abs(right.value) > 64:
                continue
            try:
                result = apply(left.value, right.value)
            except (ArithmeticError, ValueError):
                continue
            if isinstance(result, int | float):
                yield Known(result, (*left.proof, *right.proof)[-6:])


def _call(project: Project, node: ast.Call, scope: Scope, depth: int) -> Iterator[Known]:
    name = last_name(node.func)
    if name == "len" and len(node.args) == 1:
        for size, proof in lengths(project, node.args[0], scope):
            yield Known(size, (*_here(node, scope), *proof))
    elif name in ("int", "float") and len(node.args) == 1:
        for known in _values(project, node.args[0], scope, depth + 1):
            if isinstance(known.value, int | float):
                yield Known(int(known.value) if name == "int" else float(known.value), known.proof)
    elif name == "get" and node.args and isinstance(node.func, ast.Attribute):
        yield from _got(project, node, node.func.value, scope, depth)
    elif name == "field":
        for keyword in node.keywords:
            if keyword.arg == "default":
                yield from _values(project, keyword.value, scope, depth + 1)
    else:
        target = project.resolve(node.func, scope)
        if target is not None and target.kind == "function":
            for value in target.returns:
                if value is not None:
                    yield from _values(project, value, target, depth + 1)


def _got(project: Project, node: ast.Call, table: ast.expr, scope: Scope, depth: int) -> Iterator[Known]:
    """``table.get(key, default)``: what stands under the key, else the default."""
    key = node.args[0]
    if not isinstance(key, ast.Constant) or not isinstance(key.value, str | int):
        return
    found = False
    for value, where in entries(project, table, key.value, scope):
        for known in _values(project, value, where, depth + 1):
            found = True
            yield known
    if not found and len(node.args) > 1:
        yield from _values(project, node.args[1], scope, depth + 1)


def literal(project: Project, node: ast.expr, scope: Scope, depth: int = 0) -> tuple[ast.expr, Scope] | None:
    """The one list, tuple, set or dict literal that ``node`` stands for, None where it may change or is unknown."""
    if depth > MAX_DEPTH:
        return None
    if isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict):
        return node, scope
    if (
        isinstance(node, ast.Call)
        and last_name(node.func) in ("sorted", "list", "tuple", "set")
        and len(node.args) == 1
    ):
        return literal(project, node.args[0], scope, depth + 1)
    if isinstance(node, ast.Call) and last_name(node.func) == "split" and not node.args:
        text = node.func.value if isinstance(node.func, ast.Attribute) else None
        if isinstance(text, ast.Constant) and isinstance(text.value, str):
            words = [ast.copy_location(ast.Constant(w), node) for w in text.value.split()]
            return ast.copy_location(ast.List(list(words), ast.Load()), node), scope
    if not isinstance(node, ast.Name | ast.Attribute):
        return None
    bindings = project.bindings(node, scope)
    if len(bindings) == 1 and bindings[0].kind == "param":
        sources = project.arguments(bindings[0])
        found = [literal(project, value, where, depth + 1) for value, where in sources]
        kept = {id(f[0]): f for f in found if f is not None}
        return next(iter(kept.values())) if len(kept) == 1 and None not in found else None
    if len(bindings) != 1 or bindings[0].value is None or bindings[0].path or bindings[0].kind != "assign":
        return None
    return literal(project, bindings[0].value, bindings[0].scope, depth + 1)


def lengths(project: Project, node: ast.expr, scope: Scope) -> Iterator[tuple[int, Proof]]:
    """How many elements the literal behind ``node`` has."""
    found = literal(project, node, scope)
    if found is None:
        return
    value, where = found
    items: list[Any] = list(value.keys) if isinstance(value, ast.Dict) else list(getattr(value, "elts", []))
    if not any(item is None or isinstance(item, ast.Starred) for item in items):
        yield len(items), _here(value, where)
