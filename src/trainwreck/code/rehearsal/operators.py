"""Operators of the rehearsal: arithmetic on what is known, comparisons, and when a test is decided."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from trainwreck.code.rehearsal.domain import (
    ASKED,
    FLOOR,
    LEFT_OF_OR,
    MOST_ASKED,
    UNKNOWN,
    Bound,
    Class,
    External,
    Frame,
    Function,
    Items,
    Method,
    NameTest,
    Node,
    Obj,
    Place,
    Table,
    Value,
    candidates,
)
from trainwreck.code.rehearsal.statements import Statements
from trainwreck.code.rehearsal.storing import EXACT_ITEMS, GROUND, room

OPERATORS: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("sub", operator.sub),
    ast.Mult: ("mul", operator.mul),
    ast.Div: ("div", operator.truediv),
    ast.FloorDiv: ("floor_divide", operator.floordiv),
    ast.Mod: ("mod", operator.mod),
    ast.Pow: ("pow", operator.pow),
    ast.MatMult: ("matmul", operator.matmul),
    ast.BitAnd: ("and", operator.and_),
    ast.BitOr: ("or", operator.or_),
    ast.BitXor: ("xor", operator.xor),
    ast.LShift: ("shift", operator.lshift),
    ast.RShift: ("shift", operator.rshift),
}
COMPARISONS: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Eq: ("eq", operator.eq),
    ast.NotEq: ("ne", operator.ne),
    ast.Lt: ("lt", operator.lt),
    ast.LtE: ("le", operator.le),
    ast.Gt: ("gt", operator.gt),
    ast.GtE: ("ge", operator.ge),
}
FRESH = frozenset(
    """linear conv1d conv2d from_numpy sample log_prob entropy tensor randn rand zeros ones squeeze unsqueeze relu tanh
    softmax sigmoid add sub mul div mean sum matmul stack cat param embedding one_hot""".split()
)
"""Functions that make an object of their own: two such values are never the same one."""
LONGEST = 100_000


def _small(value: Value, limit: float) -> bool:
    return isinstance(value, int | float) and abs(value) <= limit


class Operators(Statements):
    """Computes what constants give, and makes values of the rest."""

    def operated(self, op: ast.operator, one: Value, other: Value, place: Place) -> Value:
        name, compute = OPERATORS[type(op)]
        if isinstance(one, GROUND) and isinstance(other, GROUND):
            whole = isinstance(op, ast.LShift) or not (isinstance(one, float) or isinstance(other, float))
            if whole and isinstance(op, ast.Pow | ast.LShift) and (not _small(one, 1e6) or not _small(other, 64)):
                return self.node(name, (one, other), place)
            try:
                result = compute(one, other)
            except (TypeError, ValueError, ArithmeticError):
                return self.node(name, (one, other), place)
            if (isinstance(result, str) and len(result) > LONGEST) or isinstance(result, complex):
                return UNKNOWN
            return result
        if isinstance(one, tuple | Items) and isinstance(other, tuple | Items) and isinstance(op, ast.Add):
            if isinstance(one, tuple) and isinstance(other, tuple):
                return (*one, *other)
            parts = [*self.list_of(one), *self.list_of(other)]
            if isinstance(one, Items) and self.turns:
                self.event("concatenate", one, tuple(self.list_of(other)), None, place)
            return Items(
                parts[: room(parts)], getattr(one, "more", False) or getattr(other, "more", False), "list", place
            )
        if isinstance(op, ast.Mult) and isinstance(one, tuple | Items) and isinstance(other, int | Node):
            count = other if isinstance(other, int) else 1
            parts = self.list_of(one) * max(0, min(count, EXACT_ITEMS))
            if isinstance(one, tuple):
                return tuple(parts)
            each = other.inputs[0] if isinstance(other, Node) and other.op == "len" and len(parts) == 1 else None
            return Items(parts[:EXACT_ITEMS], not isinstance(other, int), source=each)
        if isinstance(op, ast.BitOr) and isinstance(one, Table) and isinstance(other, Table):
            return Table({**one.entries, **other.entries}, one.more or other.more)
        dunder = {"add": "__add__", "sub": "__sub__", "mul": "__mul__", "div": "__truediv__", "matmul": "__matmul__"}
        if isinstance(one, Obj) and one.cls is not None and name in dunder:
            method = one.cls.find(dunder[name])
            if isinstance(method, Function):
                return self.call(Bound(method, one), [other], {}, place, method.frame)
        return self.node(name, (one, other), place)

    def list_of(self, value: Value) -> list[Value]:
        return list(value) if isinstance(value, tuple) else list(value.items) if isinstance(value, Items) else [value]

    def _unary(self, node: ast.UnaryOp, frame: Frame) -> Value:
        value = self.value(node.operand, frame)
        if isinstance(node.op, ast.Not):
            known = self.truth(value)
            return not known if known is not None else self.node("not", (value,), (node, frame.scope))
        if isinstance(value, int | float):
            if isinstance(node.op, ast.USub):
                return -value
            if isinstance(node.op, ast.Invert):
                return ~int(value) if isinstance(value, int) else UNKNOWN
            return value
        if isinstance(node.op, ast.UAdd):
            return value
        return self.node("neg" if isinstance(node.op, ast.USub) else "invert", (value,), (node, frame.scope))

    def _compare(self, node: ast.Compare, frame: Frame) -> Value:
        values = [self.value(v, frame) for v in (node.left, *node.comparators)]
        results: list[Value] = []
        for op, one, other in zip(node.ops, values, values[1:], strict=False):
            results.append(self._compared(op, one, other, (node, frame.scope)))
        if len(results) == 1:
            return results[0]
        known = [self.truth(r) for r in results]
        if False in known:
            return False
        return True if all(known) else self.node("and", results, (node, frame.scope))

    def _compared(self, op: ast.cmpop, one: Value, other: Value, place: Place) -> Value:
        if isinstance(op, ast.Is | ast.IsNot):
            found = self._identical(one, other)
            if found is None:
                return self.node("is", (one, other), place)
            return found if isinstance(op, ast.Is) else not found
        if isinstance(op, ast.Eq | ast.NotEq) and _layers(one, other):
            return bool(self._is(one, other)) == isinstance(op, ast.Eq)
        if isinstance(op, ast.In | ast.NotIn):
            held = self._contains(other, one)
            if isinstance(one, str) and held is not None:
                self._ask(one, other, held, place)
            if held is None:
                return self.node("in", (one, other), place)
            return held if isinstance(op, ast.In) else not held
        name, compute = COMPARISONS[type(op)]
        if (isinstance(one, GROUND) or one is None) and (isinstance(other, GROUND) or other is None):
            try:
                return bool(compute(one, other))
            except TypeError:
                return UNKNOWN
        told = _later(name, one, other)
        return self.node(name, (one, other), place) if told is None else told

    def _ask(self, one: str, other: Value, held: bool, place: Place) -> None:
        """Keeps what a text was looked for in, or which texts it was compared with."""
        asked = self.memo.setdefault(ASKED, [])
        if len(asked) >= MOST_ASKED:
            return
        if isinstance(other, str):
            asked.append(NameTest(one, other, held, place))
        elif isinstance(other, tuple | Items):
            asked += [NameTest(i, one, i == one, place) for i in self.list_of(other) if isinstance(i, str)]

    def _identical(self, one: Value, other: Value) -> bool | None:
        found = {self._is(a, b) for a in candidates(one) for b in candidates(other)}
        return found.pop() if len(found) == 1 else None

    def _is(self, one: Value, other: Value) -> bool | None:
        if one is other:
            return True
        if _layers(one, other):
            return isinstance(one, External) and isinstance(other, External) and one.dotted == other.dotted
        if one is None or other is None:
            rest = other if one is None else one
            if isinstance(rest, Node) and (
                rest.unknown or rest.op in ("option", "attribute", "call", "item", "counter")
            ):
                return None
            return False
        if isinstance(one, bool) and isinstance(other, bool):
            return one is other
        if isinstance(one, Obj) and isinstance(other, Obj):
            return False
        if isinstance(one, Node) and isinstance(other, Node) and one.op in FRESH and other.op in FRESH:
            return False
        return None

    def _contains(self, holder: Value, value: Value) -> bool | None:
        if isinstance(holder, str) and isinstance(value, str):
            return value in holder
        if isinstance(holder, Table) and isinstance(value, GROUND):
            return True if value in holder.entries else (None if holder.more else False)
        if isinstance(holder, tuple | Items) and isinstance(value, GROUND):
            items = self.list_of(holder)
            if any(isinstance(i, GROUND) and i == value for i in items):
                return True
            closed = not getattr(holder, "more", False) and all(isinstance(i, GROUND) for i in items)
            return False if closed else None
        return None

    def _bool(self, node: ast.BoolOp, frame: Frame) -> Value:
        stop = isinstance(node.op, ast.Or)
        found: list[Value] = []
        for part in node.values:
            value = self.value(part, frame)
            known = self.truth(value)
            if stop and known is None and _filled(value):
                known = True
            if known is stop and not found:
                return value
            if known is stop:
                return value if not stop else self.joined(found[0], value, (node, frame.scope))
            if known is None:
                found.append(value)
                left = part
            last = value
        if not found:
            return last
        if len(found) == 1 and stop and isinstance(found[0], Node):
            self.memo.setdefault(LEFT_OF_OR, []).append((found[0], left, (node, frame.scope)))
        return found[0] if len(found) == 1 else self.node("or" if stop else "and", found, (node, frame.scope))

    def truth(self, value: Value) -> bool | None:
        match value:
            case None:
                return False
            case bool() | int() | float() | str() | bytes() | tuple():
                return bool(value)
            case Items():
                return True if value.items and not value.more else (None if value.more else False)
            case Table():
                return True if value.entries and not value.more else (None if value.more else False)
            case Obj() | Function() | Class() | External() | Bound() | Method():
                return True
            case Node():
                if value.op == "either":
                    found = {self.truth(v) for v in value.inputs}
                    return found.pop() if len(found) == 1 else None
                if value.attributes.get(FLOOR, 0) > 0:
                    return True
        return None


def _filled(value: Value) -> bool:
    """True for a list or dict that data were put into, however many: ``levels or list(names)`` is the levels."""
    if isinstance(value, Node):
        return value.op in ("list", "sorted", "tolist")
    return bool(value.items if isinstance(value, Items) else value.entries if isinstance(value, Table) else ())


def _layers(one: Value, other: Value) -> bool:
    """True for two classes, a kind of layer of torch among them, as ``type(m) is nn.Linear`` has them."""
    both = all(isinstance(v, Class | External) for v in (one, other))
    return both and any(isinstance(v, External) and v.dotted.startswith("torch.nn.") for v in (one, other))


def _later(name: str, one: Value, other: Value) -> bool | None:
    """A comparison of the number of any later turn with one that is below the least that it can be."""
    if isinstance(other, Node) and isinstance(one, int):
        turned = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
        return _later(turned.get(name, name), other, one)
    if isinstance(one, Node) and one.op == "mod" and isinstance(other, int):
        by = one.inputs[1] if len(one.inputs) > 1 else None
        outside = isinstance(by, int) and by > 0 and not 0 <= other < by
        return {"eq": False, "ne": True}.get(name) if outside else None  # a remainder is less than what divides
    if not isinstance(one, Node) or FLOOR not in one.attributes or not isinstance(other, int):
        return None
    floor = one.attributes[FLOOR]
    if other < floor:
        return {"eq": False, "ne": True, "gt": True, "ge": True, "lt": False, "le": False}.get(name)
    if other == floor:
        return {"ge": True, "lt": False}.get(name)
    return None
