"""Python's builtins and standard library, as far as training programs use them."""

from __future__ import annotations

import ast
from typing import Any

from trainwreck.code.rehearsal.calling import Asked
from trainwreck.code.rehearsal.domain import (
    UNKNOWN,
    Bound,
    Class,
    External,
    Function,
    Items,
    Node,
    Obj,
    Table,
    Value,
    is_module,
)
from trainwreck.code.rehearsal.library import function
from trainwreck.code.rehearsal.library.counting import CYCLED, counted, turned_round
from trainwreck.code.rehearsal.rehearsing import Rehearsing
from trainwreck.code.rehearsal.storing import EXACT_ITEMS, GROUND

NUMBERS = (int, float, bool)


CUT_APART = frozenset(["split", "array_split", "tensor_split"])
"""What gives a list of pieces, each with its place in it."""


@function("builtins.zip", "itertools.zip_longest")
def _zip(run: Rehearsing, asked: Asked) -> Value:
    columns = [run.elements(a, asked.place, asked.frame) for a in asked.args]
    if not columns:
        return Items([])
    exact = [len(found) for found, more in columns if not more]
    length = min(exact) if exact else max(len(found) for found, _ in columns)
    if exact and length <= EXACT_ITEMS:
        for at, given in enumerate(asked.args):
            if isinstance(given, Node) and given.op in CUT_APART and not asked.more:  # the first piece, the second one
                columns[at] = [run.node("part", (given, n), asked.place) for n in range(length)], False
    rows: list[Value] = []
    for number in range(min(length, EXACT_ITEMS)):
        row = tuple(found[min(number, len(found) - 1)] if found else UNKNOWN for found, _ in columns)
        # zip(*samples): as many in each row as there are samples
        rows.append(Items(list(row), True) if asked.more and len(asked.args) > 0 else row)
    endless = run.memo.get(CYCLED, set())
    ending = [a for a in asked.args if id(a) not in endless] or asked.args
    return Items(rows, not exact, "iterator", source=ending[0], columns=tuple(ending))


@function("builtins.list", "builtins.tuple", "builtins.set", "builtins.frozenset", "builtins.sorted",
          "builtins.reversed", "collections.deque", "itertools.islice",
          "itertools.chain.from_iterable", "builtins.iter")  # fmt: skip
def _listed(run: Rehearsing, asked: Asked) -> Value:
    if not asked.args:
        return () if asked.name == "tuple" else Items([])
    given = asked.args[0]
    if isinstance(given, Node) and given.op != "either":
        return given if asked.name in ("iter",) else run.node(asked.name, (given,), asked.place)
    if asked.name in ("iter", "islice") and isinstance(given, Obj):
        return given
    found, more = run.elements(given, asked.place, asked.frame)
    if asked.name == "sorted":
        run.event("select", None, (given,), asked.options, asked.place, full=asked.full)
    if asked.name == "from_iterable":
        parts = [run.elements(v, asked.place, asked.frame) for v in found]
        return Items([v for inner, _ in parts for v in inner], more or any(m for _, m in parts))
    if asked.name == "reversed":
        found = turned_round(run, given, found, asked)
    alike = all(isinstance(v, NUMBERS) for v in found) or all(isinstance(v, str) for v in found)
    if asked.name == "sorted" and not asked.options and not more and alike:
        found = sorted(found)
    if asked.name == "tuple" and not more:
        return tuple(found)
    kind = "arranged" if asked.name == "sorted" and asked.options else asked.name
    kind = kind if kind in ("sorted", "reversed", "arranged") else "list"
    return Items(list(found), more, kind, place=asked.place, source=given if asked.name != "islice" else None)


@function("itertools.chain")
def _chain(run: Rehearsing, asked: Asked) -> Value:
    parts = [run.elements(v, asked.place, asked.frame) for v in asked.args]
    return Items([v for inner, _ in parts for v in inner], any(m for _, m in parts) or asked.more)


@function("itertools.product", "itertools.permutations", "itertools.combinations")
def _product(run: Rehearsing, asked: Asked) -> Value:
    columns = [run.elements(a, asked.place, asked.frame)[0][:2] for a in asked.args]
    return Items(
        [tuple(c[0] if c else UNKNOWN for c in columns), tuple(c[-1] if c else UNKNOWN for c in columns)], True
    )


