"""Calls of the rehearsal: functions and classes of the program run, those of libraries are looked up in tables."""

from __future__ import annotations

import ast
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainwreck.code.rehearsal.domain import (
    UNKNOWN,
    Bound,
    Class,
    External,
    Frame,
    Function,
    Items,
    Method,
    Node,
    Obj,
    Place,
    Table,
    Value,
    candidates,
    is_module,
)
from trainwreck.code.rehearsal.expressions import Expressions
from trainwreck.code.rehearsal.state import MAX_DEPTH
from trainwreck.code.scopes import FunctionNode

if TYPE_CHECKING:
    from trainwreck.code.project import Project

AGAIN = 2
"""How often a function may stand in its own chain of calls."""


@dataclass
class Asked:
    """One call of something of a library: its name, the receiver of a method, and what was given."""

    name: str
    full: str
    receiver: Value
    args: list[Value]
    options: dict[str, Value]
    place: Place
    frame: Frame
    more: bool = False

    def get(self, name: str, position: int | None = None, default: Value = None) -> Value:
        if name in self.options:
            return self.options[name]
        return self.args[position] if position is not None and position < len(self.args) else default

    @property
    def given(self) -> list[Value]:
        """Receiver, arguments and keyword arguments that may carry data."""
        first = [self.receiver] if self.receiver is not None else []
        return [*first, *self.args, *self.options.values()]


