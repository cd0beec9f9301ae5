"""The program with its names resolved: which function a call reaches, which class an object has, who calls what."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from trainwreck.code.calls import WRAPPERS, Call, annotation_of, default_of, enclosing_class, last_name
from trainwreck.code.scopes import Binding, FunctionNode, Scope, Walked, walk
from trainwreck.core.program import Problem, Program

MAX_DEPTH = 12
"""Steps of indirection that are followed for one name; more is no chain that a person wrote."""
UNINDEXED = (ast.Name, ast.Constant, ast.Attribute, ast.expr_context, ast.operator, ast.arg, ast.keyword)
"""Kinds that are too many to be kept by kind, and seldom asked for."""
ABSTRACT = frozenset([ast.AST, ast.stmt, ast.expr])
MAX_CHAIN = 40
"""Names that may wait for the class of the next one (``x = block(x)`` forty times over)."""


class Project:
    """All modules of a program with their scopes; answers questions about names. Unknown is None or an empty list."""

    def __init__(self, program: Program, targets: Mapping[str, str] | None = None, *, assume_newest: bool = True):
        self.program = program
        self.targets: Mapping[str, str] = targets or {}  # versions asked for by package; they win over pins
        self.assume_newest = assume_newest  # without a pin; a run that happened had the release that it had
        self.problems: list[Problem] = list(program.problems)
        self.walked: dict[str, Walked] = {}
        for path, module in program.modules.items():
            try:
                self.walked[path] = walk(module)
            except RecursionError:
                self.problems.append(Problem(path, "is nested too deeply to be analysed"))
        self._nodes: dict[Scope, dict[type[ast.AST], list[ast.AST]]] = {}
        self._classes: dict[ast.AST, Scope | None] = {}
        self._bases: dict[Scope, list[Scope]] = {}
        self._bound: dict[Binding, Scope | None] = {}
        self._objects: list[tuple[Call, Scope]] | None = None
        self._deep = 0
        self._callers: dict[Scope, list[Call]] = {}
        self.memo: dict[str, Any] = {}
        """Answers that cost a walk over everything, by the name of the question."""

    # ------------------------------------------------------------------ indexes
    @cached_property
    def scopes(self) -> list[Scope]:
        return [scope for walked in self.walked.values() for scope in walked.scopes]

    @cached_property
    def functions(self) -> list[Scope]:
        return [scope for scope in self.scopes if scope.kind == "function"]

    @cached_property
    def classes(self) -> list[Scope]:
        return [scope for scope in self.scopes if scope.kind == "class"]

    @cached_property
    def calls_by_name(self) -> Mapping[str, list[Call]]:
        table: dict[str, list[Call]] = {}
        for walked in self.walked.values():
            for node, scope in walked.calls:
                name = last_name(node.func)
                if name:
                    table.setdefault(name, []).append(Call(node, scope))
        return table

    @cached_property
    def calls_by_scope(self) -> Mapping[Scope, list[Call]]:
        table: dict[Scope, list[Call]] = {}
        for walked in self.walked.values():
            for node, scope in walked.calls:
                table.setdefault(scope, []).append(Call(node, scope))
        return table

    def calls(self, *names: str) -> Iterator[Call]:
        """Calls of anything with one of these last names, in the order of the files and lines."""
        for name in names:
            yield from self.calls_by_name.get(name, ())

    def parent(self, node: ast.AST, scope: Scope) -> ast.AST | None:
        return self.walked[scope.module.path].parents.get(node)

    def ancestors(self, node: ast.AST, scope: Scope) -> Iterator[ast.AST]:
        parents = self.walked[scope.module.path].parents
        while (above := parents.get(node)) is not None:
            yield above
            node = above

    def statement(self, node: ast.AST, scope: Scope) -> ast.stmt:
        """The statement that ``node`` is part of."""
        if isinstance(node, ast.stmt):
            return node
        return next(
            (a for a in self.ancestors(node, scope) if isinstance(a, ast.stmt)), ast.Pass(lineno=0, col_offset=0)
        )

    def within(self, scope: Scope, *kinds: type[ast.AST]) -> Iterator[ast.AST]:
        """Nodes of these kinds in the body of ``scope``, without those of functions and classes defined in it."""
        if any(issubclass(kind, UNINDEXED) or kind in ABSTRACT for kind in kinds):
            yield from (node for node in scope.nodes if isinstance(node, kinds))
            return
        table = self._nodes.get(scope)
        if table is None:
            table = self._nodes[scope] = {}
            for node in scope.nodes:
                if not isinstance(node, UNINDEXED):
                    table.setdefault(type(node), []).append(node)
        found = [kind for kind in kinds if kind in table]
        if len(found) == 1:
            yield from table[found[0]]
        elif found:
            yield from (node for node in scope.nodes if type(node) in found)

    # ------------------------------------------------------------------ names
    def lookup(self, name: str, scope: Scope) -> list[Binding]:
        """What ``name`` may be bound to where it is used in ``scope``: the bindings of the innermost scope that has
        any, and what is appended to it there or further in."""
        at: Scope | None = scope
        appended: list[Binding] = []
        first = True
        while at is not None:
            if at.kind != "class" or first:
                found = at.bindings.get(name, ())
                if any(b.kind not in ("append", "augment") for b in found):
                    return [*found, *appended]
                appended += found
            first = False
            at = at.parent
        return appended

    def dotted(self, node: ast.expr, scope: Scope, depth: int = 0) -> str:
        """The full name of what ``node`` refers to (``torch.nn.functional.relu``); as written if not imported."""
        if depth > MAX_DEPTH:
            return ""
        if isinstance(node, ast.Attribute):
            base = self.dotted(node.value, scope, depth + 1)
            return f"{base}.{node.attr}" if base else ""
        if not isinstance(node, ast.Name):
            return ""
        for binding in self.lookup(node.id, scope):
            if binding.kind == "import":
                return binding.target
            if binding.kind == "assign" and isinstance(binding.value, ast.Attribute) and not binding.path:
                return self.dotted(binding.value, binding.scope, depth + 1)
        return node.id

    def called(self, call: Call) -> str:
        """The full name of what is called."""
        return self.dotted(call.node.func, call.scope)

    def from_package(self, call: Call, *packages: str) -> bool:
        """True if the called thing comes from one of these packages (by its import)."""
        return self.called(call).split(".", 1)[0] in packages

    # ------------------------------------------------------------------ functions and classes
    def resolve(self, node: ast.expr, scope: Scope, depth: int = 0) -> Scope | None:
        """The function or class of the project that ``node`` names."""
        if depth > MAX_DEPTH:
            return None
        if isinstance(node, ast.Name):
            for binding in self.lookup(node.id, scope):
                if binding.kind in ("def", "class"):
                    return self._defined(binding)
                if binding.kind == "import":
                    return self._imported(binding)
                if (
                    binding.kind == "assign"
                    and isinstance(binding.value, ast.Name | ast.Attribute)
                    and not binding.path
                ):
                    return self.resolve(binding.value, binding.scope, depth + 1)
            return None
        if isinstance(node, ast.Attribute):
            base = node.value
            if isinstance(base, ast.Name) and base.id in ("self", "cls"):
                owner = enclosing_class(scope)
                return self.find_method(owner, node.attr) if owner is not None else None
            owner = self.class_of(base, scope, depth + 1)
            if owner is not None:
                return self.find_method(owner, node.attr)
            inner = self.resolve(base, scope, depth + 1)
            if inner is not None and inner.kind == "class":
                return self.find_method(inner, node.attr)
            name = self.dotted(base, scope)
            module = self.module(name, scope) if name else None
            return self._member(module, node.attr) if module is not None else None
        return None

    def _defined(self, binding: Binding) -> Scope | None:
        return next((s for s in binding.scope.children if s.node is binding.node), None)

    def _imported(self, binding: Binding) -> Scope | None:
        module_name, _, member = binding.target.rpartition(".")
        module = self.module(module_name, binding.scope)
        return self._member(module, member) if module is not None else None

    def module(self, dotted: str, scope: Scope) -> Scope | None:
        """The module of the program that ``scope`` imports by this name."""
        found = self._modules.get(dotted.lstrip(".").replace(".", "/"), ())
        return next((top for top in found if top is not scope), None)

    @cached_property
    def _modules(self) -> Mapping[str, list[Scope]]:
        """The modules by every end of their path, in the order of the files: ``c``, ``b/c`` and ``a/b/c``."""
        table: dict[str, list[Scope]] = {}
        for path, walked in self.walked.items():
            parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
            for start in range(len(parts)):
                table.setdefault("/".join(parts[start:]), []).append(walked.top)
        return table

    def _member(self, module: Scope, name: str) -> Scope | None:
        return next((c for c in reversed(module.children) if c.name == name), None)

    def bases(self, owner: Scope) -> list[Scope]:
        """The class itself and its bases inside the project, nearest first. A class that is its own base ends there."""
        if owner not in self._bases:
            found = self._bases[owner] = [owner]
            for at in found:
                for base in getattr(at.node, "bases", ()):
                    above = self.resolve(base, at.parent or at)
                    if above is not None and above.kind == "class" and above not in found and len(found) < MAX_DEPTH:
                        found.append(above)
        return self._bases[owner]

    def base_names(self, owner: Scope) -> set[str]:
        """Full names of all bases, those outside the project included."""
        names = {self.dotted(b, at.parent or at) for at in self.bases(owner) for b in getattr(at.node, "bases", ())}
        return names - {""}

    def is_a(self, owner: Scope, *suffixes: str) -> bool:
        """True if a base's full name ends with one of ``suffixes`` (``nn.Module``, ``Dataset``)."""
        return any(n == s or n.endswith("." + s) for n in self.base_names(owner) for s in suffixes)

    def find_method(self, owner: Scope, name: str) -> Scope | None:
        return next((m for c in self.bases(owner) if (m := c.method(name)) is not None), None)

    def attribute(self, owner: Scope, name: str) -> list[Binding]:
        """What ``self.name`` is set to, in the class or its bases; class-level assignments too."""
        return [b for c in self.bases(owner) for b in (*c.attributes.get(name, ()), *c.bindings.get(name, ()))]

    def class_of(self, node: ast.expr, scope: Scope, depth: int = 0) -> Scope | None:
        """The project's class of the object that ``node`` gives, where there is exactly one candidate in sight."""
        if depth > MAX_DEPTH:
            return None
        if node in self._classes:
            return self._classes[node]
        if self._deep > MAX_CHAIN:
            return None
        self._classes[node] = None
        self._deep += 1
        found = self._class_of(node, scope, depth)
        self._deep -= 1
        self._classes[node] = found
        return found

    def _class_of(self, node: ast.expr, scope: Scope, depth: int) -> Scope | None:
        match node:
            case ast.Name(id="self" | "cls"):
                owner = enclosing_class(scope)
                if owner is not None:
                    return owner
            case ast.Call():
                target = self.resolve(node.func, scope, depth + 1)
                if target is not None and target.kind == "class":
                    return target
                if target is not None:
                    for value in target.returns:
                        if value is not None and (inner := self.class_of(value, target, depth + 1)) is not None:
                            return inner
                if last_name(node.func) in WRAPPERS:
                    if isinstance(node.func, ast.Attribute) and (
                        inner := self.class_of(node.func.value, scope, depth + 1)
                    ):
                        return inner
                    if node.args:
                        return self.class_of(node.args[0], scope, depth + 1)
                return None
        for binding in self.bindings(node, scope):
            inner = self.class_of_binding(binding, depth + 1)
            if inner is not None:
                return inner
        return None

    def class_of_binding(self, binding: Binding, depth: int = 0) -> Scope | None:
        if depth > MAX_DEPTH:
            return None
        if binding not in self._bound:
            self._bound[binding] = None
            self._bound[binding] = self._class_of_binding(binding, depth)
        return self._bound[binding]

    def _class_of_binding(self, binding: Binding, depth: int) -> Scope | None:
        if binding.kind == "param":
            annotation = annotation_of(binding.scope.node, binding.name)
            if annotation is not None:
                found = self.resolve(annotation, binding.scope.parent or binding.scope)
                if found is not None and found.kind == "class":
                    return found
            for value, scope in self.arguments(binding):
                found = self.class_of(value, scope, depth + 1)
                if found is not None:
                    return found
            return None
        if binding.value is not None and binding.kind == "loop":
            from trainwreck.code.elements import element_class

            return element_class(self, binding.value, binding.path, binding.scope, depth + 1)
        if binding.value is None or binding.kind in ("append", "augment"):
            return None
        value = binding.value
        for step in binding.path:
            if isinstance(step, int) and isinstance(value, ast.Tuple | ast.List) and step < len(value.elts):
                value = value.elts[step]
            else:
                return None
        return self.class_of(value, binding.scope, depth + 1)

    def bindings(self, node: ast.expr, scope: Scope) -> list[Binding]:
        """What a name or an attribute of a known object may be bound to."""
        match node:
            case ast.Name():
                return self.lookup(node.id, scope)
            case ast.Attribute(value=ast.Name(id=base)):
                local = self.lookup(f"{base}.{node.attr}", scope)
                owner = self.class_of(node.value, scope, 1)
                return [*local, *(self.attribute(owner, node.attr) if owner is not None else ())]
            case ast.Attribute():
                owner = self.class_of(node.value, scope, 1)
                return self.attribute(owner, node.attr) if owner is not None else []
        return []

    def bindings_of_values(self, node: ast.expr, scope: Scope) -> bool:
        """True unless ``node`` names a module, a class or a function: something with a value of its own."""
        if isinstance(node, ast.Name):
            found = self.lookup(node.id, scope)
            return any(b.kind not in ("import", "def", "class") for b in found)
        if isinstance(node, ast.Attribute):
            return self.bindings_of_values(node.value, scope)
        return True

    # ------------------------------------------------------------------ calls between functions
    def callers(self, function: Scope) -> list[Call]:
        """Calls that reach ``function`` (for ``forward`` and ``__call__``: calls of objects of the class)."""
        if function in self._callers:
            return self._callers[function]
        self._callers[function] = []
        found: list[Call] = []
        owner = function.owner
        if function.name == "__init__" and owner is not None:
            found = [c for c in self.calls(owner.name) if self.resolve(c.node.func, c.scope) is owner]
        elif function.name in ("forward", "__call__") and owner is not None:
            found = [c for c, kind in self._object_calls() if kind is owner or owner in self.bases(kind)]
        else:
            for call in self.calls(function.name):
                if self.resolve(call.node.func, call.scope) is function:
                    found.append(call)
        self._callers[function] = found
        return found

    def _object_calls(self) -> list[tuple[Call, Scope]]:
        """Calls of objects of the project's classes, each with its class; while they are collected, those so far."""
        if self._objects is None:
            self._objects = []
            for walked in self.walked.values():
                for node, scope in walked.calls:
                    if isinstance(node.func, ast.Name | ast.Attribute):
                        kind = self.class_of(node.func, scope)
                        if kind is not None:
                            self._objects.append((Call(node, scope), kind))
            # what was not found while the collection was incomplete may be found now
            self._classes = {node: kind for node, kind in self._classes.items() if kind is not None}
            self._bound = {binding: kind for binding, kind in self._bound.items() if kind is not None}
            self._callers = {f: c for f, c in self._callers.items() if f.name not in ("forward", "__call__")}
        return list(self._objects)

    def arguments(self, binding: Binding) -> list[tuple[ast.expr, Scope]]:
        """The expressions that reach a parameter: what callers pass, and its default."""
        function = binding.scope
        if not isinstance(function.node, FunctionNode) or binding.name in ("self", "cls"):
            return []
        found: list[tuple[ast.expr, Scope]] = []
        names = function.positional
        if function.owner is not None and names[:1] in (["self"], ["cls"]):
            names = names[1:]
        missing = False
        callers = self.callers(function)
        for call in callers:
            value = call.argument(binding.name, names.index(binding.name) if binding.name in names else None)
            if value is not None:
                found.append((value, call.scope))
            else:
                missing = True
        default = default_of(function.node, binding.name)
        if default is not None and (missing or not callers):
            found.append((default, function.parent or function))
        return found
