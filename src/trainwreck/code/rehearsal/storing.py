"""Where values go: names, attributes, entries; what a change in place does; what branches leave behind."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from trainwreck.code.rehearsal.domain import (
    NUMBERED,
    UNKNOWN,
    Bound,
    Class,
    External,
    Frame,
    Function,
    Items,
    Node,
    Obj,
    Place,
    Table,
    Value,
    candidates,
)
from trainwreck.code.rehearsal.state import MAX_PARAMETERS, State
from trainwreck.code.shapes.domain import Shape

EXACT_TURNS = 4
"""A loop over so few known elements is gone through turn by turn; a longer one for its first turn and any turn."""
EXACT_ITEMS = 12
"""The same for the elements of a list that the program writes out (layers, loss terms)."""
GROUND = (int, float, bool, str)


KEPT_WHOLE = frozenset(["param", "state", "loaded", "clone"])
"""Kinds of values of which a model has many: none of them is left out of a list or a dict."""


def room(values: Sequence[Value]) -> int:
    """How many elements a list keeps: parameters (with their names) and groups of them are all kept."""
    for value in values:
        parts = value if isinstance(value, tuple) else (value,)
        if any((isinstance(p, Node) and p.op in KEPT_WHOLE) or isinstance(p, Table) for p in parts):
            return MAX_PARAMETERS
    return EXACT_ITEMS * 2


class Storing(State):
    """Stores values; what evaluates and calls comes with the classes above."""

    def value(self, node: ast.expr, frame: Frame) -> Value:
        raise NotImplementedError

    def call(self, callee: Value, args: list[Value], options: dict[str, Value], place: Place, frame: Frame) -> Value:
        raise NotImplementedError

    def elements(self, value: Value, place: Place, frame: Frame) -> tuple[list[Value], bool]:
        raise NotImplementedError

    def truth(self, value: Value) -> bool | None:
        raise NotImplementedError

    def get_attribute(self, base: Value, name: str, place: Place) -> Value:
        raise NotImplementedError

    def item(self, base: Value, index: Value, place: Place, frame: Frame) -> Value:
        raise NotImplementedError

    def operated(self, op: ast.operator, one: Value, other: Value, place: Place) -> Value:
        raise NotImplementedError

    def import_module(self, node: ast.Import | ast.ImportFrom, frame: Frame) -> None:
        raise NotImplementedError

    def define_class(self, node: ast.ClassDef, frame: Frame) -> None:
        raise NotImplementedError

    def store(self, target: ast.expr, value: Value, frame: Frame) -> None:
        match target:
            case ast.Name():
                self.holder(target.id, frame).names[target.id] = value
            case ast.Tuple() | ast.List():
                self._unpack(target.elts, value, (target, frame.scope), frame)
            case ast.Attribute():
                for base in candidates(self.value(target.value, frame)):
                    self.set_attribute(base, target.attr, value, (target, frame.scope))
                    if target.attr == "lr" and isinstance(base, Obj) and base.cls is not None:
                        self._rated(base, value, (target, frame.scope), frame)
            case ast.Subscript():
                base = self.value(target.value, frame)
                index = self.value(target.slice, frame)
                self._store_item(target, base, index, value, frame)
            case ast.Starred():
                self.store(target.value, value, frame)

    def _rated(self, base: Obj, value: Value, place: Place, frame: Frame) -> None:
        """An optimizer of the program's own is given a rate, elsewhere than where it is made."""
        if frame.function is None or frame.function.name != "__init__":
            state = {"names": dict(frame.names), "in": frame}
            self.event("set_rate", base, (value,), None, place, state=state)

    def holder(self, name: str, frame: Frame) -> Frame:
        """The frame that an assignment to ``name`` goes to."""
        if name in frame.outer:
            at = frame.parent
            while at is not None:
                if name in at.names or at.parent is None:
                    return at
                at = at.parent
        return frame

    def _unpack(self, targets: list[ast.expr], value: Value, place: Place, frame: Frame) -> None:
        starred = next((n for n, t in enumerate(targets) if isinstance(t, ast.Starred)), None)
        value = value if starred is not None else self._ranked(value, len(targets), place)
        parts, more = self.parts(value, len(targets), place, frame)
        if starred is not None:
            after = len(targets) - starred - 1
            sure = not more or (isinstance(value, Items) and not after and len(parts) > starred)
            middle = parts[starred : len(parts) - after] if sure else [UNKNOWN]
            tail = parts[len(parts) - after :] if after and not more else [UNKNOWN] * after
            parts = [*parts[:starred], Items(middle, more), *tail]
        for number, target in enumerate(targets):
            self.store(target, parts[number] if number < len(parts) else UNKNOWN, frame)

    def _ranked(self, value: Value, count: int, place: Place) -> Value:
        """``B, T, C = x.shape`` says how many axes ``x`` has."""
        asked = isinstance(value, Node) and value.op == "attribute" and value.name == "shape"
        base = value.inputs[0] if asked else None
        if not isinstance(base, Node) or not base.shape.open or len(base.shape.dims) > count or self.maybe:
            return value
        base.shape = Shape((*(None,) * (count - len(base.shape.dims)), *base.shape.dims), False, base.shape.by)
        return tuple(self.node("size", (base, n), place) if d is None else d for n, d in enumerate(base.shape.dims))

    def parts(self, value: Value, count: int, place: Place, frame: Frame) -> tuple[list[Value], bool]:
        """The elements of ``value`` when it is unpacked into ``count`` names."""
        if isinstance(value, tuple):
            return list(value), False
        if isinstance(value, Items):
            if value.more and len(value.items) < count:
                filler = value.items[-1] if value.items else UNKNOWN
                return [*value.items, *[filler] * (count - len(value.items))], False
            return list(value.items), value.more
        if isinstance(value, Node):
            known = [v for v in candidates(value) if isinstance(v, tuple | Items)]
            if value.op == "either" and known:
                return self.parts(known[0], count, place, frame)
            return [self.node("part", (value, n), place) for n in range(count)], False
        found, more = self.elements(value, place, frame)
        return (found if found else [UNKNOWN] * count), more

    def set_attribute(self, base: Value, name: str, value: Value, place: Place) -> None:
        if isinstance(base, Node):
            if name == "requires_grad" and base.op == "param":
                sure = isinstance(value, bool) and (not self.maybe or base.trainable is value)
                base.trainable = value if sure else None
                base.writes.append(self.event("requires_grad", base, (value,), None, place))
                return
            elif name == "grad":
                zero = value is None or (isinstance(value, Node) and value.op in ("zeros_like", "zeros", "zero"))
                done, state = ("zero_grad", {"held": [base], "complete": True}) if zero else ("set_grad", None)
                self.event(done, base, (value,), None, place, state=state)
                base.attributes.pop("grad", None)
                return
            elif name == "data":
                base.writes.append(self.event("copy_", base, (value,), None, place))
            elif name == "requires_grad":
                base.grad = value is True
            base.attributes[name] = value
            return
        attributes = base.names if isinstance(base, Class) else getattr(base, "attributes", None)
        if not isinstance(attributes, dict):
            return
        old = attributes.get(name)
        if self.maybe > getattr(base, "maybe", 0) and name in attributes and old is not value:
            value = self.joined(old, value, place)
        if isinstance(base, Obj):
            self.event("set", base, (name, value), {"old": old}, place)
        attributes[name] = value

    def joined(self, one: Value, other: Value, place: Place | None) -> Value:
        """A value that is either of two."""
        if same(one, other):
            return one
        found: list[Value] = []
        for value in (*candidates(one), *candidates(other)):
            if not any(same(value, known) for known in found):
                found.append(value)
        if len(found) > 1:
            found = [v for v in found if not any(_written_into(w, v) for w in found)]
            if len(found) == 1:
                return found[0]
            if len(found) == 2 and (both := self._both_written(found[0], found[1], place)) is not None:
                return both
        made = self.node("either", found[:6], place)
        if self.tests:
            made.attributes["?test"] = self.tests[-1]
        return made

    def _both_written(self, one: Value, other: Value, place: Place | None) -> Node | None:
        """Elements written in one branch, others of the same array in the other: one array with both."""
        if not isinstance(one, Node) or not isinstance(other, Node) or one.op != "setitem" or other.op != "setitem":
            return None
        if _ground(one) is not _ground(other):
            return None
        made = self.node("setitem", (one, *other.inputs[1:]), other.place or place, shape=one.shape)
        made.owner, made.name = one.owner, one.name
        return made

    def _store_item(self, target: ast.Subscript, base: Value, index: Value, value: Value, frame: Frame) -> None:
        place = (target, frame.scope)
        for one in candidates(base):
            if isinstance(one, Table):
                if isinstance(index, GROUND) or index is None:
                    old = one.entries.get(index)
                    maybe = self.maybe and index in one.entries
                    if index == "lr" and "params" in one.entries:
                        self.event(
                            "set_rate", one, (value,), None, place, state={"names": dict(frame.names), "in": frame}
                        )
                    one.entries[index] = self.joined(old, value, place) if maybe else value
                else:
                    one.more = True
                    if isinstance(index, Node) and _counts(value, one):
                        one.numbered, one.stack = one.numbered or place, one.stack or self.stack
                        one.counted = (*one.counted[:3], index)
                        if self.turns and not self.maybe:
                            self.memo.setdefault(NUMBERED, {})[id(one)] = (one, self.turns[-1].over)
                    fresh = f"?{len(one.entries)}" if len(one.entries) < EXACT_ITEMS else "?"
                    one.entries[by_identity(index) or fresh] = value
            elif isinstance(one, Items):
                if isinstance(index, Obj) and index.kind == "builtins.slice":
                    self._store_slice(one, index, value, place, frame)
                elif isinstance(index, int) and -len(one.items) <= index < len(one.items):
                    one.items[index] = value
                else:
                    self.event("placed", one, (index, value), None, place)
                    if not one.more and any(isinstance(i, Node) for i in one.items):
                        one.items[:] = [self.joined(i, value, place) for i in one.items]  # any of them, none is new
                    elif len(one.items) < EXACT_ITEMS:
                        one.items.append(value)
            elif isinstance(one, Obj):
                setter = one.cls.find("__setitem__") if one.cls is not None else None
                if isinstance(setter, Function):
                    self.call(Bound(setter, one), [index, value], {}, place, frame)
                else:
                    one.attributes[str(index)] = value
            elif isinstance(one, Node):
                written = self.node("setitem", (one, value, index), place, shape=one.shape)
                written.owner, written.name = one.owner, one.name
                if one.op == "param":
                    one.writes.append(self.event("setitem", one, (index, value), None, place))
                else:
                    self.rebind(target.value, written, frame)

    def _store_slice(self, items: Items, cut: Obj, value: Value, place: Place, frame: Frame) -> None:
        """``out[:0] = [x]`` puts in front; any other slice is taken to be replaced by what comes behind."""
        found, more = self.elements(value, place, frame)
        front = cut.args[0] in (None, 0) and cut.args[1] == 0
        self.event("insert" if front else "placed", items, (0 if front else cut, tuple(found)), None, place)
        old = [] if cut.args[:2] == (None, None) and not self.maybe else items.items
        items.items = ([*found, *old] if front else [*old, *found])[: max(room(found), EXACT_ITEMS)]
        items.more = items.more or more or bool(self.maybe) or any(t.generic for t in self.turns)

    def rebind(self, node: ast.expr, value: Value, frame: Frame) -> None:
        """After a change in place: the name or attribute holds the changed value from here on."""
        match node:
            case ast.Name() | ast.Attribute():
                self.store(node, value, frame)
            case ast.Subscript():
                base = self.value(node.value, frame)
                if isinstance(base, Node):  # ``maps[i][mask] = 1`` changes a row of the whole
                    place = (node, frame.scope)
                    index = self.value(node.slice, frame)
                    whole = self.node("setitem", (base, value, index), place, shape=base.shape)
                    whole.owner, whole.name = base.owner, base.name
                    self.rebind(node.value, whole, frame)
                else:
                    self._store_item(node, base, self.value(node.slice, frame), value, frame)

    def _augment(self, node: ast.AugAssign, frame: Frame) -> None:
        place = (node, frame.scope)
        load = ast.copy_location(_loaded(node.target), node.target)
        old, other = self.value(load, frame), self.value(node.value, frame)
        if isinstance(old, Items) and isinstance(node.op, ast.Add):
            found, more = self.elements(other, place, frame)
            old.items = [*old.items, *found][: room(found)]
            old.more = old.more or more or bool(self.maybe)
            return
        result = self.operated(node.op, old, other, place)
        if isinstance(result, Node):
            if isinstance(old, Node) and old.op == "param":
                old.writes.append(self.event("inplace", old, (result,), None, place))
                return
            result.options.setdefault("inplace", True)
        elif self.turns and isinstance(result, int | float) and not isinstance(node.target, ast.Name):
            result = self.node("counter", (old, other), place)
        self.store(node.target, result, frame)