class Calling(Expressions):
    """Runs what is called."""

    def __init__(self, project: Project) -> None:
        super().__init__(project)
        self.modules: dict[str, Frame] = {}
        self.running: list[ast.AST] = []

    # ------------------------------------------------------------------ the library (next class)
    def library_function(self, asked: Asked) -> Value:
        raise NotImplementedError

    def build(
        self, cls: Class, args: list[Value], options: dict[str, Value], place: Place, *, more: bool = False
    ) -> Value:
        raise NotImplementedError

    def super_of(self, node: ast.Call, frame: Frame) -> Value:
        raise NotImplementedError

    def library_method(self, asked: Asked) -> Value:
        raise NotImplementedError

    def library_object(self, obj: Obj, asked: Asked) -> Value:
        raise NotImplementedError

    def after_method(self, method: Bound, place: Place) -> None:
        """A method of a class of the program has run."""

    def library_attribute(self, base: Value, name: str, place: Place) -> Value:
        raise NotImplementedError

    # ------------------------------------------------------------------ calls
    def called(self, node: ast.Call, frame: Frame) -> Value:
        place = (node, frame.scope)
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            return self.super_of(node, frame)
        callee = self._callee(node.func, frame)
        args, more = self.spread(node.args, frame, None if node.keywords else _exactly(callee))
        options: dict[str, Value] = {}
        for keyword in node.keywords:
            value = self.value(keyword.value, frame)
            if keyword.arg is not None:
                options[keyword.arg] = value
                continue
            for table in candidates(value):
                if isinstance(table, Table):
                    options |= {k: v for k, v in table.entries.items() if isinstance(k, str) and not k.startswith("?")}
                    more = more or table.more
                elif isinstance(table, Obj) and table.attributes:
                    options |= table.attributes
                else:
                    more = True
        result = self.call(callee, args, options, place, frame, more=more)
        if isinstance(callee, Function | Bound) and self.handed_back and len(args) == len(node.args):
            written, self.handed_back = self.handed_back, {}
            for given, value in zip(node.args, args, strict=True):
                if isinstance(given, ast.Name | ast.Attribute) and id(value) in written:
                    self.rebind(given, written[id(value)], frame)
        if isinstance(callee, External) and callee.dotted == "numpy.add.at" and len(args) > 1 and node.args:
            added = args[2] if len(args) > 2 else 1
            self.rebind(_changed(node.args[0]), self.node("add_at", (*args[:2], added), place), frame)
        method = callee.name if isinstance(callee, Method) else ""
        in_place = method.endswith("_") and not method.endswith("__")
        if method == "requires_grad_" and isinstance(node.func, ast.Attribute):
            in_place = not isinstance(node.func.value, ast.Subscript)  # ``x[i].requires_grad_()``: the batch is a leaf
        if in_place and isinstance(node.func, ast.Attribute) and isinstance(result, Node):
            receiver = callee.receiver
            known = isinstance(receiver, Node) and receiver.op == "data"  # ``w.data.add_(x)`` is noted with ``w``
            if isinstance(receiver, Node) and receiver.op != "param" and result is not receiver and not known:
                changed = _changed(node.func.value)
                if changed is node.func.value or not (isinstance(changed, ast.Attribute) and changed.attr == "data"):
                    self.rebind(changed, result, frame)
        return result

    def _callee(self, node: ast.expr, frame: Frame) -> Value:
        """What is called: a method stays one."""
        if not isinstance(node, ast.Attribute):
            return self.value(node, frame)
        self.spend()
        return self.get_attribute(self.value(node.value, frame), node.attr, (node, frame.scope))

    def call(
        self,
        callee: Value,
        args: list[Value],
        options: dict[str, Value],
        place: Place,
        frame: Frame,
        *,
        more: bool = False,
    ) -> Value:
        match callee:
            case Function():
                return self.run(callee, args, options, place, more=more)
            case Bound():
                kind = callee.function.kind
                receiver = callee.receiver
                if kind == "static":
                    return self.run(callee.function, args, options, place, more=more)
                if kind == "class" and isinstance(receiver, Obj):
                    receiver = receiver.cls
                result = self.run(callee.function, [receiver, *args], options, place, receiver, more=more)
                self.after_method(callee, place)
                return result
            case Class():
                return self.build(callee, args, options, place, more=more)
            case External():
                return self.library_function(Asked(callee.name, callee.dotted, None, args, options, place, frame, more))
            case Method():
                asked = Asked(callee.name, "", callee.receiver, args, options, place, frame, more)
                known = candidates(callee.receiver)
                if len(known) > 1 and not all(isinstance(c, Node) for c in known):
                    return self._each_method(asked)
                return self.library_method(asked)
            case Obj():
                return self.call_object(callee, args, options, place, frame, more=more)
            case Node() if callee.op == "either":
                found = []
                with self.perhaps():
                    for one in candidates(callee):
                        if one is not None:
                            found.append(self.call(one, list(args), dict(options), place, frame, more=more))
                return self._joined(found, place)
        return self.node("call", [callee, *args, *options.values()], place)

    def _joined(self, found: list[Value], place: Place) -> Value:
        result: Value = found[0] if found else UNKNOWN
        for other in found[1:]:
            result = self.joined(result, other, place)
        return result

    def _each_method(self, asked: Asked) -> Value:
        found: list[Value] = []
        known = [c for c in candidates(asked.receiver) if c is not None]
        for one in known:
            method = self.get_attribute(one, asked.name, asked.place)
            if len(known) == 1:
                return self.call(method, asked.args, asked.options, asked.place, asked.frame)
            with self.perhaps():
                found.append(self.call(method, list(asked.args), dict(asked.options), asked.place, asked.frame))
        return self._joined(found, asked.place)

    def call_object(
        self,
        obj: Obj,
        args: list[Value],
        options: dict[str, Value],
        place: Place,
        frame: Frame,
        *,
        more: bool = False,
    ) -> Value:
        """What calling an object gives: ``forward`` of a module, ``__call__`` of another."""
        if obj.cls is None:
            return self.library_object(obj, Asked(obj.name, obj.kind, obj, args, options, place, frame, more))
        module = is_module(obj)
        method = (obj.attributes.get("forward") or obj.cls.find("forward")) if module else obj.cls.find("__call__")
        event = None
        if module:
            state = {"training": obj.training, "grad": self.grad_mode}
            event = self.event("forward", obj, args, options, place, state=state)
        if isinstance(method, Function):
            result = self.call(Bound(method, obj), args, options, place, frame, more=more)
        elif module:
            result = self.library_object(obj, Asked(obj.name, obj.kind, obj, args, options, place, frame, more))
        else:
            result = self.node("call", [obj, *args, *options.values()], place)
        if event is not None:
            event.result = result
        return result

    # ------------------------------------------------------------------ functions
    def run(
        self,
        function: Function,
        args: list[Value],
        options: dict[str, Value],
        place: Place | None,
        receiver: Value = None,
        *,
        more: bool = False,
    ) -> Value:
        """What a function of the program returns for these arguments."""
        if self.running.count(function.node) >= AGAIN or len(self.running) >= MAX_DEPTH:
            return self.node("call", [*args, *options.values()], place)
        names = self._arguments(function, args, options, more)
        given = dict(names)
        inner = Frame(function.scope, names, function.frame, "function", receiver=receiver, function=function)
        self.executed.add(id(function.node))
        self.running.append(function.node)
        before_modes = self.modes
        # without a decorator, what the function switches stays switched
        switched = function.no_grad or function.with_grad
        try:
            with self.at(place), self.grads(function.with_grad) if switched else nullcontext():
                if isinstance(function.node, ast.Lambda):
                    return self.value(function.node.body, inner)
                if function.kind == "context":
                    return self._context(function, inner, place)
                if function.scope.yields and function.scope.kind == "function":
                    inner.yielded = []
                    self.block(function.node.body, inner)
                    return Items(inner.yielded, True, "generator", pace=inner.pace)
                signal = self.block(function.node.body, inner)
        finally:
            self.running.pop()
            self.modes = before_modes
        self.handed_back = {id(old): new for name, old in given.items() if (new := _written(names.get(name), old))}
        found = list(inner.returned)
        if signal is None and found:
            found.append(None)  # one way reaches the end without a value
        if not found:
            return None
        return self._joined(found, place or (function.node, function.scope))

    def _context(self, function: Function, inner: Frame, place: Place | None) -> Value:
        """A generator used as a context: the body of the ``with`` runs at its yield."""
        inner.yielded = []
        assert isinstance(function.node, FunctionNode)
        waiting, self.inside = self.inside, None
        if waiting is not None and place is not None and place[0] is waiting[0]:
            inner.on_yield = waiting[1]
        self.block(function.node.body, inner)
        value = inner.yielded[0] if inner.yielded else None
        return value if isinstance(value, Obj) else self.thing("contextlib.context", (value,), {}, place)

    def _arguments(
        self, function: Function, args: list[Value], options: dict[str, Value], more: bool
    ) -> dict[str, Value]:
        spec = function.node.args
        positional = [a.arg for a in (*spec.posonlyargs, *spec.args)]
        names: dict[str, Value] = {}
        left = dict(options)
        for number, name in enumerate(positional):
            if number < len(args):
                names[name] = args[number]
            elif name in left:
                names[name] = left.pop(name)
            elif name in function.defaults and not more:
                names[name] = function.defaults[name]
            else:
                names[name] = self.node("argument", (), (function.node, function.scope), name=name)
        for arg in spec.kwonlyargs:
            name = arg.arg
            if name in left:
                names[name] = left.pop(name)
            elif name in function.defaults and not more:
                names[name] = function.defaults[name]
            else:
                names[name] = self.node("argument", (), (function.node, function.scope), name=name)
        if spec.vararg is not None:
            rest = args[len(positional) :]
            names[spec.vararg.arg] = Items(rest, True) if more else tuple(rest)
        if spec.kwarg is not None:
            names[spec.kwarg.arg] = Table({k: v for k, v in left.items() if k not in names}, more)
        return names


def _exactly(callee: Value) -> int | None:
    """How many arguments a function of the program takes by their places, where it leaves no choice."""
    at: Value = callee
    if isinstance(at, Obj) and at.cls is not None:
        at = at.cls.find("forward" if is_module(at) else "__call__")
        bound = True
    else:
        bound = isinstance(at, Bound) and at.function.kind not in ("static",)
        at = at.function if isinstance(at, Bound) else at
    if not isinstance(at, Function):
        return None
    given = at.node.args
    if given.vararg is not None or given.kwarg is not None or given.defaults or given.kwonlyargs:
        return None
    return len(given.posonlyargs) + len(given.args) - bound


def _written(now: Value, given: Value) -> Node | None:
    """``now``, where it is an array that the caller gave, with some elements written since; else None."""
    if now is given or not isinstance(now, Node) or not isinstance(given, Node) or given.op == "param":
        return None
    for one in candidates(now):
        while isinstance(one, Node) and one.op == "setitem":
            one = one.inputs[0]
        if one is not given:
            return None
    return now


def _changed(node: ast.expr) -> ast.expr:
    """What a change in place changes, behind earlier ones in the same chain: ``v`` in ``v.mul_(0.9).add_(g)``."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_"):
        node = node.func.value
    return node
