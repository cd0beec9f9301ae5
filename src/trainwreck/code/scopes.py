"""Where names live: modules, classes, functions, and what each name was bound to, in one walk over a module."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from trainwreck.core.program import Module

ELEMENT = "*"
"""Stands in a path for "any element of it"."""
MAX_NESTING = 400
"""Nodes within nodes: Python's own recursion ends near a thousand, and rules take several calls a level."""

Path = tuple[int | str, ...]
Kind = Literal["assign", "loop", "with", "param", "import", "def", "class", "augment", "append", "except"]
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(eq=False, slots=True)
class Binding:
    """One place where a name gets a value. ``path`` says which part of ``value`` it gets (unpacking, iteration).

    ``target`` is the dotted name of an import. ``append`` bindings are ``x.append(value)`` and ``x[i] = value``.
    """

    name: str
    kind: Kind
    node: ast.AST
    scope: Scope
    value: ast.expr | None = None
    path: Path = ()
    target: str = ""

    @property
    def line(self) -> int:
        return int(getattr(self.node, "lineno", 0))


@dataclass(eq=False, repr=False)
class Scope:
    """A module, class or function with what is bound, called, returned and yielded in it."""

    kind: Literal["module", "class", "function"]
    name: str
    module: Module
    node: ast.AST
    parent: Scope | None = None
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    returns: list[ast.expr | None] = field(default_factory=list)
    yields: list[ast.expr] = field(default_factory=list)
    children: list[Scope] = field(default_factory=list)
    nodes: list[ast.AST] = field(default_factory=list)
    """Every node of the body in the order of the text, functions and classes in it unopened; no shared marks."""
    attributes: dict[str, list[Binding]] = field(default_factory=dict)
    """Of a class: what ``self.x`` was set to, in any method."""

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name} of {self.module.path}>"

    @property
    def params(self) -> list[str]:
        """Names of the parameters of a function, in order, keyword-only ones last."""
        if not isinstance(self.node, FunctionNode):
            return []
        args = self.node.args
        return [a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)]

    @property
    def positional(self) -> list[str]:
        if not isinstance(self.node, FunctionNode):
            return []
        return [a.arg for a in (*self.node.args.posonlyargs, *self.node.args.args)]

    @property
    def owner(self) -> Scope | None:
        """The class whose method this function is."""
        above = self.parent
        return above if self.kind == "function" and above is not None and above.kind == "class" else None

    def method(self, name: str) -> Scope | None:
        return next((c for c in self.children if c.kind == "function" and c.name == name), None)

    @property
    def decorators(self) -> Sequence[ast.expr]:
        return getattr(self.node, "decorator_list", ())


@dataclass(eq=False)
class Walked:
    """What one walk over a module gives."""

    top: Scope
    scopes: list[Scope]
    parents: dict[ast.AST, ast.AST]
    calls: list[tuple[ast.Call, Scope]]


def walk(module: Module) -> Walked:
    """Scopes, bindings, parents and calls of ``module``. Raises RecursionError on absurd nesting."""
    top = Scope("module", module.path, module, module.tree)
    walked = Walked(top, [top], {}, [])
    _Walk(walked).block(module.tree, top, top.nodes)
    return walked


_LEAVES = frozenset([ast.Name, ast.Constant, ast.Pass, ast.Break, ast.Continue, ast.alias, ast.Global, ast.Nonlocal])
_PLAIN_FIELDS = frozenset(["ctx", "op", "ops", "id", "attr", "level", "module", "type_comment", "simple", "is_async"])
"""Fields that hold no nodes of their own: texts, and the marks (``Load``, ``Add``) that the whole tree shares."""


_FIELDS: dict[type[ast.AST], Sequence[str]] = {}


def _children(kind: type[ast.AST]) -> Sequence[str]:
    found = _FIELDS.get(kind)
    if found is None:
        found = _FIELDS[kind] = tuple(name for name in kind._fields if name not in _PLAIN_FIELDS)
    return found