def by_identity(index: Value) -> str:
    """The key of what is kept for one parameter (``self.state[p]``): each is a key of its own; else empty."""
    return f"?param {id(index)}" if isinstance(index, Node) and index.op == "param" else ""


def _counts(value: Value, table: Table) -> bool:
    """True for how many entries there are: ``ids[word] = len(ids)``, also counted from another number on."""
    if isinstance(value, Node) and value.op == "add" and len(value.inputs) == 2:
        value = next((i for i in value.inputs if isinstance(i, Node)), value)
    return value == len(table.entries) if isinstance(value, int) else (
        isinstance(value, Node) and value.op == "len" and bool(value.inputs) and value.inputs[0] is table
    )  # fmt: skip


def _loaded(target: ast.expr) -> ast.expr:
    match target:
        case ast.Name():
            return ast.Name(target.id, ast.Load())
        case ast.Attribute():
            return ast.Attribute(target.value, target.attr, ast.Load())
        case ast.Subscript():
            return ast.Subscript(target.value, target.slice, ast.Load())
    return target


def _ground(node: Node) -> Node:
    """The array before anything was written into it."""
    while node.op == "setitem" and isinstance(node.inputs[0], Node):
        node = node.inputs[0]
    return node


def _written_into(later: Value, value: Value) -> bool:
    """True where ``later`` is ``value`` with a part of it written: where that is not sure, it stands for both."""
    if not isinstance(later, Node) or later is value or not later.inputs or not isinstance(value, Node):
        return False
    if later.op != "setitem" and not (later.options.get("inplace") and later.op in PARTLY):
        return False
    return any(c is value for c in candidates(later.inputs[0]))


PARTLY = frozenset(["index_add", "index_copy", "scatter", "scatter_add", "index_put", "masked_scatter"])
"""Changes in place of some elements."""


def same(one: Value, other: Value) -> bool:
    """True for the same object, or equal constants of one type."""
    if one is other:
        return True
    if isinstance(one, GROUND) and type(one) is type(other):
        return bool(one == other)
    if isinstance(one, External) and isinstance(other, External):
        return one.dotted == other.dotted
    return False
