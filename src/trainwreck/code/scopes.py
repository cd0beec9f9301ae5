"""Where names live: modules, classes, functions, and what each name was bound to, in one walk over a module."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from trainwreck.core.program import Module

ELEMENT = "*"
"""Stands in a path for "any element of it"."""

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
    _Walk(walked).block(module.tree, top)
    return walked


class _Walk:
    def __init__(self, walked: Walked) -> None:
        self.walked = walked

    def block(self, node: ast.AST, scope: Scope) -> None:
        parents = self.walked.parents
        for child in ast.iter_child_nodes(node):
            parents[child] = node
            self.visit(child, scope)

    def visit(self, node: ast.AST, scope: Scope) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._define(node, scope, "function")
                return
            case ast.ClassDef():
                self._define(node, scope, "class")
                return
            case ast.Call():
                self.walked.calls.append((node, scope))
                self._append(node, scope)
            case ast.Assign():
                for target in node.targets:
                    self._bind(target, node.value, (), node, scope, "assign")
            case ast.AnnAssign():
                self._bind(node.target, node.value, (), node, scope, "assign")
            case ast.AugAssign():
                self._bind(node.target, node.value, (), node, scope, "augment")
            case ast.NamedExpr():
                self._bind(node.target, node.value, (), node, scope, "assign")
            case ast.For() | ast.AsyncFor():
                self._bind(node.target, node.iter, (ELEMENT,), node, scope, "loop")
            case ast.comprehension():
                self._bind(node.target, node.iter, (ELEMENT,), node.target, scope, "loop")
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    if item.optional_vars is not None:
                        self._bind(item.optional_vars, item.context_expr, (), node, scope, "with")
            case ast.Import():
                for alias in node.names:
                    name = alias.asname or alias.name.split(".")[0]
                    dotted = alias.name if alias.asname else name
                    self._add(Binding(name, "import", node, scope, target=dotted))
            case ast.ImportFrom():
                base = "." * node.level + (node.module or "")
                for alias in node.names:
                    dotted = f"{base}.{alias.name}" if base and not base.endswith(".") else base + alias.name
                    self._add(Binding(alias.asname or alias.name, "import", node, scope, target=dotted))
            case ast.Return():
                scope.returns.append(node.value)
            case ast.Yield() if node.value is not None:
                scope.yields.append(node.value)
            case ast.YieldFrom():
                scope.yields.append(ast.copy_location(ast.Starred(node.value, ast.Load()), node))
            case ast.ExceptHandler() if node.name:
                self._add(Binding(node.name, "except", node, scope))
            case ast.Lambda():
                args = node.args
                for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs):
                    self._add(Binding(arg.arg, "param", node, scope))
        self.block(node, scope)

    def _define(self, node: FunctionNode | ast.ClassDef, scope: Scope, kind: Literal["function", "class"]) -> None:
        inner = Scope(kind, node.name, scope.module, node, scope)
        scope.children.append(inner)
        self.walked.scopes.append(inner)
        self._add(Binding(node.name, "def" if kind == "function" else "class", node, scope))
        if isinstance(node, FunctionNode):
            for name in inner.params:
                inner.bindings.setdefault(name, []).append(Binding(name, "param", node, inner))
        parents = self.walked.parents
        for name, value in ast.iter_fields(node):
            items = value if isinstance(value, list) else [value]
            for child in items:
                if isinstance(child, ast.AST):
                    parents[child] = node
                    self.visit(child, inner if name == "body" else scope)

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
