"""What one function of a rule needs to stand in a program before it yields, or returns something that is true."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Protocol

Need = frozenset[str] | None
"""At least one of these words stands in the program; empty: nothing is ever seen; None: not known."""
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef

COPIES = frozenset(["list", "sorted", "set", "tuple", "reversed", "enumerate", "iter", "bool", "any", "frozenset"])
READERS = COPIES | frozenset(["len", "next", "zip", "min", "max", "sum", "id", "str", "isinstance", "Counter", "all"])
"""Calls that leave alone what they are given."""
GROWING = frozenset(["append", "add", "extend", "update", "setdefault", "insert", "appendleft"])


class Names(Protocol):
    """What is known of the file that a function stands in."""

    def need(self, name: str) -> Need:
        """What another function, by its name there, needs."""

    def constants(self, node: ast.expr) -> list[str] | None:
        """The words that an expression holds, None where they are not written out."""

    def holds(self, name: str) -> bool:
        """True if function ``name`` returns an object that holds nothing where its words are missing."""

    def is_source(self, name: str) -> bool:
        """True if ``name`` is the function that gives the text of the whole program."""


class Function:
    """One function: what its yields and returns need."""

    def __init__(self, names: Names, node: FunctionNode) -> None:
        self.names, self.node = names, node
        inner = list(_own(node))
        self.generator = any(isinstance(n, ast.Yield | ast.YieldFrom) for n in inner)
        self.assigned: dict[str, list[ast.expr | None]] = {}
        for n in inner:
            if isinstance(n, ast.Assign):
                for target in n.targets:
                    self._assign(target, n.value)
            elif isinstance(n, ast.AnnAssign | ast.NamedExpr):
                self._assign(n.target, n.value)
            elif isinstance(n, ast.AugAssign | ast.For | ast.AsyncFor | ast.comprehension):
                self._assign(n.target, None)
            elif isinstance(n, ast.With):
                for item in n.items:
                    self._assign(item.optional_vars, None)
        for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            self.assigned.setdefault(arg.arg, []).append(None)
        self.before: dict[str, list[Need]] | None = None
        self.grown: dict[str, list[Need]] = {}
        self.results: list[Need] = []
        self.asked: set[str] = set()

    def _assign(self, target: ast.AST | None, value: ast.expr | None) -> None:
        match target:
            case ast.Name():
                self.assigned.setdefault(target.id, []).append(value)
            case ast.Subscript():
                self.assigned.setdefault(ast.unparse(target), []).append(value)
            case ast.Tuple() | ast.List():
                for item in target.elts:
                    self._assign(item, None)

    def need(self) -> Need:
        # The first round takes collections that are filled here for unknown, the others know what fills them.
        for _ in range(3):
            self.results, self.grown = [], {}
            self.block(self.node.body, [])
            self.before = self.grown
        return _either(self.results)

    # ------------------------------------------------------------------ statements
    def block(self, statements: Sequence[ast.stmt], gates: list[Need]) -> None:
        gates = list(gates)
        for statement in statements:
            self.statement(statement, gates)
            if isinstance(statement, ast.If) and _ends(statement.body) and not statement.orelse:
                gates.append(self.false(statement.test))

    def statement(self, node: ast.stmt, gates: list[Need]) -> None:
        match node:
            case ast.For() | ast.AsyncFor():
                self.expressions(node.iter, gates)
                self.block(node.body, [*gates, self.some(node.iter)])
                self.block(node.orelse, gates)
            case ast.While():
                self.expressions(node.test, gates)
                self.block(node.body, [*gates, self.true(node.test)])
                self.block(node.orelse, gates)
            case ast.If():
                self.expressions(node.test, gates)
                self.block(node.body, [*gates, self.true(node.test)])
                self.block(node.orelse, [*gates, self.false(node.test)])
            case ast.With() | ast.AsyncWith():
                self.block(node.body, gates)
            case ast.Try():
                for part in (node.body, node.orelse, node.finalbody, *(h.body for h in node.handlers)):
                    self.block(part, gates)
            case ast.Match():
                for case in node.cases:
                    self.block(case.body, gates)
            case ast.Return() if not self.generator:
                self.results.append(_all([*gates, self.some(node.value)]) if node.value is not None else frozenset())
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                # a function in a function may yield or fill anything
                if any(isinstance(n, ast.Call) for n in ast.walk(node)):
                    for name in {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}:
                        self.grown.setdefault(name, []).append(None)
            case _:
                self.expressions(node, gates)

    def expressions(self, node: ast.AST, gates: list[Need]) -> None:
        """Yields, and what is put into local collections."""
        for inner in ast.walk(node):
            match inner:
                case ast.Yield():
                    self.results.append(_all(gates))
                case ast.YieldFrom():
                    self.results.append(_all([*gates, self.some(inner.value)]))
                case ast.Call(func=ast.Attribute(value=target, attr=attr)) if attr in GROWING:
                    more = [self.some(inner.args[0])] if attr in ("extend", "update") and len(inner.args) == 1 else []
                    for name in _bases(target):
                        self.grown.setdefault(name, []).append(_all([*gates, *more]))
                case ast.Call(func=func, args=args, keywords=keywords):
                    # whoever is handed a collection may fill it
                    if not (isinstance(func, ast.Name) and func.id in READERS):
                        self._unknown([*args, *(k.value for k in keywords)])
                case ast.Attribute(value=target, attr=attr) if attr in GROWING:
                    self._unknown([target] if not _is_called(node, inner) else [])
                case ast.Assign(targets=targets):
                    self._unknown([inner.value] if any(isinstance(t, ast.Name | ast.Tuple) for t in targets) else [])
                    for target in targets:
                        if isinstance(target, ast.Subscript):
                            for name in _bases(target.value):
                                self.grown.setdefault(name, []).append(_all(gates))
                case ast.AugAssign(target=target):
                    for name in _bases(target):
                        self.grown.setdefault(name, []).append(_all([*gates, self.some(inner.value)]))

    def _unknown(self, values: Iterable[ast.expr]) -> None:
        for value in values:
            inner = value.value if isinstance(value, ast.Starred) else value
            if isinstance(inner, ast.Name):
                self.grown.setdefault(inner.id, []).append(None)

    # ------------------------------------------------------------------ expressions
    def some(self, node: ast.expr | None) -> Need:
        """What is needed for ``node`` to hold anything (a collection) or to be true."""
        match node:
            case None:
                return None
            case ast.Constant():
                return None if node.value else frozenset()
            case ast.List() | ast.Tuple() | ast.Set():
                return _either([self.some(e.value) if isinstance(e, ast.Starred) else None for e in node.elts])
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                gates = [self.some(g.iter) for g in node.generators]
                return _all([*gates, *(self.true(t) for g in node.generators for t in g.ifs)])
            case ast.Name():
                return self.local(node.id)
            case ast.IfExp():
                return _either(
                    [
                        _all([self.true(node.test), self.some(node.body)]),
                        _all([self.false(node.test), self.some(node.orelse)]),
                    ]
                )
            case ast.BinOp(op=ast.Add()):
                return _either([self.some(node.left), self.some(node.right)])
            case ast.BoolOp() | ast.Compare() | ast.UnaryOp():
                return self.true(node)
            case ast.Subscript():
                key = ast.unparse(node)
                if key in self.assigned:
                    return self.local(key)
                return self.some(node.value) if isinstance(node.slice, ast.Slice | ast.Constant) else None
            case ast.Starred():
                return self.some(node.value)
            case ast.Attribute():
                return self.held(node.value)
            case ast.Call():
                return self.call(node)
        return None

    def held(self, node: ast.expr) -> Need:
        """What an object that a helper makes needs in order to hold anything."""
        if isinstance(node, ast.Name):
            values = self.assigned.get(node.id, [])
            return self.held(values[0]) if len(values) == 1 and values[0] is not None else None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and self.names.holds(node.func.id):
            return self.names.need(node.func.id)
        return None

    def call(self, node: ast.Call) -> Need:
        match node.func:
            case ast.Attribute(value=ast.Name(id="project"), attr="calls"):
                words = [self.names.constants(a) for a in node.args]
                return None if any(w is None for w in words) else frozenset(w for found in words for w in found or ())
            case ast.Attribute(value=ast.Attribute(value=ast.Name(id="project"), attr="calls_by_name"), attr="get"):
                found = self.names.constants(node.args[0])
                return frozenset(found) if found else None
            case ast.Attribute(value=inner, attr="items" | "values" | "keys" | "copy"):
                return self.some(inner)
            case ast.Name(id=name) if name in COPIES and name not in self.assigned:
                return self.some(node.args[0]) if node.args else frozenset()
            case ast.Name(id="next") if node.args:
                rest = self.some(node.args[1]) if len(node.args) > 1 else frozenset[str]()
                return _either([self.some(node.args[0]), rest])
            case ast.Name(id="dict" | "defaultdict" | "Counter" | "deque") if not node.keywords:
                plain = node.func.id == "defaultdict" or not node.args
                return frozenset() if plain else self.some(node.args[0])
            case ast.Name(id="zip" | "product") if node.args:
                return _all([self.some(a) for a in node.args])
            case ast.Name(id="chain"):
                return _either([self.some(a) for a in node.args])
            case ast.Name(id="further") if len(node.args) > 2:
                # what was found already, and what the rehearsal answers
                return _either([self.some(node.args[2]), self.names.need("further")])
            case ast.Name(id=name) if name not in self.assigned:
                return self.names.need(name)
        return None

    def local(self, name: str) -> Need:
        """A local collection: what it is assigned, and what is put into it."""
        values = self.assigned.get(name)
        if not values or None in values or name in self.asked:
            return None
        self.asked.add(name)
        grown = [None] if self.before is None else self.before.get(name, ())
        found = _either([*(self.some(value) for value in values), *grown])
        self.asked.discard(name)
        return found

    def true(self, test: ast.expr) -> Need:
        match test:
            case ast.UnaryOp(op=ast.Not()):
                return self.false(test.operand)
            case ast.BoolOp(op=ast.And()):
                return _all([self.true(v) for v in test.values])
            case ast.BoolOp(op=ast.Or()):
                return _either([self.true(v) for v in test.values])
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                if isinstance(op, ast.In) and self.whole_text(right):
                    found = self.names.constants(left)
                    return frozenset(found) if found else None
                if isinstance(op, ast.IsNot) and isinstance(right, ast.Constant) and right.value is None:
                    return self.first(left)
                if isinstance(op, ast.Eq | ast.Gt | ast.GtE) and isinstance(right, ast.Constant):
                    least = 0 if isinstance(op, ast.Gt) else 1
                    if (size := _sized(left)) is not None and _number(right.value) >= least:
                        return self.some(size)
                return None
            case ast.NamedExpr():
                return self.some(test.value)
            case ast.Compare() | ast.UnaryOp():
                return None
        return self.some(test)

    def first(self, node: ast.expr) -> Need:
        """What is needed for ``next(..., None)``, written here or in the one place that sets a name, not to be None."""
        match node:
            case ast.Name():
                values = self.assigned.get(node.id, [])
                return self.first(values[0]) if len(values) == 1 and isinstance(values[0], ast.Call) else None
            case ast.NamedExpr():
                return self.first(node.value)
            case ast.Call(func=ast.Name(id="next"), args=[items, ast.Constant(value=None)]):
                return self.some(items)
        return None

    def false(self, test: ast.expr) -> Need:
        match test:
            case ast.UnaryOp(op=ast.Not()):
                return self.true(test.operand)
            case ast.BoolOp(op=ast.Or()):
                return _all([self.false(v) for v in test.values])
            case ast.BoolOp(op=ast.And()):
                return _either([self.false(v) for v in test.values])
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                if isinstance(op, ast.NotIn) and self.whole_text(right):
                    found = self.names.constants(left)
                    return frozenset(found) if found else None
                if isinstance(op, ast.Is) and isinstance(right, ast.Constant) and right.value is None:
                    return self.first(left)
                size = _sized(left)
                if isinstance(op, ast.NotEq | ast.Lt) and isinstance(right, ast.Constant) and size is not None:
                    return self.some(size) if _number(right.value) >= 1 else None
        return None

    def whole_text(self, node: ast.expr) -> bool:
        """True for ``source(project)``, directly or by a local name, and for the text of one module."""
        if isinstance(node, ast.Attribute):
            return node.attr == "text" and isinstance(node.value, ast.Attribute) and node.value.attr == "module"
        if isinstance(node, ast.Name):
            values = self.assigned.get(node.id, [])
            return len(values) == 1 and values[0] is not None and self.whole_text(values[0])
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            return False
        return self.names.is_source(node.func.id)


def _all(gates: Iterable[Need]) -> Need:
    """Everything has to hold: the narrowest condition stands for all of them."""
    known = [g for g in gates if g is not None]
    return min(known, key=lambda g: (len(g), sorted(g))) if known else None


def _either(needs: Iterable[Need]) -> Need:
    found: frozenset[str] = frozenset()
    for need in needs:
        if need is None:
            return None
        found |= need
    return found


def _own(node: ast.AST) -> list[ast.AST]:
    """The nodes of a function, without those of functions in it."""
    found: list[ast.AST] = []
    todo = list(ast.iter_child_nodes(node))
    while todo:
        at = todo.pop()
        found.append(at)
        if not isinstance(at, FunctionNode | ast.Lambda | ast.ClassDef):
            todo += ast.iter_child_nodes(at)
    return found


def _ends(body: Sequence[ast.stmt]) -> bool:
    return isinstance(body[-1], ast.Return | ast.Continue | ast.Break | ast.Raise)


def _bases(node: ast.AST) -> list[str]:
    """The names under which ``node`` (``x``, ``x[k]``, ``x.setdefault(k, [])``) may be known."""
    found = [ast.unparse(node)]
    while not isinstance(node, ast.Name):
        match node:
            case ast.Subscript() | ast.Attribute() | ast.Starred():
                node = node.value
            case ast.Call():
                node = node.func
            case _:
                return found
        found.append(ast.unparse(node))
    return found


def _is_called(root: ast.AST, function: ast.AST) -> bool:
    return any(isinstance(n, ast.Call) and n.func is function for n in ast.walk(root))


def _sized(node: ast.expr) -> ast.expr | None:
    """The collection whose length ``node`` is."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len" and node.args:
        return node.args[0]
    return None


def _number(value: object) -> int:
    return value if isinstance(value, int) else -1
