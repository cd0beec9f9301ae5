"""How small and how large a number can get while the program runs, and where it is written down."""

from __future__ import annotations

import ast
import math

from trainwreck.code.calls import last_name
from trainwreck.code.flow import option_defaults
from trainwreck.code.project import Project
from trainwreck.code.scopes import Binding, Scope
from trainwreck.code.tables import entries

MAX_DEPTH = 12

Interval = tuple[float, float]
ANY: Interval = (-math.inf, math.inf)
"""Nothing is known."""


def interval(project: Project, node: ast.expr | None, scope: Scope, depth: int = 0) -> Interval:
    """The smallest and the largest value of ``node``; infinite on a side where nothing is known."""
    if node is None or depth > MAX_DEPTH:
        return ANY
    match node:
        case ast.Constant(value=bool()):
            return ANY
        case ast.Constant(value=int() | float() as value):
            return (float(value), float(value)) if abs(value) < 1e300 else ANY
        case ast.UnaryOp(op=ast.USub()):
            low, high = interval(project, node.operand, scope, depth + 1)
            return -high, -low
        case ast.BinOp():
            left = interval(project, node.left, scope, depth + 1)
            right = interval(project, node.right, scope, depth + 1)
            return _combined(node.op, left, right)
        case ast.IfExp():
            return _union(
                [interval(project, node.body, scope, depth + 1), interval(project, node.orelse, scope, depth + 1)]
            )
        case ast.Call():
            return _of_call(project, node, scope, depth)
        case ast.Subscript(slice=ast.Constant(value=str() | int() as key)):
            return _union([interval(project, v, s, depth + 1) for v, s in entries(project, node.value, key, scope)])
        case ast.Name() | ast.Attribute():
            return _of_name(project, node, scope, depth)
    return ANY


def _of_name(project: Project, node: ast.Name | ast.Attribute, scope: Scope, depth: int) -> Interval:
    found: list[Interval] = []
    for binding in project.bindings(node, scope):
        if binding.kind == "append":
            continue
        found.append(_of_binding(project, binding, depth))
    if not found and isinstance(node, ast.Attribute):
        found += [interval(project, v, s, depth + 1) for v, s in option_defaults(project, node, scope)]
        found += [interval(project, v, s, depth + 1) for v, s in entries(project, node.value, node.attr, scope)]
    return _union(found)


def _of_binding(project: Project, binding: Binding, depth: int) -> Interval:
    if binding.kind == "param":
        return _union([interval(project, v, s, depth + 1) for v, s in project.arguments(binding)])
    if binding.kind == "loop" and isinstance(binding.value, ast.Call):
        return _of_loop(project, binding, binding.value, depth)
    if binding.kind != "assign" or binding.value is None:
        return ANY
    value: ast.expr = binding.value
    for part in binding.path:
        if not isinstance(value, ast.Tuple | ast.List) or not isinstance(part, int) or part >= len(value.elts):
            return ANY
        value = value.elts[part]
    if isinstance(value, ast.Call) and last_name(value.func) == "field":
        value = next((k.value for k in value.keywords if k.arg == "default"), value)
    return interval(project, value, binding.scope, depth + 1)


def _of_loop(project: Project, binding: Binding, over: ast.Call, depth: int) -> Interval:
    """The variable of ``for i in range(n)`` or the count of ``enumerate``."""
    name, scope = last_name(over.func), binding.scope
    inner = over.args[0] if over.args else None
    if name == "tqdm" and isinstance(inner, ast.Call):
        over, name = inner, last_name(inner.func)
    if name in ("range", "trange") and over.args and len(binding.path) <= 1:
        ends = [interval(project, a, scope, depth + 1) for a in over.args]
        start, stop = (ends[0], ends[1]) if len(ends) > 1 else ((0.0, 0.0), ends[0])
        return start[0], max(stop[1] - 1, start[0])
    if name == "enumerate" and len(binding.path) > 1 and binding.path[1] == 0:
        return 0.0, math.inf
    return ANY