@function("builtins.next")
def _next(run: Rehearsing, asked: Asked) -> Value:
    found, _ = run.elements(asked.args[0] if asked.args else UNKNOWN, asked.place, asked.frame)
    return found[0] if found else asked.get("default", 1, UNKNOWN)


@function("builtins.map", "builtins.filter")
def _map(run: Rehearsing, asked: Asked) -> Value:
    if len(asked.args) < 2:
        return UNKNOWN
    columns = [run.elements(a, asked.place, asked.frame) for a in asked.args[1:]]
    found, more = [list(c) for c, _ in columns], any(m for _, m in columns)
    node, scope = asked.place  # each call is one of its own: what is called knows its calls by their identity
    if asked.name == "filter":
        run.sift(asked.args[0], found[0][:2], asked.place, asked.frame)  # the others are of the same kind
        return Items(found[0], True)
    rows = [list(row) for row in zip(*found, strict=False)]
    return Items([run.call(asked.args[0], row, {}, (node, scope), asked.frame) for row in rows], more)


@function("builtins.dict", "collections.OrderedDict", "collections.defaultdict", "collections.Counter")
def _dict(run: Rehearsing, asked: Asked) -> Value:
    table = Table({}, asked.more)
    given = [a for a in asked.args if not isinstance(a, Function | External | Class)]
    for value in given:
        if isinstance(value, Table):
            table.entries |= value.entries
            table.more = table.more or value.more
        else:
            found, more = run.elements(value, asked.place, asked.frame)
            for number, pair in enumerate(found):
                parts, _ = run.parts(pair, 2, asked.place, asked.frame)
                if len(parts) == 2:
                    known = isinstance(parts[0], GROUND)
                    table.entries[parts[0] if known else f"?{number}"] = parts[1]
            table.more = table.more or more
    table.entries |= asked.options
    if asked.name in ("defaultdict", "Counter"):
        table.more = True
    if asked.name == "defaultdict" and isinstance(asked.args[0] if asked.args else None, External | Function):
        table.factory = asked.args[0]
    return table


@function("types.SimpleNamespace", "argparse.Namespace", "easydict.EasyDict")
def _namespace(run: Rehearsing, asked: Asked) -> Value:
    made = run.thing("types.SimpleNamespace", asked.args, asked.options, asked.place)
    made.attributes.update(asked.options)
    return made


@function("builtins.vars")
def _vars(run: Rehearsing, asked: Asked) -> Value:
    given = asked.args[0] if asked.args else None
    return Table(given.attributes) if isinstance(given, Obj) else Table({}, True)


@function("dataclasses.asdict")
def _asdict(run: Rehearsing, asked: Asked) -> Value:
    given = asked.args[0] if asked.args else None
    return Table(dict(given.attributes)) if isinstance(given, Obj) else Table({}, True)


@function("dataclasses.replace", "copy.replace")
def _replace(run: Rehearsing, asked: Asked) -> Value:
    given = asked.args[0] if asked.args else None
    return run.copied(given, {}) if not asked.options or not isinstance(given, Obj) else _changed(run, given, asked)


def _changed(run: Rehearsing, given: Obj, asked: Asked) -> Value:
    made = run.copied(given, {})
    made.attributes.update(asked.options)
    return made


@function("builtins.len")
def _len(run: Rehearsing, asked: Asked) -> Value:
    given = asked.args[0] if asked.args else None
    if isinstance(given, tuple | str) or (isinstance(given, Items) and not given.more):
        return len(given.items) if isinstance(given, Items) else len(given)
    if isinstance(given, Table) and not given.more:
        return len(given.entries)
    if isinstance(given, Obj) and given.cls is not None:
        size = given.cls.find("__len__")
        if isinstance(size, Function):
            return run.call(Bound(size, given), [], {}, asked.place, asked.frame)
    held = given.args[0] if isinstance(given, Obj) and given.args else None
    layers = isinstance(given, Obj) and given.kind.endswith(("Sequential", "ModuleList"))
    if layers and not getattr(held, "more", False):
        return len(run.elements(given, asked.place, asked.frame)[0])
    if isinstance(given, Node) and given.shape.axis(0) == 0:
        size_known = given.shape.dim(0)
        if size_known is not None:
            return size_known
    return run.node("len", (given,), asked.place)


