"""Calls of the rehearsal: functions and classes of the program run, those of libraries are looked up in tables."""

from __future__ import annotations

import ast
import math
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
from trainwreck.code.rehearsal.statements import EXACT_TURNS
from trainwreck.code.scopes import FunctionNode, Scope

if TYPE_CHECKING:
    from trainwreck.code.project import Project

CONSTANTS = {"pi": math.pi, "e": math.e, "inf": math.inf, "tau": math.tau}
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
            return self._super(node, frame)
        callee = self._callee(node.func, frame)
        args, more = self.spread(node.args, frame)
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
        method = callee.name if isinstance(callee, Method) else ""
        in_place = method.endswith("_") and not method.endswith("__")
        if in_place and isinstance(node.func, ast.Attribute) and isinstance(result, Node):
            receiver = callee.receiver
            if isinstance(receiver, Node) and receiver.op != "param" and result is not receiver:
                self.rebind(node.func.value, result, frame)
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
        inner = Frame(function.scope, names, function.frame, "function", receiver=receiver, function=function)
        self.executed.add(id(function.node))
        self.running.append(function.node)
        before_modes = self.modes
        grad = self.grad_mode and not function.no_grad
        try:
            with self.at(place), self.grads(grad):
                if isinstance(function.node, ast.Lambda):
                    return self.value(function.node.body, inner)
                if function.kind == "context":
                    return self._context(function, inner, place)
                if function.scope.yields and function.scope.kind == "function":
                    inner.yielded = []
                    self.block(function.node.body, inner)
                    return Items(inner.yielded, True, "generator")
                signal = self.block(function.node.body, inner)
        finally:
            self.running.pop()
            self.modes = before_modes
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

    # ------------------------------------------------------------------ classes
    def define_class(self, node: ast.ClassDef, frame: Frame) -> None:
        scope = self.scope_of(node, frame)
        bases = [self.value(b, frame) for b in node.bases if not isinstance(b, ast.Starred)]
        bases = [b.cls if isinstance(b, Obj) and b.cls is not None else b for b in bases]
        made = Class(node.name, scope, bases, {}, frame)
        inner = Frame(scope, made.names, frame, "class")
        self.block(node.body, inner)
        for value in made.names.values():
            if isinstance(value, Function) and value.owner is None:
                value.owner = made
        names = [ast.unparse(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list]
        made.dataclass = any(n.rpartition(".")[2] in ("dataclass", "define", "frozen", "dataclasses") for n in names)
        frame.names[node.name] = made

    def build(
        self, cls: Class, args: list[Value], options: dict[str, Value], place: Place, *, more: bool = False
    ) -> Value:
        """An object of a class of the program, after its ``__init__``."""
        external = cls.external()
        kind = external[0] if external else cls.name
        obj = Obj(kind, cls, tuple(args), dict(options), {}, place, self.stack, self.tick())
        obj.turns, obj.maybe = self.turns, self.maybe
        self.objects.append(obj)
        init = cls.find("__init__")
        if isinstance(init, Function):
            self.run(init, [obj, *args], options, place, obj, more=more)
        elif self._record(cls):
            self._fields(cls, obj, args, options, place)
        elif is_module(obj):
            self.base_init(obj, args, options)
        elif "builtins.dict" in external:
            obj.attributes.update(options)  # a dict whose entries are read as attributes, in most programs
        return obj

    def _record(self, cls: Class) -> bool:
        named = any(b.rpartition(".")[2] in ("NamedTuple", "TypedDict", "BaseModel", "Struct") for b in cls.external())
        return named or any(c.dataclass for c in cls.mro())

    def _fields(self, cls: Class, obj: Obj, args: list[Value], options: dict[str, Value], place: Place) -> None:
        """What a dataclass's generated ``__init__`` does."""
        order: dict[str, Value] = {}
        for owner in reversed(list(cls.mro())):
            for statement in getattr(owner.scope.node, "body", ()):
                if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                    order[statement.target.id] = owner.names.get(statement.target.id, UNKNOWN)
        for number, (name, default) in enumerate(order.items()):
            if number < len(args):
                value = args[number]
            elif name in options:
                value = options[name]
            elif isinstance(default, Obj) and default.kind == "dataclasses.field":
                factory = default.options.get("default_factory")
                value = (
                    self.call(factory, [], {}, place, cls.frame)
                    if factory is not None
                    else default.options.get("default", UNKNOWN)
                )
            else:
                value = default
            obj.attributes[name] = value
        after = cls.find("__post_init__")
        if isinstance(after, Function):
            self.run(after, [obj], {}, place, obj)

    def base_init(self, obj: Obj, args: list[Value], options: dict[str, Value]) -> None:
        """``__init__`` of a class of a library: what it was given stays with the object (``Sequential``'s layers)."""
        kinds = [b.rpartition(".")[2] for b in (obj.cls.external() if obj.cls is not None else ())]
        if args and any(k in ("Sequential", "ModuleList") for k in kinds):
            parts = args if "Sequential" in kinds else self.list_of(args[0])
            obj.attributes.update({str(n): part for n, part in enumerate(parts)})
            obj.args = tuple(args)
        elif any(k.endswith(("Linear", "Conv1d", "Conv2d", "Embedding", "LayerNorm")) for k in kinds):
            obj.args, obj.options = tuple(args), dict(options)

    def _super(self, node: ast.Call, frame: Frame) -> Value:
        at: Frame | None = frame
        while at is not None and at.function is None:
            at = at.parent
        while at is not None and at.function is not None and at.function.owner is None and at.parent is not None:
            at = at.parent
        if at is None or at.function is None or at.function.owner is None:
            return UNKNOWN
        return Obj("builtins.super", None, (at.receiver, at.function.owner))

    # ------------------------------------------------------------------ attributes
    def get_attribute(self, base: Value, name: str, place: Place) -> Value:
        match base:
            case Node() if base.op == "either":
                known = [c for c in candidates(base) if c is not None]
                if len(known) > EXACT_TURNS or not known:
                    return UNKNOWN
                if all(isinstance(c, Node) for c in known):
                    return self.library_attribute(base, name, place)
                if any(not isinstance(c, Obj) for c in known) and len(known) > 1:
                    return Method(name, base)
                return self._joined([self.get_attribute(c, name, place) for c in known], place)
            case Frame():
                return base.names.get(name, UNKNOWN)
            case External():
                if name in CONSTANTS and base.dotted in ("math", "torch", "numpy", "np"):
                    return CONSTANTS[name]
                return External(f"{base.dotted}.{name}")
            case Obj() if base.kind == "builtins.super":
                return self._super_attribute(base, name)
            case Obj():
                if name in base.attributes:
                    return base.attributes[name]
                if base.cls is not None:
                    found = base.cls.find(name)
                    if isinstance(found, Function):
                        if found.kind == "property":
                            return self.run(found, [base], {}, place, base)
                        return Bound(found, base)
                    if found is not None or any(name in c.names for c in base.cls.mro()):
                        return found
                    fallback = base.cls.find("__getattr__")
                    if isinstance(fallback, Function):
                        return self.run(fallback, [base, name], {}, place, base)
                if name == "__class__":
                    return base.cls if base.cls is not None else External(base.kind)
                if name == "__dict__":
                    return Table(base.attributes)
                return self.library_attribute(base, name, place)
            case Class():
                found = base.find(name)
                if isinstance(found, Function) and found.kind == "class":
                    return Bound(found, base)
                if found is None and name == "apply":
                    return Method(name, base)
                return found if found is not None else (base.name if name == "__name__" else Method(name, base))
        return self.library_attribute(base, name, place)

    def _super_attribute(self, base: Obj, name: str) -> Value:
        receiver, owner = base.args
        chain = list(receiver.cls.mro()) if isinstance(receiver, Obj) and receiver.cls is not None else []
        after = chain[chain.index(owner) + 1 :] if owner in chain else list(owner.mro())[1:]
        for cls in after:
            if isinstance(cls.names.get(name), Function):
                return Bound(cls.names[name], receiver)
            if name in cls.names:
                return cls.names[name]
        return Method(f"super.{name}", receiver)

    # ------------------------------------------------------------------ modules
    def import_module(self, node: ast.Import | ast.ImportFrom, frame: Frame) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.split(".")[0]
                dotted = alias.name if alias.asname else name
                module = self.module(dotted, frame.scope)
                frame.names[name] = module if module is not None else External(dotted)
            return
        base = "." * node.level + (node.module or "")
        module = self.module(base, frame.scope) if base.strip(".") else None
        for alias in node.names:
            name = alias.asname or alias.name
            if module is not None:
                if alias.name == "*":
                    frame.names |= {k: v for k, v in module.names.items() if not k.startswith("_")}
                    continue
                if alias.name in module.names:
                    frame.names[name] = module.names[alias.name]
                    continue
            inner = self.module(f"{base}.{alias.name}".replace("..", "."), frame.scope)
            frame.names[name] = inner if inner is not None else External(f"{base}.{alias.name}".lstrip("."))

    def module(self, dotted: str, scope: Scope) -> Frame | None:
        """The names of a module of the program after its body ran; None for one of a library."""
        top = self.project.module(dotted, scope)
        return self.module_frame(top) if top is not None else None

    def module_frame(self, top: Scope, name: str = "") -> Frame:
        path = top.module.path
        if path not in self.modules:
            frame = self.modules[path] = Frame(top, {"__name__": name or "module"}, None, "module")
            stack, turns = self.stack, self.turns
            self.stack, self.turns = (), ()
            try:
                self.block(top.module.tree.body, frame)
            finally:
                self.stack, self.turns = stack, turns
        return self.modules[path]
