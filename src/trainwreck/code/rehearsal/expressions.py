"""Expressions of the rehearsal: names, attributes, indices, operators, comprehensions, iteration."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from trainwreck.code.rehearsal.domain import (
    CHOSEN_BY,
    DECIDED,
    NUMBERED,
    NUMBERING,
    UNKNOWN,
    WRITTEN,
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
from trainwreck.code.rehearsal.graph import near
from trainwreck.code.rehearsal.operators import Operators
from trainwreck.code.rehearsal.reshaping import pieces
from trainwreck.code.rehearsal.storing import EXACT_ITEMS, EXACT_TURNS, GROUND, by_identity, room

BUILTINS = frozenset(
    """abs all any bool bytes callable dict divmod enumerate filter float frozenset getattr hasattr id
    int isinstance iter len list map max min next object open pow print range repr reversed round set
    setattr sorted str sum super tuple type vars zip Exception ValueError RuntimeError KeyError
    StopIteration NotImplementedError AssertionError TypeError IndexError KeyboardInterrupt SystemExit
    FileNotFoundError slice hash property staticmethod classmethod input exit quit format ord chr hex
    issubclass delattr globals locals""".split()
)


class Expressions(Operators):
    """Evaluates expressions; calls come with the next class."""

    def value(self, node: ast.expr, frame: Frame) -> Value:
        self.spend()
        match node:
            case ast.Constant():
                return node.value
            case ast.Name():
                return self.lookup(node.id, frame)
            case ast.Attribute():
                found = self.get_attribute(self.value(node.value, frame), node.attr, (node, frame.scope))
                return self.unnamed(found, (node, frame.scope))
            case ast.Call():
                return self.called(node, frame)
            case ast.BinOp():
                one, other = self.value(node.left, frame), self.value(node.right, frame)
                return self.operated(node.op, one, other, (node, frame.scope))
            case ast.Subscript():
                base = self.value(node.value, frame)
                return self.item(base, self.value(node.slice, frame), (node, frame.scope), frame)
            case ast.Tuple():
                found, more = self.spread(node.elts, frame)
                return Items(found, True) if more else tuple(found)
            case ast.List() | ast.Set():
                found, more = self.spread(node.elts, frame)
                return Items(found, more, "list", (node, frame.scope))
            case ast.Dict():
                return self._dict(node, frame)
            case ast.UnaryOp():
                return self._unary(node, frame)
            case ast.Compare():
                return self._compare(node, frame)
            case ast.BoolOp():
                return self._bool(node, frame)
            case ast.IfExp():
                test = self.value(node.test, frame)
                self.memo.setdefault("tested", []).append((test, node))
                known = self.truth(test)
                if known is not None:
                    return self.value(node.body if known else node.orelse, frame)
                with self.perhaps():
                    one, other = self.value(node.body, frame), self.value(node.orelse, frame)
                either = self.joined(one, other, (node, frame.scope))
                if isinstance(either, Node) and either.op == "either" and either.place == (node, frame.scope):
                    either.attributes[CHOSEN_BY] = test
                return either
            case ast.Lambda():
                return self.function(node, frame.scope, frame)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                found, more, through = self._comprehended(node.elt, node.generators, frame)
                if any(g.ifs for g in node.generators):
                    self.memo.setdefault("picked", []).append(((node, frame.scope), self.stack, len(found), more))
                length = through.length if more and isinstance(through, Items) else None
                return Items([v for (v,) in found], more, "list", (node, frame.scope), length, source=through)
            case ast.DictComp():
                pairs, more, through = self._comprehended((node.key, node.value), node.generators, frame)
                made = Table({k if isinstance(k, GROUND) else f"?{n}": v for n, (k, v) in enumerate(pairs)}, more)
                if not any(g.ifs for g in node.generators):
                    self.memo.setdefault(NUMBERED, {})[id(made)] = (made, through)
                return self.numbered(made, pairs, (node, frame.scope))
            case ast.JoinedStr():
                return self._text(node, frame)
            case ast.NamedExpr():
                value = self.value(node.value, frame)
                self.store(node.target, value, frame)
                return value
            case ast.Starred() | ast.Await():
                return self.value(node.value, frame)
            case ast.Slice():
                ends = [self.value(p, frame) if p is not None else None for p in (node.lower, node.upper, node.step)]
                return Obj("builtins.slice", args=tuple(ends))
            case ast.Yield() | ast.YieldFrom():
                return self._yield(node, frame)
            case ast.FormattedValue():
                self.value(node.value, frame)
        return UNKNOWN

    def numbered(self, table: Table, pairs: Sequence[tuple[Value, ...]], place: Place) -> Table:
        """``table``, noted as a numbering where values of the data have numbers of a count (``enumerate``)."""
        numbers = [near(v, 3) for _, v in pairs if isinstance(v, Node) and v.op in ("counter", "add")]
        counts = any(n.op == "counter" for found in numbers for n in found)
        if counts and any(isinstance(k, Node) for k, _ in pairs):
            table.numbered, table.stack = place, self.stack
            table.counted = tuple(k for k, _ in pairs if isinstance(k, Node))
        return table

    def unnamed(self, value: Value, place: Place) -> Value:
        """An attribute that is used as a value: what is no method that is known is a value of its own."""
        if not isinstance(value, Method):
            return value
        receiver, name = value.receiver, value.name
        if isinstance(receiver, Node) and receiver.op != "param" and name not in ("backward", "item", "detach"):
            return self.node("attribute", (receiver,), place, name=name)
        return value

    def spread(self, nodes: list[ast.expr], frame: Frame, wanted: int | None = None) -> tuple[list[Value], bool]:
        """The values of elements or arguments, those behind a star one by one. ``wanted``: how many there must be."""
        found: list[Value] = []
        open_ended = False
        stars = sum(isinstance(n, ast.Starred) for n in nodes)
        for node in nodes:
            value = self.value(node, frame)
            if isinstance(node, ast.Starred):
                count = pieces(value) if isinstance(value, Node) else None
                if count is None and wanted is not None and stars == 1 and isinstance(value, Node):
                    count = wanted - len(nodes) + 1 if value.op != "either" else None
                known = count is not None and 0 < count <= EXACT_ITEMS
                read = self.parts(value, count or 0, (node, frame.scope), frame) if known else None
                items, more = read or self.elements(value, (node, frame.scope), frame)
                found += items
                open_ended = open_ended or more
            else:
                found.append(value)
        return found, open_ended

    def _dict(self, node: ast.Dict, frame: Frame) -> Table:
        table = Table({})
        for key, item in zip(node.keys, node.values, strict=True):
            value = self.value(item, frame)
            if key is None:
                for other in candidates(value):
                    if isinstance(other, Table):
                        table.entries.update(other.entries)
                        table.more = table.more or other.more
                    else:
                        table.more = True
                continue
            known = self.value(key, frame)
            table.entries[known if isinstance(known, GROUND) or known is None else f"?{len(table.entries)}"] = value
        return table

    def _text(self, node: ast.JoinedStr, frame: Frame) -> Value:
        values = [
            self.value(part.value if isinstance(part, ast.FormattedValue) else part, frame) for part in node.values
        ]
        if all(isinstance(value, GROUND) for value in values):
            return "".join(map(str, values))
        text = self.node("text", (), (node, frame.scope))
        text.attributes[WRITTEN] = tuple(v for v in values if not isinstance(v, GROUND))
        return text

    def _yield(self, node: ast.Yield | ast.YieldFrom, frame: Frame) -> Value:
        value = self.value(node.value, frame) if node.value is not None else None
        at: Frame | None = frame
        while at is not None and at.kind == "comprehension":
            at = at.parent
        if at is not None and at.on_yield is not None:
            at.on_yield(value)
        elif at is not None and at.yielded is not None and len(at.yielded) < EXACT_ITEMS:
            if isinstance(node, ast.YieldFrom):
                at.yielded += self.elements(value, (node, frame.scope), frame)[0]
                if at.function is not None and _whole(at.function.node, node):
                    at.pace = value
            else:
                at.yielded.append(value)
                if self.turns and at.function is not None and _once_a_turn(at.function.node, node, self.turns[-1].node):
                    at.pace = self.turns[-1].over
        return UNKNOWN

    # ------------------------------------------------------------------ names
    def lookup(self, name: str, frame: Frame) -> Value:
        at: Frame | None = frame
        while at is not None:
            if name in at.names and (at is frame or at.kind != "class"):
                return at.names[name]
            at = at.parent
        if name in BUILTINS:
            return External(f"builtins.{name}")
        return {"__name__": "__main__", "__file__": "script.py"}.get(name, UNKNOWN)

    # ------------------------------------------------------------------ parts
    def item(self, base: Value, index: Value, place: Place, frame: Frame) -> Value:
        if isinstance(base, Node) and base.op == "either":
            found = [self.item(v, index, place, frame) for v in candidates(base) if v is not None]
            result: Value = found[0] if found else UNKNOWN
            for other in found[1:]:
                result = self.joined(result, other, place)
            if isinstance(result, Node) and result.op == "either" and result.place is place:
                result.attributes[DECIDED] = base.attributes.get(DECIDED, base)
            return result
        if isinstance(base, Table):
            if isinstance(index, GROUND) and index in base.entries:
                return base.entries[index]
            if (own := by_identity(index)) and own in base.entries:
                return base.entries[own]
            if base.numbered is not None and isinstance(index, Node):
                looked_up = self.node("lookup", (index,), place, grad=False)
                looked_up.attributes[NUMBERING] = base
                return looked_up
            known = [v for k, v in base.entries.items() if not isinstance(index, GROUND) or str(k).startswith("?")]
            if base.factory is not None and (own or not known):
                fresh = self.call(base.factory, [], {}, place, frame)
                if isinstance(fresh, Items | Table):  # numbers would have to be counted: they stay unknown
                    key = index if isinstance(index, GROUND) else own or "?"
                    return base.entries.setdefault(key, fresh)
            if known and len(known) <= EXACT_TURNS:
                result = known[0]
                for other in known[1:]:
                    result = self.joined(result, other, place)
                return result
            return self.node("item", (base, index), place)
        if isinstance(base, tuple | Items | str):
            items = base if isinstance(base, str) else self.list_of(base)
            if isinstance(index, int) and -len(items) <= index < len(items):
                return items[index]
            if isinstance(index, Obj) and index.kind == "builtins.slice":
                ends = index.args
                if all(e is None or isinstance(e, int) for e in ends) and ends[2] != 0:
                    part = items[ends[0] : ends[1] : ends[2]]
                    if not part and isinstance(base, Items) and base.more and ends[1] != 0:
                        part = items  # of a long list a few elements stand for all, also for those further on
                    if isinstance(base, Items):
                        return Items(list(part), base.more)
                    return tuple(part) if isinstance(base, tuple) else part
                return Items(list(items), True) if not isinstance(base, str) else UNKNOWN
            many = isinstance(base, Items) and (base.more or all(_without_parts(i) for i in items))
            if many and isinstance(index, Node) and _of_a_kind(items):
                return self._representative(items, index)
            if len(items) > 1 and all(isinstance(i, tuple) and len(i) == len(items[0]) for i in items):
                columns = [self._any(column, place) for column in zip(*items, strict=True)]
                return tuple(self._picked(column, index, place) for column in columns)
            if isinstance(index, Node) and len(items) > 1 and all(isinstance(i, str) for i in items):
                return self.node("text", (index,), place, grad=False)
            picked: Value = items[0] if len(items) == 1 and not isinstance(base, str) else self._any(items, place)
            return self._picked(picked, index, place)
        if isinstance(base, Obj):
            getter = base.cls.find("__getitem__") if base.cls is not None else None
            if isinstance(getter, Function):
                return self.call(Bound(getter, base), [index], {}, place, frame)
            return self.object_item(base, index, place, frame)
        if isinstance(base, External) and base.dotted in ("numpy.mgrid", "numpy.ogrid"):
            return self.node(base.name, index if isinstance(index, tuple) else (index,), place, full=base.dotted)
        if isinstance(base, External) and base.dotted == "os.environ" and isinstance(index, str):
            return self.node("option", (), place, name=index)
        if isinstance(base, Class | External):
            return base
        return self.node("getitem", (base, index), place)

    def _representative(self, items: Sequence[Value], index: Node) -> Value:
        """One of many objects that stand for all of their kind: the same for the same number; in a loop over their
        numbers the next, else another one for each number of a turn, and for each turn."""
        if index.op == "counter":
            return items[-1]
        chosen: dict[int, int] = self.memo.setdefault("representatives", {})
        if id(index) not in chosen:
            made = self.memo.setdefault("turns of numbers", {})
            seen: list[tuple[int, ...]] = made.setdefault(id(index.place[0]) if index.place is not None else 0, [])
            seen.append(tuple(id(turn) for turn in index.turns))
            chosen[id(index)] = len(set(seen)) - 1 + seen.count(seen[-1]) - 1
        return items[chosen[id(index)] % len(items)]

    def _picked(self, value: Value, index: Value, place: Place) -> Value:
        """One of several: which one is not forgotten."""
        if isinstance(value, Node) and value.op == "either" and all(isinstance(c, Obj) for c in value.inputs):
            return value
        if isinstance(value, Node) and not value.unknown and value.op != "param" and isinstance(index, Node):
            return self.node("getitem", (value, index), place, shape=value.shape)
        return value

    def _any(self, items: Any, place: Place) -> Value:
        found = [i for i in items][:EXACT_TURNS]
        if not found or isinstance(items, str):
            return UNKNOWN
        result = found[0]
        for other in found[1:]:
            result = self.joined(result, other, place)
        return result

    def object_item(self, base: Obj, index: Value, place: Place, frame: Frame) -> Value:
        raise NotImplementedError

    def called(self, node: ast.Call, frame: Frame) -> Value:
        raise NotImplementedError

    # ------------------------------------------------------------------ comprehensions
    def sift(self, test: Value, values: list[Value], place: Place, frame: Frame) -> None:
        """Remembers what the test of a ``filter`` says of some values."""
        if test is not None:
            asked = [(self.call(test, [v], {}, (place[0], place[1]), frame), place[0]) for v in values]
            self.memo.setdefault("sifted", []).extend(asked)

    def _comprehended(
        self, wanted: ast.expr | tuple[ast.expr, ast.expr], generators: list[ast.comprehension], frame: Frame
    ) -> tuple[list[tuple[Value, ...]], bool, Value]:
        """The elements, whether there may be more, and what is gone through where each of it gives one element."""
        inner = Frame(frame.scope, {}, frame, "comprehension", function=frame.function)
        found: list[tuple[Value, ...]] = []
        more = False
        through: Value = None

        def run(rest: list[ast.comprehension]) -> None:
            nonlocal more, through
            if not rest:
                if len(found) < (room(found[-1]) if found else 1):
                    parts = wanted if isinstance(wanted, tuple) else (wanted,)
                    found.append(tuple(self.value(p, inner) for p in parts))
                else:
                    more = True
                return
            generator = rest[0]
            place = (generator.iter, frame.scope)
            over = self.value(generator.iter, inner)
            elements, open_ended = self.elements(over, place, frame)
            if len(generators) == 1 and not generator.ifs:
                through = over
            more = more or open_ended
            self.memo.setdefault("open", {}).setdefault(id(generator), []).append(open_ended)
            for element in elements:
                self.store(generator.target, element, inner)
                asked = [self.value(t, inner) for t in generator.ifs]
                self.memo.setdefault("sifted", []).extend(zip(asked, generator.ifs, strict=True))
                tests = [self.truth(a) for a in asked]
                if False in tests:
                    continue
                if None in tests:
                    more = True
                run(rest[1:])

        run(generators)
        return found, more, through


def _of_a_kind(items: Sequence[Value]) -> bool:
    """True for objects of one class."""
    objects = [i for i in items if isinstance(i, Obj)]
    return len(objects) == len(items) > 0 and len({(o.kind, id(o.cls)) for o in objects}) == 1


def _without_parts(obj: Value) -> bool:
    """True for an object of the program's own that holds no module and no optimizer: of such, one may stand for all
    (of others each must be seen to be trained)."""
    if not isinstance(obj, Obj) or obj.cls is None or is_module(obj):
        return False
    held = [v for v in obj.attributes.values() if isinstance(v, Obj) and not v.name.endswith("Loss")]
    return not any(is_module(v) or v.kind.startswith("torch.") for v in held)


def _whole(function: ast.AST, node: ast.YieldFrom) -> bool:
    """True where a function goes through something in one ``yield from`` and does nothing else."""
    body = getattr(function, "body", None)
    others = [n for n in ast.walk(function) if isinstance(n, ast.Yield | ast.YieldFrom | ast.Return) and n is not node]
    plain = isinstance(body, list) and any(isinstance(s, ast.Expr) and s.value is node for s in body)
    return plain and not others


def _once_a_turn(function: ast.AST, node: ast.Yield, loop: ast.AST) -> bool:
    """True for the only ``yield`` of a function, in a loop of that function each turn of which comes there."""
    body = getattr(function, "body", None)
    if not isinstance(loop, ast.For) or not isinstance(body, list) or loop not in body or loop.orelse:
        return False
    ways = (ast.Break, ast.Continue, ast.Return, ast.Yield, ast.YieldFrom)
    others = [n for n in ast.walk(function) if isinstance(n, ways) and n is not node]
    return not others and any(isinstance(s, ast.Expr) and s.value is node for s in loop.body)
