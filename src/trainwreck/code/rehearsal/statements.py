"""Statements of the rehearsal: assignment, branches whose test is known or not, loops, contexts."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Literal

from trainwreck.code.calls import written
from trainwreck.code.rehearsal.domain import (
    SOME,
    UNKNOWN,
    Bound,
    Class,
    Frame,
    Function,
    Items,
    Method,
    Node,
    Obj,
    Place,
    Turn,
    Value,
)
from trainwreck.code.rehearsal.repeating import counted_sides, turns_of
from trainwreck.code.rehearsal.state import MAX_PARAMETERS
from trainwreck.code.rehearsal.storing import EXACT_ITEMS, GROUND, Storing, room, same
from trainwreck.code.scopes import FunctionNode, Scope
from trainwreck.code.shapes.domain import ABOUT_SHAPES, Shape

Signal = Literal["break", "continue", "return", "raise"] | None
"""How a block ended: None where it ran to its end."""


class Statements(Storing):
    """Runs blocks of statements."""

    # ------------------------------------------------------------------ blocks
    def block(self, body: Sequence[ast.stmt], frame: Frame) -> Signal:
        before = self.tests
        try:
            for statement in body:
                self.left = None
                signal = self.statement(statement, frame)
                if signal is not None:
                    return signal
                if self.left is not None and isinstance(statement, ast.If):
                    self.tests = (*self.tests, self.left)
        finally:
            self.tests, self.left = before, None
        return None

    def statement(self, node: ast.stmt, frame: Frame) -> Signal:
        self.spend()
        match node:
            case ast.Expr():
                self.value(node.value, frame)
            case ast.Assign():
                before = self.serial
                value = self.value(node.value, frame)
                for one in value if isinstance(node.value, ast.Tuple) and isinstance(value, tuple) else (value,):
                    if isinstance(one, Obj | Node) and one.serial <= before and not isinstance(node.value, ast.IfExp):
                        self.memo.setdefault("aliases", []).append(((node, frame.scope), one))
                for target in node.targets:
                    self.store(target, value, frame)
            case ast.AnnAssign():
                if node.value is not None:
                    self.store(node.target, self.value(node.value, frame), frame)
            case ast.AugAssign():
                self._augment(node, frame)
            case ast.Return():
                frame.returned.append(self.value(node.value, frame) if node.value is not None else None)
                return "return"
            case ast.If():
                return self._if(node, frame)
            case ast.For() | ast.AsyncFor():
                return self._for(node, frame)
            case ast.While():
                return self._while(node, frame)
            case ast.With() | ast.AsyncWith():
                return self._with(list(node.items), node, frame)
            case ast.Try():
                return self._try(node, frame)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._define(node, frame)
            case ast.ClassDef():
                self.define_class(node, frame)
                self._class_defined(node, frame)
            case ast.Import() | ast.ImportFrom():
                self.import_module(node, frame)
            case ast.Global() | ast.Nonlocal():
                frame.outer.update(node.names)
            case ast.Raise():
                return "raise"
            case ast.Break():
                return "break"
            case ast.Continue():
                return "continue"
            case ast.Assert():
                self.value(node.test, frame)
            case ast.Delete():
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        frame.names.pop(target.id, None)
                    elif isinstance(target, ast.Subscript):
                        held = self.value(target.value, frame)
                        self.event("remove", held, place=(node, frame.scope))
                        whole = isinstance(target.slice, ast.Slice) and target.slice.lower is target.slice.upper is None
                        if isinstance(held, Items) and whole:
                            held.items.clear()
                            held.more = bool(self.maybe)
            case ast.Match():
                return self._match(node, frame)
        return None

    # ------------------------------------------------------------------ branches
    def _if(self, node: ast.If, frame: Frame) -> Signal:
        test = self.value(node.test, frame)
        self.memo.setdefault("tested", []).append((test, node))
        known = self.truth(test)
        key = (id(node), *(id(call[0]) for call in self.stack))
        self.memo.setdefault("outcomes", {}).setdefault(key, ((node, frame.scope), self.stack, set()))[2].add(known)
        if known is not None:
            return self.block(node.body if known else node.orelse, frame)
        before, self.tests, met = self.tests, (*self.tests, test), len(self.clashes)
        signal = self.branches([node.body, node.orelse], frame, (node, frame.scope))
        self.tests = before
        if ABOUT_SHAPES.search(written(node.test)):
            del self.clashes[met:]  # the test decides which shapes come here, and it is not known
        self.left = test if self.left is not None else None
        return signal

    def branches(self, bodies: list[list[ast.stmt]], frame: Frame, place: Place) -> Signal:
        """Each of the bodies may run: all do, from the same names, which are joined afterwards."""
        start = dict(frame.names)
        ends: list[tuple[dict[str, Value], Signal]] = []
        modes, grad = self.training_modes(), self.grad_mode
        after: list[dict[int, bool | None]] = []
        gradient = False
        with self.perhaps():
            for body in bodies:
                frame.names = dict(start)
                self.set_training_modes(modes)
                self.grad_mode = grad
                signal = self.block(body, frame)
                ends.append((frame.names, signal))
                gradient = gradient or self.grad_mode
                if signal is None or signal == "continue":
                    after.append(self.training_modes())
        self.grad_mode = gradient if bodies else grad
        self.join_training_modes(after)
        going = [names for names, signal in ends if signal is None]
        self.left = place if any(signal == "continue" for _, signal in ends) else None
        if not going:
            signals = [signal for _, signal in ends]
            frame.names = ends[0][0]
            # one way out that leads on in the loop is enough to go on
            for signal in ("continue", "return", "break", "raise"):
                if signal in signals:
                    frame.names = next(names for names, s in ends if s == signal)
                    return signal
        names = going[0]
        for other in going[1:]:
            for name, value in other.items():
                if name not in names:
                    names[name] = value
                elif names[name] is not value:
                    names[name] = self.joined(names[name], value, place)
        frame.names = names
        return None

    def _match(self, node: ast.Match, frame: Frame) -> Signal:
        subject = self.value(node.subject, frame)
        bodies = []
        for case in node.cases:
            if isinstance(case.pattern, ast.MatchValue) and isinstance(subject, GROUND):
                if self.value(case.pattern.value, frame) == subject:
                    return self.block(case.body, frame)
                continue
            bodies.append(case.body)
        return self.branches(bodies, frame, (node, frame.scope)) if bodies else None

    def _try(self, node: ast.Try, frame: Frame) -> Signal:
        signal = self.block(node.body, frame)
        if signal == "raise" and node.handlers:
            signal = None
        if signal is None:
            signal = self.block(node.orelse, frame)
        last = self.block(node.finalbody, frame)
        return last if last is not None else signal

    # ------------------------------------------------------------------ loops
    def _for(self, node: ast.For | ast.AsyncFor, frame: Frame) -> Signal:
        over = self.value(node.iter, frame)
        place = (node, frame.scope)
        found, more = self.elements(over, (node.iter, frame.scope), frame)
        exact = not more and (len(found) <= EXACT_ITEMS or room(found[:1]) == MAX_PARAMETERS)
        if isinstance(over, Items) and over.kind == SOME:
            with self.perhaps():
                return self.turned(node, found, True, over, frame, place)
        return self.turned(node, found, exact, over, frame, place)

    def turned(
        self, node: ast.For | ast.AsyncFor, found: list[Value], exact: bool, over: Value, frame: Frame, place: Place
    ) -> Signal:
        before = dict(frame.names)
        since = len(self.tape)
        first: dict[str, Value] = {}
        for number, element in enumerate(found):
            generic = not exact and number > 0
            if generic:
                self.widen(before, frame, place, since)
            self.store(node.target, element, frame)
            with self.turn(Turn(node, frame.scope, number, over, generic)):
                signal = self.block(node.body, frame)
            if signal == "break":
                return None
            if signal in ("return", "raise"):
                return signal
            first = first or dict(frame.names)
        if len(found) > 1 and (not exact or _of_more(over)):
            self._grown(first, frame, place)
        return self.block(node.orelse, frame)

    def _grown(self, first: dict[str, Value], frame: Frame, place: Place) -> None:
        """What has another shape after the second turn than after the first has a third one after all of them."""
        for name, value in frame.names.items():
            one = first.get(name)
            if isinstance(value, Node) and isinstance(one, Node) and not (value.shape.open or one.shape.open):
                alike = len(value.shape.dims) == len(one.shape.dims)
                if not alike or value.shape == one.shape:
                    continue
                if value.grad:
                    frame.names[name] = self.joined(one, value, place)
                else:  # tokens that a loop appends: the same value, of a length that isn't known
                    pairs = zip(one.shape.dims, value.shape.dims, strict=True)
                    value.shape = Shape(tuple(a if a == b else None for a, b in pairs), by=value.shape.by)

    def _while(self, node: ast.While, frame: Frame) -> Signal:
        place = (node, frame.scope)
        before = dict(frame.names)
        since = len(self.tape)
        sides, over = counted_sides(node.test), None
        counted = [self.value(side, frame) for side in sides]
        for number in range(2):
            if number:
                over = turns_of(counted, [self.value(side, frame) for side in sides])
                self.widen(before, frame, place, since)
            test = self.value(node.test, frame)
            self.memo.setdefault("tested", []).append((test, node))
            if self.truth(test) is False:
                break
            with self.turn(Turn(node, frame.scope, number, over, number > 0)):
                signal = self.block(node.body, frame)
            if signal == "break":
                return None
            if signal in ("return", "raise"):
                return signal
        return self.block(node.orelse, frame)

    def widen(self, before: dict[str, Value], frame: Frame, place: Place, since: int) -> None:
        """Numbers, flags and texts that a turn changed may be anything in a later one; so may numbers in attributes
        of the program's own objects. ``since``: the length of the tape when the loop began."""
        firsts: dict[tuple[int, str], tuple[Obj, Value]] = {}
        for event in self.tape[since:]:
            if event.name == "set" and isinstance(event.subject, Obj) and event.subject.cls is not None:
                firsts.setdefault((id(event.subject), event.args[0]), (event.subject, event.options["old"]))
        for (_, name), (obj, first) in firsts.items():
            now = obj.attributes.get(name)
            numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (first, now))
            if numbers and not same(first, now):
                obj.attributes[name] = self.node("counter", (first, now), place)
        for name, value in frame.names.items():
            if isinstance(value, GROUND) and name in before and not same(before[name], value):
                frame.names[name] = self.node("counter", (before[name], value), place)

    # ------------------------------------------------------------------ contexts
    def _with(self, items: list[ast.withitem], node: ast.With | ast.AsyncWith, frame: Frame) -> Signal:
        if not items:
            return self.block(node.body, frame)
        item, rest = items[0], items[1:]
        place = (item.context_expr, frame.scope)
        ended: list[Signal] = []

        def inside(value: Value) -> None:
            """The body, where a generator of the program that is used as a context yields."""
            waiting, modes, stack = self.inside, self.modes, self.stack
            self.inside, self.stack = None, outside
            if item.optional_vars is not None:
                self.store(item.optional_vars, value, frame)
            ended.append(self._with(rest, node, frame))
            self.inside, self.modes, self.stack = waiting, modes, stack

        before_inside, self.inside, outside = self.inside, (item.context_expr, inside), self.stack
        grad = self.grad_mode
        manager = self.value(item.context_expr, frame)
        self.inside = before_inside
        if ended:
            return ended[-1]
        kind = manager.kind if isinstance(manager, Obj) else ""
        last = kind.rpartition(".")[2]
        before = self.modes
        entered: Value = manager
        if isinstance(manager, Obj) and manager.cls is not None:
            enter = manager.cls.find("__enter__")
            entered = self.call(Bound(enter, manager), [], {}, place, frame) if isinstance(enter, Function) else manager
        elif isinstance(manager, Method | Bound | Function):
            entered = UNKNOWN
        self.modes = (*before, manager)
        if last in ("no_grad", "inference_mode"):
            self.grad_mode = manager.get("mode", 0, True) is False and grad
        elif last == "enable_grad":
            self.grad_mode = True
        elif last == "set_grad_enabled":
            mode = self.truth(manager.get("mode", 0, True))
            self.grad_mode = grad if mode is None else mode
        if item.optional_vars is not None:
            self.store(item.optional_vars, entered, frame)
        signal = self._with(rest, node, frame)
        self.modes, self.grad_mode = before, grad
        if isinstance(manager, Obj) and manager.cls is not None:
            leave = manager.cls.find("__exit__")
            if isinstance(leave, Function):
                self.call(Bound(leave, manager), [None, None, None], {}, place, frame)
        return signal

    # ------------------------------------------------------------------ definitions
    def _define(self, node: FunctionNode, frame: Frame) -> None:
        made: Value = self.function(node, self.scope_of(node, frame), frame)
        for decorator in reversed(node.decorator_list):
            made = self._decorated(decorator, made, frame)
        self.holder(node.name, frame).names[node.name] = made

    def _class_defined(self, node: ast.ClassDef, frame: Frame) -> None:
        """What runs once a class is there: ``__init_subclass__`` of its bases, and its decorators (registries)."""
        made: Value = frame.names[node.name]
        hooks = [c.names["__init_subclass__"] for c in list(made.mro())[1:] if "__init_subclass__" in c.names]
        if hooks and isinstance(hooks[0], Function):
            options = {k.arg: self.value(k.value, frame) for k in node.keywords if k.arg is not None}
            options.pop("metaclass", None)
            self.call(Bound(hooks[0], made), [], options, (node, frame.scope), frame)
        for decorator in reversed(node.decorator_list):
            made = self._decorated(decorator, made, frame)
        frame.names[node.name] = made

    def function(self, node: FunctionNode | ast.Lambda, scope: Scope, frame: Frame) -> Function:
        defaults: dict[str, Value] = {}
        args = node.args
        named = [*args.posonlyargs, *args.args]
        for arg, default in zip(named[len(named) - len(args.defaults) :], args.defaults, strict=True):
            defaults[arg.arg] = self.value(default, frame)
        for arg, kw_default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
            if kw_default is not None:
                defaults[arg.arg] = self.value(kw_default, frame)
        return Function(node, scope, frame, defaults=defaults)

    def _decorated(self, decorator: ast.expr, made: Value, frame: Frame) -> Value:
        written = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = written.attr if isinstance(written, ast.Attribute) else getattr(written, "id", "")
        if isinstance(made, Function):
            if name in ("no_grad", "inference_mode"):
                made.no_grad = True
                return made
            if name == "enable_grad":
                made.with_grad = True
                return made
            if name == "set_grad_enabled" and isinstance(decorator, ast.Call) and decorator.args:
                switched = self.truth(self.value(decorator.args[0], frame))
                made.no_grad, made.with_grad = switched is False, switched is True
                return made
            kinds = {"staticmethod": "static", "classmethod": "class", "property": "property"}
            kind = kinds.get(name) or ("property" if name in ("cached_property", "lazy_property") else "")
            if kind:
                made.kind = kind
                return made
            if name in ("contextmanager", "asynccontextmanager"):
                made.kind = "context"
                return made
            if name == "setter":
                return made
        value = self.value(decorator, frame)
        called = isinstance(value, Obj) and value.cls is not None and value.cls.find("__call__") is not None
        if called or isinstance(value, Function | Bound):
            result = self.call(value, [made], {}, (decorator, frame.scope), frame)
            return result if isinstance(result, Function | Bound | Class | Obj) else made
        return made

    def scope_of(self, node: ast.AST, frame: Frame) -> Scope:
        """The scope of a function or class that is defined in ``frame``."""
        for child in frame.scope.children:
            if child.node is node:
                return child
        return frame.scope


def _of_more(over: Value) -> bool:
    """True for layers of which a list holds more than the rehearsal has made."""
    given = over.args[0] if isinstance(over, Obj) and over.args else None
    return isinstance(given, Items) and given.more