class _Walk:
    """One pass in the order of the text. The table of handlers replaces a chain of tests: most nodes have none."""

    def __init__(self, walked: Walked) -> None:
        self.walked = walked
        self.parents = walked.parents
        self.handlers: dict[type[ast.AST], Callable[[Any, Scope], None]] = {
            ast.Call: self._call,
            ast.Assign: self._assign,
            ast.AnnAssign: lambda node, scope: self._bind(node.target, node.value, (), node, scope, "assign"),
            ast.AugAssign: lambda node, scope: self._bind(node.target, node.value, (), node, scope, "augment"),
            ast.NamedExpr: lambda node, scope: self._bind(node.target, node.value, (), node, scope, "assign"),
            ast.For: self._loop,
            ast.AsyncFor: self._loop,
            ast.comprehension: self._comprehension,
            ast.With: self._with,
            ast.AsyncWith: self._with,
            ast.Import: self._import,
            ast.ImportFrom: self._import_from,
            ast.Return: lambda node, scope: scope.returns.append(node.value),
            ast.Yield: self._yield,
            ast.YieldFrom: self._yield_from,
            ast.ExceptHandler: self._except,
            ast.Lambda: self._lambda,
        }

    def block(self, node: ast.AST, scope: Scope, nodes: list[ast.AST] | None, depth: int = 0) -> None:
        """Visit the children of ``node``; ``nodes`` takes them down where they belong to the body of ``scope``."""
        if depth > MAX_NESTING:
            raise RecursionError
        for name in _children(type(node)):
            value = getattr(node, name, None)
            if isinstance(value, list):
                for child in value:
                    if isinstance(child, ast.AST):
                        self.visit(child, node, scope, nodes, depth)
            elif isinstance(value, ast.AST):
                self.visit(value, node, scope, nodes, depth)

    def visit(self, node: ast.AST, parent: ast.AST, scope: Scope, nodes: list[ast.AST] | None, depth: int) -> None:
        self.parents[node] = parent
        if nodes is not None:
            nodes.append(node)
        kind = type(node)
        if kind in _LEAVES:
            return
        if isinstance(node, FunctionNode | ast.ClassDef):
            self._define(node, scope, depth)
            return
        handler = self.handlers.get(kind)
        if handler is not None:
            handler(node, scope)
        self.block(node, scope, nodes, depth + 1)

    def _call(self, node: ast.Call, scope: Scope) -> None:
        self.walked.calls.append((node, scope))
        self._append(node, scope)

    def _assign(self, node: ast.Assign, scope: Scope) -> None:
        for target in node.targets:
            self._bind(target, node.value, (), node, scope, "assign")

    def _loop(self, node: ast.For | ast.AsyncFor, scope: Scope) -> None:
        self._bind(node.target, node.iter, (ELEMENT,), node, scope, "loop")

    def _comprehension(self, node: ast.comprehension, scope: Scope) -> None:
        self._bind(node.target, node.iter, (ELEMENT,), node.target, scope, "loop")

    def _with(self, node: ast.With | ast.AsyncWith, scope: Scope) -> None:
        for item in node.items:
            if item.optional_vars is not None:
                self._bind(item.optional_vars, item.context_expr, (), node, scope, "with")

    def _import(self, node: ast.Import, scope: Scope) -> None:
        for alias in node.names:
            name = alias.asname or alias.name.split(".")[0]
            dotted = alias.name if alias.asname else name
            self._add(Binding(name, "import", node, scope, target=dotted))

    def _import_from(self, node: ast.ImportFrom, scope: Scope) -> None:
        base = "." * node.level + (node.module or "")
        for alias in node.names:
            dotted = f"{base}.{alias.name}" if base and not base.endswith(".") else base + alias.name
            self._add(Binding(alias.asname or alias.name, "import", node, scope, target=dotted))

    def _yield(self, node: ast.Yield, scope: Scope) -> None:
        if node.value is not None:
            scope.yields.append(node.value)

    def _yield_from(self, node: ast.YieldFrom, scope: Scope) -> None:
        scope.yields.append(ast.copy_location(ast.Starred(node.value, ast.Load()), node))

    def _except(self, node: ast.ExceptHandler, scope: Scope) -> None:
        if node.name:
            self._add(Binding(node.name, "except", node, scope))

    def _lambda(self, node: ast.Lambda, scope: Scope) -> None:
        args = node.args
        for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs):
            self._add(Binding(arg.arg, "param", node, scope))

    def _define(self, node: FunctionNode | ast.ClassDef, scope: Scope, depth: int) -> None:
        kind: Literal["class", "function"] = "class" if isinstance(node, ast.ClassDef) else "function"
        inner = Scope(kind, node.name, scope.module, node, scope)
        scope.children.append(inner)
        self.walked.scopes.append(inner)
        self._add(Binding(node.name, "def" if kind == "function" else "class", node, scope))
        for name in inner.params:
            inner.bindings.setdefault(name, []).append(Binding(name, "param", node, inner))
        for name in _children(type(node)):
            value = getattr(node, name, None)
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    body = name == "body"
                    self.visit(child, node, inner if body else scope, inner.nodes if body else None, depth + 1)

    def _bind(
        self, target: ast.expr, value: ast.expr | None, path: Path, node: ast.AST, scope: Scope, kind: Kind
    ) -> None:
        match target:
            case ast.Name():
                self._add(Binding(target.id, kind, node, scope, value, path))
            case ast.Tuple() | ast.List():
                for index, item in enumerate(target.elts):
                    inner = item.value if isinstance(item, ast.Starred) else item
                    self._bind(inner, value, (*path, index), node, scope, kind)
            case ast.Attribute(value=ast.Name(id=base)):
                owner = scope.owner
                if owner is not None and base in ("self", "cls"):
                    binding = Binding(target.attr, kind, node, scope, value, path)
                    owner.attributes.setdefault(target.attr, []).append(binding)
                else:
                    self._add(Binding(f"{base}.{target.attr}", kind, node, scope, value, path))
            case ast.Subscript():
                key = _name(target.value)
                if key is not None:
                    self._add_to(key, Binding(key, "append", node, scope, value, path), scope)

    def _append(self, call: ast.Call, scope: Scope) -> None:
        func = call.func
        if not isinstance(func, ast.Attribute) or not call.args:
            return
        if func.attr in ("append", "add", "extend", "appendleft", "insert", "update"):
            key = _name(func.value)
            if key is not None:
                path: Path = (ELEMENT,) if func.attr in ("extend", "update") else ()
                self._add_to(key, Binding(key, "append", call, scope, call.args[-1], path), scope)

    def _add_to(self, key: str, binding: Binding, scope: Scope) -> None:
        base, _, attribute = key.partition(".")
        owner = scope.owner
        if attribute and owner is not None and base == "self":
            binding.name = attribute
            owner.attributes.setdefault(attribute, []).append(binding)
        else:
            scope.bindings.setdefault(key, []).append(binding)

    def _add(self, binding: Binding) -> None:
        binding.scope.bindings.setdefault(binding.name, []).append(binding)


def _name(node: ast.expr) -> str | None:
    """``x`` or ``base.attr`` as written, else None."""
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute(value=ast.Name(id=base)):
            return f"{base}.{node.attr}"
        case ast.Subscript():
            return _name(node.value)
    return None
