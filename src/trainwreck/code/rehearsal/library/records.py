"""Named tuples, samples from lists, ways to a part of a module by its name, and whether an object has one."""

from __future__ import annotations

import ast

from trainwreck.code.rehearsal.calling import Asked
from trainwreck.code.rehearsal.domain import UNKNOWN, Frame, Function, Items, Node, Obj, Value, is_module
from trainwreck.code.rehearsal.holding import is_optimizer, is_scheduler
from trainwreck.code.rehearsal.library import NOTHING, function, method
from trainwreck.code.rehearsal.rehearsing import Rehearsing
from trainwreck.code.rehearsal.storing import EXACT_TURNS
from trainwreck.code.shapes.domain import Shape

RECORD = "namedtuple"
"""The kind of an object that a ``namedtuple`` makes."""


@function("collections.namedtuple")
def _named_tuple(run: Rehearsing, asked: Asked) -> Value:
    """The class: a function of its fields."""
    given = asked.get("field_names", 1)
    if isinstance(given, str):
        fields: list[Value] = list(given.replace(",", " ").split())
    elif isinstance(given, tuple | Items):
        fields = run.list_of(given)
    else:
        return NOTHING
    names = [f for f in fields if isinstance(f, str) and f.isidentifier()]
    if not names or len(names) != len(fields):
        return NOTHING
    made = ast.parse(f"lambda {', '.join(names)}: _record({', '.join(f'{n}={n}' for n in names)})", mode="eval").body
    assert isinstance(made, ast.Lambda)
    for node in ast.walk(made):
        ast.copy_location(node, asked.place[0])
    from trainwreck.code.rehearsal.domain import External

    frame = Frame(asked.place[1], {"_record": External("trainwreck.record")}, asked.frame)
    defaults, values = asked.options.get("defaults"), {}
    if isinstance(defaults, tuple | Items):
        listed = run.list_of(defaults)
        values = dict(zip(names[-len(listed) :], listed, strict=False)) if listed else {}
    return Function(made, asked.place[1], frame, defaults=values)


@function("trainwreck.record")
def _record(run: Rehearsing, asked: Asked) -> Value:
    made = run.thing(RECORD, (), {}, asked.place)
    made.attributes.update(asked.options)
    return made


@method(RECORD, "_asdict")
def _as_dict(run: Rehearsing, asked: Asked) -> Value:
    from trainwreck.code.rehearsal.domain import Table

    return Table(dict(asked.receiver.attributes))


@method(RECORD, "_replace")
def _replaced(run: Rehearsing, asked: Asked) -> Value:
    made = run.thing(RECORD, (), {}, asked.place)
    made.attributes.update({**asked.receiver.attributes, **asked.options})
    return made


@function("random.sample", "random.choices")
def _sampled(run: Rehearsing, asked: Asked) -> Value:
    given, count = asked.get("population", 0), asked.get("k", 1 if asked.name == "sample" else None)
    many = count if isinstance(count, int) and count > 0 else None
    if isinstance(given, Items) and (given.kind == "range" or _counted_up(given)):
        few = many if many is not None and many <= EXACT_TURNS else None
        drawn = [run.node("sample", (given,), asked.place, full=asked.full, shape=Shape(())) for _ in range(few or 2)]
        return Items(drawn, not few, length=many)
    return Items(list(given.items), True, length=many) if isinstance(given, Items) and given.items else NOTHING


def _counted_up(given: Items) -> bool:
    """True for a list of a range: its first number is no more likely than the others."""
    return given.more and all(isinstance(i, int) or (isinstance(i, Node) and i.op == "counter") for i in given.items)


@function("random.choice")
def _chosen(run: Rehearsing, asked: Asked) -> Value:
    given = asked.get("seq", 0)
    return (
        run.item(given, run.node("index", (), asked.place), asked.place, asked.frame)
        if isinstance(given, Items | tuple) and run.list_of(given)
        else NOTHING
    )


@method("module", "get_submodule", "get_parameter")
def _part(run: Rehearsing, asked: Asked) -> Value:
    name, at = asked.get("target", 0), asked.receiver
    if not isinstance(name, str):
        return NOTHING
    for part in name.split(".") if name else ():
        if not isinstance(at, Obj):
            return UNKNOWN
        at = run.get_attribute(at, part, asked.place)
    return at


@method("str", "partition", "rpartition")
def _partitioned(run: Rehearsing, asked: Asked) -> Value:
    sep = asked.get("sep", 0)
    if not isinstance(sep, str) or not sep:
        return NOTHING
    text: str = asked.receiver
    return text.partition(sep) if asked.name == "partition" else text.rpartition(sep)


@method("str", "rsplit")
def _split_from_right(run: Rehearsing, asked: Asked) -> Value:
    sep, most = asked.get("sep", 0), asked.get("maxsplit", 1, -1)
    if not (sep is None or (isinstance(sep, str) and sep)) or not isinstance(most, int):
        return NOTHING
    return Items(list(asked.receiver.rsplit(sep, most))[:24])


@function("builtins.hasattr")
def _hasattr(run: Rehearsing, asked: Asked) -> Value:
    if len(asked.args) == 2 and isinstance(asked.args[1], str) and isinstance(asked.args[0], Obj):
        base, name = asked.args
        if name in base.attributes or (base.cls is not None and base.cls.find(name) is not None):
            return True
        if base.kind.startswith("torch.nn.") and name in ("weight", "bias"):
            return bool(run.own_parameters(base).get(name) is not None)
        if name in STATEFUL and (is_module(base) or is_optimizer(base) or is_scheduler(base)):
            return True
    if len(asked.args) == 2 and isinstance(asked.args[0], int | float | str) and asked.args[1] in STATEFUL:
        return False
    return run.node("hasattr", (), asked.place)


STATEFUL = frozenset(["state_dict", "load_state_dict"])
"""Methods that modules, optimizers and schedules have, and numbers and texts have not."""
