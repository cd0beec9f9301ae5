"""Small functions of a program, worked out statement by statement for inputs of ours.

Nothing of the program runs: statements and operations of a table are carried out here, on lists, texts, numbers and
small arrays. What the tables do not know raises ``Unknown``, as does what takes too long; a question says nothing
then.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.trial.bench import Unknown
from trainwreck.code.scopes import FunctionNode, Scope

Thing = Any
MOST_STEPS = 20_000
"""Statements and expressions: a function over ten elements takes some hundreds."""
MOST_DEPTH = 12
LONGEST = 5_000
"""Elements of a list, a text or an array."""
Names = dict[str, Thing]
FAILS = (TypeError, ValueError, IndexError, KeyError, AttributeError, ArithmeticError, StopIteration)
"""What an operation raises that does not take what it is given."""


class _Left(Exception):
    """A function is left with a value, or a loop by ``break`` or ``continue``."""

    def __init__(self, how: str, value: Thing = None) -> None:
        super().__init__(how)
        self.how, self.value = how, value


class Closure:
    """A function of the program with the names around it."""

    def __init__(self, node: FunctionNode | ast.Lambda, scope: Scope, names: Names) -> None:
        self.node, self.scope, self.names = node, scope, names


class Steps:
    """Works out calls of functions. ``given``: values of names of the module that are not looked up."""

    def __init__(self, project: Project, given: Mapping[str, Thing] | None = None) -> None:
        from trainwreck.code.rehearsal.trial import words

        self.project, self.words = project, words
        self.given = dict(given or {})
        self.known: dict[tuple[int, str], Thing] = {}
        self.taken = self.depth = 0
        self.yielded: list[list[Thing]] = []

    def call(self, function: Scope, args: list[Thing], named: Mapping[str, Thing] | None = None) -> Thing:
        """What a function of the program returns; what it yields, as a list. Raises ``Unknown``."""
        if not isinstance(function.node, FunctionNode):
            raise Unknown
        import numpy as np

        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self._call(Closure(function.node, function, {}), args, dict(named or {}))
        except (_Left, RecursionError, MemoryError, *FAILS):
            raise Unknown from None

    def _call(self, closure: Closure, args: list[Thing], named: dict[str, Thing]) -> Thing:
        if self.depth > MOST_DEPTH:
            raise Unknown
        given = closure.node.args
        places = [a.arg for a in (*given.posonlyargs, *given.args)]
        names = dict(zip(places, args, strict=False))
        if len(args) > len(places):
            if given.vararg is None:
                raise Unknown
            names[given.vararg.arg] = tuple(args[len(places) :])
        names.update(named)
        defaults = dict(zip(reversed(places), reversed(given.defaults), strict=False))
        defaults.update({a.arg: d for a, d in zip(given.kwonlyargs, given.kw_defaults, strict=True) if d is not None})
        for name, default in defaults.items():
            if name not in names:
                names[name] = self.value(default, closure.names, closure.scope)
        if any(p not in names for p in (*places, *(a.arg for a in given.kwonlyargs))) or set(named) - set(names):
            raise Unknown
        names = {**closure.names, **names}
        if isinstance(closure.node, ast.Lambda):
            return self.value(closure.node.body, names, closure.scope)
        yields = any(isinstance(n, ast.Yield | ast.YieldFrom) for n in closure.scope.nodes)
        self.depth += 1
        self.yielded.append([])
        try:
            self.run(closure.node.body, names, closure.scope)
            return self.yielded[-1] if yields else None
        except _Left as left:
            if left.how != "return":
                raise Unknown from None
            return self.yielded[-1] if yields else left.value
        finally:
            self.depth -= 1
            self.yielded.pop()

    # ------------------------------------------------------------------ statements
    def run(self, body: list[ast.stmt], names: Names, scope: Scope) -> None:
        for statement in body:
            self._step()
            self._run(statement, names, scope)

    def _step(self) -> None:
        self.taken += 1
        if self.taken > MOST_STEPS:
            raise Unknown

    def _run(self, node: ast.stmt, names: Names, scope: Scope) -> None:
        match node:
            case ast.Return():
                raise _Left("return", self.value(node.value, names, scope) if node.value is not None else None)
            case ast.Assign():
                value = self.value(node.value, names, scope)
                for target in node.targets:
                    self.store(target, value, names, scope)
            case ast.AnnAssign() if node.value is not None:
                self.store(node.target, self.value(node.value, names, scope), names, scope)
            case ast.AugAssign():
                old = self.value(_loaded(node.target), names, scope)
                new = self.words.binary(node.op, old, self.value(node.value, names, scope), inplace=True)
                self.store(node.target, new, names, scope)
            case ast.If():
                self.run(
                    node.body if self.words.truth(self.value(node.test, names, scope)) else node.orelse, names, scope
                )
            case ast.For():
                self._loop(node, self.words.elements(self.value(node.iter, names, scope)), names, scope)
            case ast.While():
                self._loop(node, self._while(node.test, names, scope), names, scope)
            case ast.Expr(value=ast.Yield() as given):
                self.yielded[-1].append(self.value(given.value, names, scope) if given.value is not None else None)
            case ast.Expr(value=ast.YieldFrom() as given):
                self.yielded[-1].extend(self.words.elements(self.value(given.value, names, scope)))
            case ast.Expr():
                self.value(node.value, names, scope)
            case ast.With() if all(i.optional_vars is None for i in node.items):
                self.run(node.body, names, scope)
            case ast.FunctionDef():
                inner = next((c for c in scope.children if c.node is node), None)
                if inner is None or node.decorator_list:
                    raise Unknown
                names[node.name] = Closure(node, inner, names)
            case ast.Break():
                raise _Left("break")
            case ast.Continue():
                raise _Left("continue")
            case ast.Pass() | ast.AnnAssign() | ast.Assert():
                pass
            case _:
                raise Unknown

    def _while(self, test: ast.expr, names: Names, scope: Scope) -> Iterator[None]:
        while self.words.truth(self.value(test, names, scope)):
            yield None

    def _loop(self, node: ast.For | ast.While, over: Iterator[Thing], names: Names, scope: Scope) -> None:
        for item in over:
            self._step()
            if isinstance(node, ast.For):
                self.store(node.target, item, names, scope)
            try:
                self.run(node.body, names, scope)
            except _Left as left:
                if left.how == "break":
                    return
                if left.how != "continue":
                    raise
        self.run(node.orelse, names, scope)

    def store(self, target: ast.expr, value: Thing, names: Names, scope: Scope) -> None:
        match target:
            case ast.Name():
                names[target.id] = value
            case ast.Tuple() | ast.List():
                items = list(self.words.elements(value))
                starred = next((n for n, t in enumerate(target.elts) if isinstance(t, ast.Starred)), None)
                if starred is not None:
                    behind = len(target.elts) - starred - 1
                    items[starred : len(items) - behind] = [items[starred : len(items) - behind]]
                if len(items) != len(target.elts):
                    raise Unknown
                for one, item in zip(target.elts, items, strict=True):
                    self.store(one.value if isinstance(one, ast.Starred) else one, item, names, scope)
            case ast.Subscript():
                base = self.value(target.value, names, scope)
                self.words.put(base, self.index(target.slice, names, scope), value)
            case _:
                raise Unknown

    # ------------------------------------------------------------------ expressions
    def value(self, node: ast.expr, names: Names, scope: Scope) -> Thing:
        self._step()
        try:
            found = self._value(node, names, scope)
        except FAILS:
            raise Unknown from None
        if self.words.size(found) > LONGEST:
            raise Unknown
        return found

    def _value(self, node: ast.expr, names: Names, scope: Scope) -> Thing:
        match node:
            case ast.Constant():
                return node.value
            case ast.Name():
                return names[node.id] if node.id in names else self._global(node, scope)
            case ast.BinOp():
                one, other = self.value(node.left, names, scope), self.value(node.right, names, scope)
                return self.words.binary(node.op, one, other)
            case ast.UnaryOp():
                return self.words.unary(node.op, self.value(node.operand, names, scope))
            case ast.BoolOp():
                wanted = isinstance(node.op, ast.Or)
                found: Thing = None
                for item in node.values:
                    found = self.value(item, names, scope)
                    if self.words.truth(found) is wanted:
                        break
                return found
            case ast.Compare():
                left = self.value(node.left, names, scope)
                for op, right in zip(node.ops, node.comparators, strict=True):
                    other = self.value(right, names, scope)
                    found = self.words.compare(op, left, other)
                    if len(node.ops) == 1 or not self.words.truth(found):
                        return found
                    left = other
                return True
            case ast.IfExp():
                chosen = node.body if self.words.truth(self.value(node.test, names, scope)) else node.orelse
                return self.value(chosen, names, scope)
            case ast.Tuple() | ast.List() | ast.Set():
                items = self._items(node.elts, names, scope)
                return (
                    tuple(items) if isinstance(node, ast.Tuple) else set(items) if isinstance(node, ast.Set) else items
                )
            case ast.Dict() if all(k is not None for k in node.keys):
                pairs = zip(node.keys, node.values, strict=True)
                return {self.value(k, names, scope): self.value(v, names, scope) for k, v in pairs if k is not None}
            case ast.ListComp() | ast.GeneratorExp() | ast.SetComp():
                made = [self.value(node.elt, inner, scope) for inner in self._turns(node.generators, names, scope)]
                return set(made) if isinstance(node, ast.SetComp) else made
            case ast.DictComp():
                turns = self._turns(node.generators, names, scope)
                return {self.value(node.key, n, scope): self.value(node.value, n, scope) for n in turns}
            case ast.Subscript():
                base = self.value(node.value, names, scope)
                return self.words.take(base, self.index(node.slice, names, scope))
            case ast.Attribute():
                return self.words.attribute(self.value(node.value, names, scope), node.attr)
            case ast.Lambda():
                return Closure(node, scope, names)
            case ast.NamedExpr():
                names[node.target.id] = self.value(node.value, names, scope)
                return names[node.target.id]
            case ast.JoinedStr() | ast.FormattedValue():
                return "text"
            case ast.Call():
                return self._called(node, names, scope)
        raise Unknown

    def index(self, node: ast.expr, names: Names, scope: Scope) -> Thing:
        if isinstance(node, ast.Slice):
            ends = (node.lower, node.upper, node.step)
            return slice(*(None if e is None else self.words.plain(self.value(e, names, scope)) for e in ends))
        if isinstance(node, ast.Tuple):
            return tuple(self.index(e, names, scope) for e in node.elts)
        return self.value(node, names, scope)

    def _items(self, nodes: list[ast.expr], names: Names, scope: Scope) -> list[Thing]:
        found: list[Thing] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                found += self.words.elements(self.value(node.value, names, scope))
            else:
                found.append(self.value(node, names, scope))
        return found

    def _turns(self, generators: list[ast.comprehension], names: Names, scope: Scope) -> Iterator[Names]:
        if not generators:
            yield names
            return
        first, *rest = generators
        for item in self.words.elements(self.value(first.iter, names, scope)):
            inner = dict(names)
            self.store(first.target, item, inner, scope)
            if all(self.words.truth(self.value(test, inner, scope)) for test in first.ifs):
                yield from self._turns(rest, inner, scope)

    def _global(self, node: ast.Name, scope: Scope) -> Thing:
        if node.id in self.given:
            return self.given[node.id]
        key = (id(scope), node.id)
        if key not in self.known:
            function = self.project.resolve(node, scope)
            bindings = self.project.lookup(node.id, scope)
            if function is not None and isinstance(function.node, FunctionNode) and not function.node.decorator_list:
                self.known[key] = Closure(function.node, function, {})
            elif not bindings and node.id in self.words.BUILTINS:
                return self.words.BUILTINS[node.id]
            elif len(bindings) == 1 and bindings[0].kind == "assign" and bindings[0].value is not None:
                value = self.value(bindings[0].value, {}, bindings[0].scope)
                for part in bindings[0].path:
                    value = self.words.take(value, part)
                self.known[key] = value
            else:
                raise Unknown
        return self.known[key]

    def _called(self, node: ast.Call, names: Names, scope: Scope) -> Thing:
        args = self._items(node.args, names, scope)
        if any(k.arg is None for k in node.keywords):
            raise Unknown
        named = {str(k.arg): self.value(k.value, names, scope) for k in node.keywords}
        root: ast.expr = node.func
        while isinstance(root, ast.Attribute):
            root = root.value
        imported = isinstance(root, ast.Name) and root.id not in names and self._imported(root, scope)
        if imported:
            return self.words.library(self.project.dotted(node.func, scope), args, named, self.apply)
        if isinstance(node.func, ast.Attribute):
            base = self.value(node.func.value, names, scope)
            return self.words.method(base, node.func.attr, args, named, self.apply)
        return self.apply(self.value(node.func, names, scope), args, named)

    def _imported(self, root: ast.Name, scope: Scope) -> bool:
        found = self.project.lookup(root.id, scope)
        return bool(found) and all(b.kind == "import" for b in found)

    def apply(self, function: Thing, args: list[Thing], named: Mapping[str, Thing] | None = None) -> Thing:
        """Calls a function of the program, or one of the table."""
        if isinstance(function, Closure):
            return self._call(function, args, dict(named or {}))
        if not callable(function):
            raise Unknown
        return self.words.builtin(function, args, dict(named or {}), self.apply)


def _loaded(target: ast.expr) -> ast.expr:
    """A target as an expression that is read."""
    match target:
        case ast.Name():
            return ast.copy_location(ast.Name(target.id, ast.Load()), target)
        case ast.Subscript():
            return ast.copy_location(ast.Subscript(target.value, target.slice, ast.Load()), target)
    raise Unknown


Apply = Callable[..., Thing]
__all__ = ["Apply", "Closure", "Steps", "Thing", "Unknown"]
