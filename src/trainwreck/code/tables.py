"""What stands under a key of a table of settings: dicts, ``dict(...)``, merges, nested tables, ``vars(args)``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import last_name
from trainwreck.code.flow import option_defaults
from trainwreck.code.project import Project
from trainwreck.code.scopes import Binding, Scope

MAX_DEPTH = 10

Entry = tuple[ast.expr, Scope]


def entries(project: Project, node: ast.expr, key: str | int, scope: Scope, depth: int = 0) -> Iterator[Entry]:
    """Every expression that ``node[key]`` can stand for. Nothing where the table is unknown."""
    known: dict[tuple[ast.expr, str | int], list[Entry]] = project.memo.setdefault("entries of tables", {})
    if depth <= MAX_DEPTH and (node, key) not in known:
        known[node, key] = []  # a table that is made of itself adds nothing; each is worked out once
        known[node, key] = list(_entries(project, node, key, scope, depth))
    yield from known.get((node, key), ())


def _entries(project: Project, node: ast.expr, key: str | int, scope: Scope, depth: int) -> Iterator[Entry]:
    match node:
        case ast.Dict():
            yield from _of_dict(project, node, key, scope, depth)
        case ast.List() | ast.Tuple() if isinstance(key, int) and -len(node.elts) <= key < len(node.elts):
            if not any(isinstance(e, ast.Starred) for e in node.elts):
                yield node.elts[key], scope
        case ast.Call():
            yield from _of_call(project, node, key, scope, depth)
        case ast.BinOp(op=ast.BitOr()):
            right = list(entries(project, node.right, key, scope, depth + 1))
            yield from right or entries(project, node.left, key, scope, depth + 1)
        case ast.IfExp():
            yield from entries(project, node.body, key, scope, depth + 1)
            yield from entries(project, node.orelse, key, scope, depth + 1)
        case ast.Subscript(slice=ast.Constant(value=str() as outer)) if isinstance(key, str) and (
            over := list(entries(project, node.value, f"{outer}.{key}", scope, depth + 1))
        ):
            yield from over
        case ast.Subscript(slice=ast.Constant(value=str() | int() as outer)):
            for inner, where in entries(project, node.value, outer, scope, depth + 1):
                yield from entries(project, inner, key, where, depth + 1)
        case ast.Name() | ast.Attribute():
            bindings = project.bindings(node, scope)
            if not any(_changes(b, key) for b in bindings):
                later = list(_set_within(project, bindings, key))
                yield from later
                for binding in bindings if not later else ():
                    yield from _of_binding(project, binding, key, depth)


def _of_dict(project: Project, node: ast.Dict, key: str | int, scope: Scope, depth: int) -> Iterator[Entry]:
    for name, value in zip(reversed(node.keys), reversed(node.values), strict=True):
        if name is None:
            merged = list(entries(project, value, key, scope, depth + 1))
            if merged:
                yield from merged
                return
        elif isinstance(name, ast.Constant) and name.value == key:
            yield value, scope
            return


def _of_call(project: Project, node: ast.Call, key: str | int, scope: Scope, depth: int) -> Iterator[Entry]:
    name = last_name(node.func)
    target = project.resolve(node.func, scope)
    if target is not None and target.kind == "function":
        if isinstance(key, str) and "." in key and _splits_paths(project, target):
            for value in (*node.args, *(k.value for k in node.keywords)):
                yield from _dotted(project, value, key, scope, depth)
        for returned in target.returns:
            if returned is not None:
                yield from entries(project, returned, key, target, depth + 1)
        return
    if name in ("dict", "SimpleNamespace", "Namespace", "EasyDict", "OmegaConf", "ConfigDict", "AttrDict", "Box"):
        for keyword in node.keywords:
            if keyword.arg == key:
                yield keyword.value, scope
                return
        for value in (*node.args, *(k.value for k in node.keywords if k.arg is None)):
            yield from entries(project, value, key, scope, depth + 1)
    elif name in ("vars", "asdict") and len(node.args) == 1 and isinstance(key, str):
        attribute = ast.copy_location(ast.Attribute(node.args[0], key, ast.Load()), node)
        owner = project.class_of(node.args[0], scope)
        if owner is not None:
            for binding in project.attribute(owner, key):
                if binding.value is not None and not binding.path and binding.kind == "assign":
                    yield binding.value, binding.scope
        else:
            yield from option_defaults(project, attribute, scope)
    elif name in ("copy", "deepcopy", "create", "MappingProxyType") and len(node.args) <= 1:
        inner = node.args[0] if node.args else node.func.value if isinstance(node.func, ast.Attribute) else None
        if inner is not None:
            yield from entries(project, inner, key, scope, depth + 1)
    elif name == "get" and node.args and isinstance(node.func, ast.Attribute):
        outer = node.args[0]
        if isinstance(outer, ast.Constant) and isinstance(outer.value, str):
            for inner, where in entries(project, node.func.value, outer.value, scope, depth + 1):
                yield from entries(project, inner, key, where, depth + 1)


def _splits_paths(project: Project, function: Scope) -> bool:
    """True if the function takes keys like ``optim.lr`` apart to set what stands at the end of the path."""
    nodes = project.within(function, ast.Call)
    return any(isinstance(n, ast.Call) and last_name(n.func) in ("split", "rsplit", "partition") for n in nodes)


def _dotted(project: Project, node: ast.expr, key: str, scope: Scope, depth: int) -> Iterator[Entry]:
    """What overrides say of a path: ``{"optim.lr": 1e-3}`` or ``["optim.lr=1e-3"]``."""
    yield from entries(project, node, key, scope, depth + 1)
    bindings = project.bindings(node, scope) if isinstance(node, ast.Name | ast.Attribute) else []
    lists: list[ast.expr | None] = (
        [node, *(b.value for b in bindings if b.kind == "assign" and not b.path)] if len(bindings) < 2 else []
    )
    for given in lists:
        for item in given.elts if isinstance(given, ast.List | ast.Tuple) else []:
            if isinstance(item, ast.Constant) and isinstance(item.value, str) and item.value.startswith(f"{key}="):
                try:
                    value = ast.literal_eval(item.value.split("=", 1)[1])
                except (ValueError, SyntaxError, MemoryError, RecursionError):
                    continue
                yield ast.copy_location(ast.Constant(value), item), (bindings[0].scope if bindings else scope)


def _of_binding(project: Project, binding: Binding, key: str | int, depth: int) -> Iterator[Entry]:
    if binding.kind == "param":
        for value, where in project.arguments(binding):
            yield from entries(project, value, key, where, depth + 1)
    elif binding.kind == "append":
        yield from _set_later(binding, key)
    elif binding.kind == "assign" and binding.value is not None:
        if not binding.path:
            yield from entries(project, binding.value, key, binding.scope, depth + 1)
            return
        found: list[Entry] = [(binding.value, binding.scope)]
        for part in binding.path:
            found = [e for value, where in found for e in entries(project, value, part, where, depth + 1)]
        for value, where in found:
            yield from entries(project, value, key, where, depth + 1)


def _changes(binding: Binding, key: str | int) -> bool:
    """True where what stands under ``key`` is counted up, or a list whose places are named may change."""
    if isinstance(key, int):
        return binding.kind in ("append", "augment")
    if not isinstance(binding.node, ast.AugAssign) or not isinstance(binding.node.target, ast.Subscript):
        return False
    at = binding.node.target.slice
    return not isinstance(at, ast.Constant) or at.value == key


def _set_within(project: Project, bindings: list[Binding], key: str | int) -> Iterator[Entry]:
    """``table["optim"]["lr"] = value`` for the key ``optim.lr``, once and whatever happens before."""
    found: list[Entry] = []
    for binding in bindings if isinstance(key, str) and "." in key else ():
        if binding.kind != "append" or not isinstance(binding.node, ast.Assign) or binding.value is None:
            continue
        for target in binding.node.targets:
            match target:
                case ast.Subscript(
                    value=ast.Subscript(value=ast.Name() | ast.Attribute(), slice=ast.Constant(value=str() as outer)),
                    slice=ast.Constant(value=str() as inner),
                ) if f"{outer}.{inner}" == key:
                    above = list(project.ancestors(binding.node, binding.scope))
                    if any(isinstance(a, ast.If | ast.For | ast.While | ast.Try | ast.With) for a in above):
                        return
                    found.append((binding.value, binding.scope))
    if len(found) == 1:
        yield found[0]


def _set_later(binding: Binding, key: str | int) -> Iterator[Entry]:
    """``table[key] = value`` somewhere."""
    if not isinstance(binding.node, ast.Assign) or binding.value is None or binding.path:
        return
    for target in binding.node.targets:
        if (
            isinstance(target, ast.Subscript)
            and isinstance(target.slice, ast.Constant)
            and target.slice.value == key
            and not isinstance(target.value, ast.Subscript)
        ):
            yield binding.value, binding.scope