def _of_call(project: Project, node: ast.Call, scope: Scope, depth: int) -> Interval:
    name = last_name(node.func)
    args = [a for a in node.args if not isinstance(a, ast.Starred)]
    if name in ("min", "max") and len(args) > 1 and len(args) == len(node.args):
        ends = [interval(project, a, scope, depth + 1) for a in args]
        choose = min if name == "min" else max
        return choose(e[0] for e in ends), choose(e[1] for e in ends)
    if name == "clip" and len(args) == 3:
        low, high = interval(project, args[1], scope, depth + 1), interval(project, args[2], scope, depth + 1)
        return low[0], high[1]
    if name in ("int", "float", "round") and args:
        inner = interval(project, args[0], scope, depth + 1)
        if name == "float" or not all(math.isfinite(end) for end in inner):
            return inner
        return math.floor(inner[0]), math.ceil(inner[1])
    if name == "len":
        return 0.0, math.inf
    if name in ("cos", "sin", "tanh"):
        return -1.0, 1.0
    if name == "sigmoid":
        return 0.0, 1.0
    if name == "get" and args and isinstance(args[0], ast.Constant) and isinstance(node.func, ast.Attribute):
        key = args[0].value
        if isinstance(key, str):
            found = [interval(project, v, s, depth + 1) for v, s in entries(project, node.func.value, key, scope)]
            return _union(found or [interval(project, a, scope, depth + 1) for a in args[1:]])
    target = project.resolve(node.func, scope)
    if target is not None and target.kind == "function" and target.returns:
        return _union([interval(project, v, target, depth + 1) for v in target.returns])
    return ANY


def _union(parts: list[Interval]) -> Interval:
    return (min(p[0] for p in parts), max(p[1] for p in parts)) if parts else ANY


def _combined(op: ast.operator, left: Interval, right: Interval) -> Interval:
    match op:
        case ast.Add():
            return _tidy(left[0] + right[0], left[1] + right[1])
        case ast.Sub():
            return _tidy(left[0] - right[1], left[1] - right[0])
        case ast.Mult():
            return _hull([_times(a, b) for a in left for b in right])
        case ast.Div() | ast.FloorDiv():
            if right[0] <= 0 <= right[1]:
                return (0.0, math.inf) if right[0] == 0 < right[1] and left[0] >= 0 else ANY
            return _hull([_times(a, 0.0 if math.isinf(b) else 1 / b) for a in left for b in right])
        case ast.Pow() if left[0] >= 0 and all(math.isfinite(x) and abs(x) < 1e3 for x in (*left, *right)):
            try:
                return _hull([a**b for a in left for b in right])
            except (ArithmeticError, ValueError):
                return ANY
        case ast.Mod() if right[0] > 0:
            return 0.0, right[1]
    return ANY


def _times(one: float, other: float) -> float:
    return 0.0 if one == 0 or other == 0 else one * other


def _hull(points: list[float]) -> Interval:
    return _tidy(min(points), max(points))


def _tidy(low: float, high: float) -> Interval:
    return (-math.inf if math.isnan(low) else low), (math.inf if math.isnan(high) else high)


def origin(project: Project, node: ast.expr, scope: Scope, depth: int = 0) -> tuple[ast.expr, Scope]:
    """Where the number behind ``node`` is written down: the literal itself where there is only one way to it."""
    if depth > MAX_DEPTH:
        return node, scope
    found: list[tuple[ast.expr, Scope]] = []
    match node:
        case ast.Subscript(slice=ast.Constant(value=str() | int() as key)):
            found = list(entries(project, node.value, key, scope))
        case ast.Name() | ast.Attribute():
            for binding in project.bindings(node, scope):
                if binding.kind == "param":
                    found += project.arguments(binding)
                elif binding.kind == "assign" and binding.value is not None:
                    value: ast.expr | None = binding.value
                    for part in binding.path:
                        within = isinstance(value, ast.Tuple | ast.List) and isinstance(part, int)
                        elements = value.elts if isinstance(value, ast.Tuple | ast.List) else []
                        value = elements[part] if within and isinstance(part, int) and part < len(elements) else None
                    if value is not None:
                        found.append((value, binding.scope))
            if not found and isinstance(node, ast.Attribute):
                found = [*option_defaults(project, node, scope), *entries(project, node.value, node.attr, scope)]
        case ast.BinOp(op=ast.Mult() | ast.Div()):
            if isinstance(node.right, ast.Constant) and not isinstance(node.left, ast.Constant):
                found = [(node.left, scope)]
        case ast.Call(func=func, args=[inner]) if last_name(func) in ("float", "int"):
            found = [(inner, scope)]
    if len({id(v) for v, _ in found}) == 1:
        return origin(project, *found[0], depth + 1)
    return node, scope