@function("builtins.int", "builtins.float", "builtins.bool", "builtins.abs", "builtins.round", "builtins.str",
          "builtins.min", "builtins.max", "builtins.sum", "builtins.pow")  # fmt: skip
def _number(run: Rehearsing, asked: Asked) -> Value:
    if not asked.args:
        return {"int": 0, "float": 0.0, "bool": False, "str": ""}.get(asked.name, UNKNOWN)
    args = list(asked.args)
    if asked.name in ("min", "max") and len(args) == 1:
        run.event("select", None, args, asked.options, asked.place, full=asked.full)
    if asked.name in ("min", "max", "sum") and isinstance(args[0], tuple | Items):
        items, more = run.elements(args[0], asked.place, asked.frame)
        if asked.name == "sum" and items:
            total: Value = args[1] if len(args) > 1 else items[0]
            for item in items if len(args) > 1 else items[1:]:
                total = run.operated(ast.Add(), total, item, asked.place)
            some = more and isinstance(total, NUMBERS)
            return run.node("sum", (total,), asked.place, full=asked.full) if some else total
        if more or not all(isinstance(i, GROUND) for i in items):
            return run.node(asked.name, items, asked.place, full=asked.full)
        args = items
    if asked.name == "bool":
        known = run.truth(args[0])
        return known if known is not None else run.node("bool", args, asked.place)
    if all(isinstance(a, GROUND) for a in args) and not asked.options and args:
        table: dict[str, Any] = {
            "int": int,
            "float": float,
            "abs": abs,
            "round": round,
            "str": str,
            "min": min,
            "max": max,
            "pow": pow,
        }
        try:
            found = table[asked.name](*args) if asked.name in table and len(args) <= EXACT_ITEMS else UNKNOWN
        except (TypeError, ValueError, ArithmeticError):
            return UNKNOWN
        return found if isinstance(found, GROUND) else UNKNOWN
    if asked.name == "float" and len(args) == 1 and isinstance(args[0], str):
        return UNKNOWN
    cut = False if asked.name in ("float", "int", "bool", "str") else None  # a number of Python has no graph
    return run.node(asked.name, args, asked.place, full=asked.full, grad=cut)


@function("builtins.isinstance")
def _isinstance(run: Rehearsing, asked: Asked) -> Value:
    if len(asked.args) != 2:
        return UNKNOWN
    value, wanted = asked.args
    kinds = list(wanted) if isinstance(wanted, tuple) else [wanted]
    found = [_is(value, kind) for kind in kinds]
    if True in found:
        return True
    return False if all(f is False for f in found) else run.node("isinstance", (value,), asked.place)


def _is(value: Value, kind: Value) -> bool | None:
    if isinstance(value, Node):
        if value.op == "param" and isinstance(kind, External):
            return kind.name in ("Parameter", "Tensor")
        return None
    if isinstance(kind, Class):
        return isinstance(value, Obj) and value.cls is not None and kind in list(value.cls.mro())
    if isinstance(kind, External):
        plain = {"int": int, "float": float, "str": str, "bool": bool, "tuple": tuple}
        if kind.dotted.startswith("builtins.") and kind.name in plain:
            return isinstance(value, plain[kind.name])
        if kind.name in ("list", "set"):
            return isinstance(value, Items)
        if kind.name == "dict":
            return isinstance(value, Table)
        if isinstance(value, Obj):
            if kind.dotted.endswith("nn.Module"):
                return is_module(value)
            if value.kind == kind.dotted or value.name == kind.name:
                return True
            if value.cls is not None:
                return _derives(value.cls, kind)
            return None if not value.kind.startswith("torch.nn") else _same_family(value, kind)
        return False
    return None


def _derives(cls: Class, kind: External) -> bool | None:
    """Whether a class of the program is a layer of torch: known where its bases are."""
    bases = [b for c in cls.mro() for b in c.bases]
    if any(isinstance(b, External) and b.dotted == kind.dotted for b in bases):
        return True
    plain = all(isinstance(b, Class) or (isinstance(b, External) and b.dotted.endswith("nn.Module")) for b in bases)
    return False if plain and kind.dotted.startswith("torch.nn.") else None


def _same_family(value: Obj, kind: External) -> bool | None:
    return None if kind.name.startswith("_") else False


