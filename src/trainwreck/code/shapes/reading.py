"""One pass over code with shapes for values: statements in their order, branches joined, short loops unrolled.

Nothing is run. A test that can't be decided makes both branches count; a loop whose length is unknown makes every name
that it writes unknown. What can't be told is ``UNKNOWN``, and never a clash.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from trainwreck.code.calls import written
from trainwreck.code.project import Project
from trainwreck.code.scopes import Scope
from trainwreck.code.shapes.domain import ABOUT_SHAPES, MANY, UNKNOWN, Clash, Instance, Items, Shape, Value, joined

MAX_STEPS = 20_000
"""Expressions read for one question; a network of a hundred layers has some thousand."""
MAX_TOTAL = 60_000
"""Expressions read for all questions of a project, and one more for each of its lines: two seconds at most."""
MAX_DEPTH = 12
MAX_TURNS = 24
"""Turns of a loop that are followed one by one."""
Env = dict[str, Value]


@dataclass(eq=False)
class Frame:
    """The names of one function as far as they are known, and what it returned."""

    scope: Scope
    names: Env
    instance: Instance | None = None
    returned: list[Value] | None = None
    depth: int = 0


class Spent(Exception):
    """The budget of one question is used up."""


def left(project: Project) -> list[int]:
    """The budget of all questions of ``project`` together, as a list of one number that they count down."""
    if "shapes: steps left" not in project.memo:
        lines = sum(len(walked.top.module.lines) for walked in project.walked.values())
        project.memo["shapes: steps left"] = [MAX_TOTAL + lines]
    budget: list[int] = project.memo["shapes: steps left"]
    return budget


_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


class Statements:
    """Statements; expressions are read by ``Reading``, which inherits this."""

    project: Project
    found: list[Clash]
    steps: int

    def value(self, node: ast.expr, frame: Frame) -> Value:
        raise NotImplementedError

    def block(self, body: list[ast.stmt], frame: Frame) -> bool:
        """Reads ``body``; False where it surely leaves the block before its end."""
        return all(self.statement(statement, frame) for statement in body)

    def statement(self, node: ast.stmt, frame: Frame) -> bool:
        match node:
            case ast.Assign():
                value = self.value(node.value, frame)
                for target in node.targets:
                    self.store(target, value, frame)
            case ast.AnnAssign(value=ast.expr() as given):
                self.store(node.target, self.value(given, frame), frame)
            case ast.AugAssign():
                load = ast.copy_location(ast.BinOp(_loaded(node.target), node.op, node.value), node)
                self.store(node.target, self.value(load, frame), frame)
            case ast.Expr():
                self.value(node.value, frame)
            case ast.Return():
                given_back = self.value(node.value, frame) if node.value is not None else None
                if frame.returned is not None:
                    frame.returned.append(given_back)
                return False
            case ast.Raise() | ast.Continue() | ast.Break():
                return False
            case ast.If():
                return self._branch(node, frame)
            case ast.For():
                self._loop(node, frame)
            case ast.While():
                self._havoc(node.body, frame, read=True)
            case ast.With() | ast.AsyncWith():
                return self.block(node.body, frame)
            case ast.Try():
                self._havoc([*node.body, *[s for h in node.handlers for s in h.body]], frame, read=True)
                self.block(node.finalbody, frame)
            case ast.FunctionDef() | ast.ClassDef() | ast.AsyncFunctionDef():
                frame.names.pop(node.name, None)
            case ast.Delete():
                for name in ast.walk(node):
                    if isinstance(name, ast.Name):
                        frame.names.pop(name.id, None)
        return True

    def store(self, target: ast.expr, value: Value, frame: Frame) -> None:
        match target:
            case ast.Name():
                frame.names[target.id] = value
            case ast.Tuple() | ast.List():
                items = (
                    list(value.items) if isinstance(value, Items) else list(value) if isinstance(value, tuple) else None
                )
                if isinstance(value, Shape) and not value.open and value.dims:
                    items = [Shape(value.dims[1:], False, value.by)] * len(target.elts)
                plain = items is not None and len(items) == len(target.elts)
                for place, part in enumerate(target.elts):
                    known = (
                        items[place] if plain and items is not None and not isinstance(part, ast.Starred) else UNKNOWN
                    )
                    self.store(part.value if isinstance(part, ast.Starred) else part, known, frame)
            case ast.Attribute():
                owner = self.value(target.value, frame)
                if isinstance(owner, Instance):
                    owner.attributes[target.attr] = value
            case ast.Subscript():
                base = self.value(target.value, frame)
                if isinstance(base, Items):
                    base.items = [UNKNOWN]
                    if isinstance(target.value, ast.Name):
                        frame.names[target.value.id] = UNKNOWN

    def _branch(self, node: ast.If, frame: Frame) -> bool:
        test = self.value(node.test, frame)
        if isinstance(test, bool) or test is None:
            return self.block(node.body if test else node.orelse, frame)
        mark = len(self.found) if ABOUT_SHAPES.search(written(node.test)) else None
        before, attributes = frame.names, dict(frame.instance.attributes) if frame.instance is not None else {}
        ends: list[tuple[Env, Env]] = []
        for body in (node.body, node.orelse):
            frame.names = copied(before)
            if frame.instance is not None:
                frame.instance.attributes = copied(attributes)
            if self.block(body, frame):
                ends.append((frame.names, frame.instance.attributes if frame.instance is not None else {}))
        if mark is not None:
            del self.found[mark:]  # the test decides which shapes come here, and it is not known
        if not ends:
            frame.names = before
            return False
        frame.names = merged([names for names, _ in ends])
        if frame.instance is not None:
            frame.instance.attributes = merged([found for _, found in ends])
        return True

    def _loop(self, node: ast.For, frame: Frame) -> None:
        items = self.iterated(self.value(node.iter, frame))
        if items is not None and len(items) <= MAX_TURNS and not _jumps(node):
            for item in items:
                self.store(node.target, item, frame)
                self.block(node.body, frame)
            return
        element = self.element(node.iter, frame)
        self._havoc(node.body, frame, read=True, first=lambda: self.store(node.target, element, frame))

    def iterated(self, value: Value) -> list[Value] | None:
        """The elements of a value that is iterated over, None where they are not known one by one."""
        if isinstance(value, Items | tuple):
            items = list(value.items if isinstance(value, Items) else value)
            return None if MANY in items else items
        return None

    def element(self, node: ast.expr, frame: Frame) -> Value:
        """What one turn of a loop over ``node`` gets."""
        return UNKNOWN

    def _havoc(
        self, body: list[ast.stmt], frame: Frame, *, read: bool, first: Callable[[], None] | None = None
    ) -> None:
        """Reads a block that may run any number of times (or not to its end); what it writes is unknown then."""
        bound = list(_written(body))
        before = copied(frame.names)
        for name in bound:
            frame.names[name] = UNKNOWN
        if first is not None:
            first()
        if read:
            self.block(body, frame)
        for name in [*bound, *(n for n in frame.names if n not in before)]:
            frame.names[name] = UNKNOWN


def copied(names: Env) -> Env:
    """A copy in which lists can grow by themselves."""
    return {n: Items(list(v.items)) if isinstance(v, Items) else v for n, v in names.items()}


def merged(ends: list[Env]) -> Env:
    """What is known after branches: names of which all ends know the same."""
    if len(ends) == 1:
        return ends[0]
    one, other = ends
    found: Env = {}
    for name in one.keys() & other.keys():
        a, b = one[name], other[name]
        if isinstance(a, Items) and isinstance(b, Items) and len(a.items) == len(b.items):
            found[name] = a if all(x is y for x, y in zip(a.items, b.items, strict=True)) else UNKNOWN
        else:
            found[name] = joined(a, b)
    for name in one.keys() ^ other.keys():
        found[name] = UNKNOWN
    return found


def _loaded(target: ast.expr) -> ast.expr:
    if isinstance(target, ast.Name):
        return ast.copy_location(ast.Name(target.id, ast.Load()), target)
    if isinstance(target, ast.Attribute):
        return ast.copy_location(ast.Attribute(target.value, target.attr, ast.Load()), target)
    return ast.copy_location(ast.Constant(Ellipsis), target)


def _written(body: Iterable[ast.stmt]) -> Iterable[str]:
    """Names that are bound, or whose list grows, in ``body``."""
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
                yield node.id
            elif isinstance(node, ast.Attribute) and node.attr in _GROWS and isinstance(node.value, ast.Name):
                yield node.value.id


_GROWS = frozenset(["append", "extend", "insert", "pop", "add_module"])


def _jumps(node: ast.For) -> bool:
    """True if the loop may be left, or a turn cut short."""
    return bool(node.orelse) or any(isinstance(n, ast.Break | ast.Continue | ast.Return) for n in ast.walk(node))


def arithmetic(op: ast.operator, one: Value, other: Value) -> Value:
    """The result for two numbers (or sequences that are joined or repeated), else ``UNKNOWN``."""
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) and abs(v) < 1 << 40 for v in (one, other))
    if numbers and type(op) in _ARITHMETIC:
        try:
            return _ARITHMETIC[type(op)](one, other)
        except ArithmeticError:
            return UNKNOWN
    if numbers and isinstance(op, ast.Pow) and 0 <= other <= 32 and abs(one) <= 1024:
        return one**other
    if isinstance(op, ast.Add):
        if isinstance(one, tuple) and isinstance(other, tuple):
            return one + other
        if isinstance(one, Items) and isinstance(other, Items):
            return Items([*one.items, *other.items])
    if isinstance(op, ast.Mult) and isinstance(other, int) and 0 <= other <= MAX_TURNS:
        if isinstance(one, tuple):
            return one * other
        if isinstance(one, Items):
            return Items(one.items * other)
    return UNKNOWN


def compared(op: ast.cmpop, one: Value, other: Value) -> Value:
    """True or False for two constants, else ``UNKNOWN``."""
    if isinstance(op, ast.Is | ast.IsNot):
        if one is UNKNOWN or other is not None:
            return UNKNOWN
        return (one is None) == isinstance(op, ast.Is)
    plain = (int, float, str, bool)
    if isinstance(one, plain) and isinstance(other, plain) and type(op) in _COMPARE:
        try:
            return bool(_COMPARE[type(op)](one, other))
        except TypeError:
            return UNKNOWN
    if isinstance(op, ast.Eq | ast.NotEq) and all(v is None or isinstance(v, plain) for v in (one, other)):
        return (one is other) == isinstance(op, ast.Eq)
    return UNKNOWN