@function("builtins.getattr")
def _getattr(run: Rehearsing, asked: Asked) -> Value:
    if len(asked.args) < 2 or not isinstance(asked.args[1], str):
        return UNKNOWN
    base, name = asked.args[0], asked.args[1]
    if isinstance(base, Obj) and name not in base.attributes and len(asked.args) > 2 and base.kind.startswith("types."):
        return asked.args[2]
    return run.get_attribute(base, name, asked.place)


@function("builtins.setattr")
def _setattr(run: Rehearsing, asked: Asked) -> Value:
    if len(asked.args) == 3 and isinstance(asked.args[1], str):
        run.set_attribute(asked.args[0], asked.args[1], asked.args[2], asked.place)
    return None


@function("builtins.print", "builtins.input", "builtins.open")
def _effect(run: Rehearsing, asked: Asked) -> Value:
    run.event(asked.name, None, asked.args, asked.options, asked.place, full=asked.full)
    return run.node(asked.name, asked.given, asked.place) if asked.name != "print" else None


@function("builtins.type")
def _type(run: Rehearsing, asked: Asked) -> Value:
    given = asked.args[0] if len(asked.args) == 1 else None
    if isinstance(given, Obj) and is_module(given):
        return given.cls if given.cls is not None else External(given.kind)
    return run.node("type", asked.given, asked.place)


@function("copy.deepcopy", "copy.copy")
def _copy(run: Rehearsing, asked: Asked) -> Value:
    given = asked.args[0] if asked.args else None
    if asked.name == "copy":
        run.event("shallow copy", given, place=asked.place)
        return _shallow(given)
    if isinstance(made := run.copied(given, {}), Obj):
        made.place = asked.place
    return made


def _shallow(given: Value) -> Value:
    """A list or dict of its own, with the same elements; of other objects the rehearsal follows only one."""
    if isinstance(given, Items):
        return Items(list(given.items), given.more, given.kind)
    return Table(dict(given.entries), given.more) if isinstance(given, Table) else given


@function("functools.partial")
def _partial(run: Rehearsing, asked: Asked) -> Value:
    return run.thing("functools.partial", asked.args, asked.options, asked.place)


@function("functools.wraps", "functools.lru_cache", "functools.cache", "torch.compile", "torch.jit.script",
          "torch.jit.ignore", "torch.compiler.disable", "atexit.register")  # fmt: skip
def _through(run: Rehearsing, asked: Asked) -> Value:
    return asked.args[0] if asked.args and isinstance(asked.args[0], Obj | Function | Bound | Class) else UNKNOWN


@function("functools.reduce")
def _reduce(run: Rehearsing, asked: Asked) -> Value:
    if len(asked.args) < 2:
        return UNKNOWN
    items, _ = run.elements(asked.args[1], asked.place, asked.frame)
    if len(asked.args) > 2:
        items = [asked.args[2], *items]
    total: Value = items[0] if items else UNKNOWN
    for item in items[1:]:
        total = run.call(asked.args[0], [total, item], {}, asked.place, asked.frame)
    return total


@function("dataclasses.field")
def _field(run: Rehearsing, asked: Asked) -> Value:
    return run.thing("dataclasses.field", asked.args, asked.options, asked.place)


@function("tqdm.tqdm", "tqdm.auto.tqdm", "tqdm.trange", "tqdm.auto.trange", "tqdm.notebook.tqdm", "rich.progress.track")
def _bar(run: Rehearsing, asked: Asked) -> Value:
    if asked.name == "trange":
        return counted(run, asked)
    return asked.get("iterable", 0, UNKNOWN)


@function("tyro.cli", "simple_parsing.parse", "fire.Fire")
def _from_command_line(run: Rehearsing, asked: Asked) -> Value:
    target = asked.args[0] if asked.args else UNKNOWN
    return run.call(target, [], {}, asked.place, asked.frame)


@function("sys.exit", "builtins.exit", "builtins.quit", "os._exit")
def _exit(run: Rehearsing, asked: Asked) -> Value:
    return None


@function("contextlib.nullcontext", "contextlib.suppress", "contextlib.ExitStack")
def _null(run: Rehearsing, asked: Asked) -> Value:
    return run.thing(asked.full, asked.args, asked.options, asked.place)
