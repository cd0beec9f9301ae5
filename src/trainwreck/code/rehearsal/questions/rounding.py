"""Are the updates of weights larger than what their type can hold?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.bounds import origin
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, External, Function, Node, Obj, Place, Value, is_module
from trainwreck.code.rehearsal.holding import is_optimizer
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.averaging import updates
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, users
from trainwreck.code.rehearsal.questions.terms import number_of
from trainwreck.core.row import Row

CASTS = frozenset(["to", "bfloat16", "float", "double", "half", "type"])
ADAPTIVE = 4e-4
"""Adam moves a weight by its rate at first, and by a quarter of it (the root of 0.1 / 1.9) where gradients are mostly
noise. A bf16 weight of 0.05 keeps steps of 1e-4 and more (2**-8 of the power of two below it, halved)."""
FALLING = 1e-3
"""The same under a schedule that takes the rate down to zero: of a cosine from 1e-3, the last third lies below 2e-4.
And under autocast, which is there for weights that stay in float32."""
FALLS = frozenset(["CosineAnnealingLR", "CosineAnnealingWarmRestarts", "OneCycleLR", "PolynomialLR"])
PLAIN = 0.3
"""Rate of SGD over (1 - momentum) with gradients of about 1e-3 (a norm of 1 over a million weights, or 0.2 over fifty
thousand): the step is then below 3e-4."""
SLOW = 0.05
"""Share of the new weights in an average: while the two differ by less than 4 percent, each update is below 2**-9 of
the average, and bf16 rounds it away."""
TYPES = {
    "bfloat16": "bfloat16", "float": "float32", "float32": "float32", "double": "float64", "float64": "float64",
    "half": "float16", "float16": "float16",
}  # fmt: skip
MAKES = frozenset(["zeros_like", "empty_like", "zeros", "full_like", "lerp", "copy"])
ADAMS = frozenset(["Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop"])


def lost_in_bfloat16(run: Rehearsing) -> Iterator[Answer]:
    """Weights in bfloat16 that one of torch's optimizers moves in steps which mostly round to nothing."""
    known: dict[int, dict[int, Cast]] = {}
    for optimizer in [o for o in run.objects if is_optimizer(o)]:
        if not _small(run, optimizer):
            continue
        # what it trains may have been trained before, in another type
        mine = [e.serial for e in run.tape if e.name == "backward" and e.serial > optimizer.serial]
        start = min(mine, default=min((e.serial for e in run.tape if e.name == "backward"), default=0))
        last = known.setdefault(start, types_of(run, start) if start not in known else {})
        held, _ = run.optimized(optimizer)
        kinds = {id(last[id(p)].place[0]): last[id(p)] for p in held if id(p) in last and p.trainable is not False}
        if not kinds or not all(id(p) in last for p in held) or {k.name for k in kinds.values()} != {"bfloat16"}:
            continue
        cast = next(iter(kinds.values()))
        if not cast.maybe and (len(kinds) == 1 or cast.event is None):
            text = f"updates with a rate of {optimizer.get('lr', 1):g} are mostly rounded away in bf16 weights"
            place = chosen_at(run, cast.event) if cast.event is not None else cast.place
            yield Answer(place, text, tuple(p for p in (optimizer.place,) if p is not None))


class Cast(Row):
    """What decided the type of a parameter."""

    name: str
    place: Place
    maybe: int
    event: Event | None = None


def types_of(run: Rehearsing, start: int) -> dict[int, Cast]:
    """By ``id`` of a parameter: what its type was set to last before training, where anything did."""
    found: dict[int, Cast] = {}
    switches = [e for e in run.tape if e.name == "set_default_dtype" and e.place is not None and e.serial < start]
    for param in (n for n in run.nodes if n.op == "param" and n.serial < start):
        owner = param.owner
        given = owner.options.get("dtype") if owner is not None else None
        before = [e for e in switches if e.serial < param.serial]
        if isinstance(given, External) and owner is not None and owner.place is not None:
            found[id(param)] = Cast(given.name, owner.place, owner.maybe)
        elif before and before[-1].place is not None:
            found[id(param)] = Cast(_dtype(before[-1]), before[-1].place, before[-1].maybe)
        for write in param.writes:
            cast = _assigned(run, write) if write.name == "copy_" and write.serial < start else ""
            if cast and write.place is not None:
                found[id(param)] = Cast(cast, write.place, write.maybe)
    for event in (e for e in run.tape if e.serial < start and e.place is not None and is_module(e.subject)):
        through = event.args[0] if event.name == "_apply" and event.args else None
        name = _dtype(event) if event.name in CASTS else ""
        if isinstance(through, Function):
            name = "bfloat16" if "bfloat16" in ast.unparse(through.node) else ""
        if name and event.place is not None:
            for param in run.parameters(event.subject)[0]:
                found[id(param)] = Cast(name, event.place, event.maybe, event)
    return found


def _assigned(run: Rehearsing, write: Event) -> str:
    """The type in ``p.data = p.data.bfloat16()``; copying into a parameter leaves its own."""
    statement = run.project.statement(*write.place) if write.place is not None else None
    value = write.args[0] if write.args else None
    into_data = isinstance(statement, ast.Assign) and any(
        isinstance(t, ast.Attribute) and t.attr == "data" for t in statement.targets
    )
    if not into_data or not isinstance(value, Node):
        return ""
    given = next((i.name for i in (*value.inputs, *value.options.values()) if isinstance(i, External)), "")
    return value.op if value.op in TYPES else given if value.op in ("to", "type") else ""


def _dtype(event: Event) -> str:
    """The type that a module is cast to; empty where only a device is given."""
    if event.name in ("bfloat16", "half", "double", "float"):
        return event.name
    given: tuple[Value, ...] = (*event.args, *event.options.values())
    return next((v.name for v in given if isinstance(v, External) and v.dotted.startswith("torch.")), "")


def _small(run: Rehearsing, optimizer: Obj) -> bool:
    """True for the plain optimizers of torch at a rate whose steps bf16 does not keep."""
    rate = optimizer.get("lr", 1, 1e-3)
    if not optimizer.kind.startswith("torch.optim.") or not isinstance(rate, int | float):
        return False
    if optimizer.name in ADAMS:
        schedules = [o for o in run.objects if o.name in FALLS and o.get("optimizer", 0) is optimizer]
        falls = any(not o.get("eta_min") for o in schedules)
        twice = any(o.name == "autocast" for o in run.objects)
        return 0 < rate <= (FALLING if falls or twice else ADAPTIVE)
    momentum = optimizer.get("momentum", 2, 0.0)
    if optimizer.name != "SGD" or not isinstance(momentum, int | float) or not 0 <= momentum < 1:
        return False
    return 0 < rate / (1 - momentum) <= PLAIN


def chosen_at(run: Rehearsing, cast: Event) -> Place:
    """Where the type is written: under the name that the cast is given, else the cast itself."""
    assert cast.place is not None
    node, scope = cast.place
    arguments = [*node.args, *(k.value for k in node.keywords)] if isinstance(node, ast.Call) else []
    for argument in arguments:
        written = isinstance(argument, ast.Attribute) and ast.unparse(argument).startswith("torch.")
        if isinstance(argument, ast.Name | ast.Attribute | ast.Subscript) and not written:
            if any(_names(call.node, argument) for call in run.project.calls("autocast")):
                return cast.place  # the type is right for what is computed
            return origin(run.project, argument, scope) or cast.place
    return cast.place


def _names(call: ast.AST, name: ast.expr) -> bool:
    return any(isinstance(n, ast.expr) and ast.unparse(n) == ast.unparse(name) for n in ast.walk(call))


# ---------------------------------------------------------------------- averages
def averages_in_bfloat16(run: Rehearsing) -> Iterator[Answer]:
    """An average of weights that is kept in bfloat16: what each update adds is below the last digit."""
    told: set[int] = set()
    for node in run.nodes:
        for kept, new, place, old in (*_written_shares(node), *_computed_shares(run, node)):
            if not 0 < new <= SLOW + 1e-9 or abs(kept + new - 1) > 1e-6:
                continue
            cast = _stored_as(run, old, place)
            if cast is None or id(cast[0]) in told:
                continue
            told.add(id(cast[0]))
            text = f"the average is kept in bfloat16: updates with a share of {new:g} are mostly rounded away"
            yield Answer(cast, text, (place,))
    yield from _averaged_models(run)


def _written_shares(node: Node) -> Iterator[tuple[float, float, Place, Node]]:
    """Averages that are changed in place."""
    for kept, new, place in updates(node) if node.writes else ():
        yield kept, new, place, node


def _computed_shares(run: Rehearsing, node: Node) -> Iterator[tuple[float, float, Place, Node]]:
    """``a * old + b * new`` that is stored under a name or a key again."""
    if node.op not in ("add", "lerp") or node.grad or not node.turns or node.place is None or len(node.inputs) < 2:
        return
    if node.op == "lerp":
        pairs = [(node.inputs[0], None), (node.inputs[1], number_of(node.inputs[2]) if node.inputs[2:] else None)]
        pairs[0] = (pairs[0][0], 1 - pairs[1][1] if pairs[1][1] is not None else None)
    else:
        pairs = [_factored(item) for item in node.inputs[:2]]
    for (old, kept), (new, share) in (pairs, pairs[::-1]):
        if not isinstance(old, Node) or kept is None or share is None or kept < share or not _of_network(new):
            continue
        if _type(old)[0] == "bfloat16" and _type(new)[0] == "bfloat16":
            yield kept, share, node.place, old
        for user in users(run).get(id(node), ()):
            if _type(user)[0] == "bfloat16" and user.turns:
                yield kept, share, node.place, user


def _factored(value: Value) -> tuple[Value, float | None]:
    """A product of a value and a number."""
    if isinstance(value, Node) and value.op == "mul" and len(value.inputs) > 1:
        for number, rest in (value.inputs[:2], value.inputs[1::-1]):
            if (known := number_of(number)) is not None:
                return rest, known
    return value, None


def _of_network(value: Value) -> bool:
    node = value
    for _ in range(8):
        if not isinstance(node, Node):
            return False
        if node.op in ("param", "state"):
            return True
        node = node.inputs[0] if node.inputs and node.op in STRUCTURE else None
    return False


def _stored_as(run: Rehearsing, node: Node, update: Place) -> Place | None:
    """Where the average was made a bfloat16; None where it is of another type."""
    if node.op != "param":
        kind, place = _type(node)
        return place if kind == "bfloat16" else None
    first = min((w.serial for w in node.writes if w.place is not None and w.place[0] is update[0]), default=0)
    kind, where = "", None
    for event in run.tape:
        if event.serial >= first:
            break
        cast = event.name in CASTS and bool(_dtype(event)) and is_module(event.subject)
        if cast and any(_same(p, node, event) for p in run.parameters(event.subject)[0]):
            kind, where = _dtype(event), event.place
    for write in node.writes:
        assigned = write.place is not None and isinstance(write.place[0], ast.Attribute) and write.serial < first
        if assigned and write.args and isinstance(write.args[0], Node) and _type(write.args[0])[0]:
            kind, where = _type(write.args[0])
    return where if kind == "bfloat16" else None


def _same(param: Node, node: Node, event: Event) -> bool:
    """True for ``node`` itself, and for what it was copied from after ``event``."""
    return param is node or (event.serial < node.serial and any(i is param for i in node.inputs))


def _type(value: Value) -> tuple[str, Place | None]:
    """The type that a value was last cast to, and where; empty where it keeps that of what it was made from."""
    node = value
    for _ in range(8):
        if not isinstance(node, Node) or not (node.op in STRUCTURE or node.op in MAKES or "inplace" in node.options):
            break
        named = [v for v in (*node.inputs[1:], *node.options.values()) if isinstance(v, External)]
        kind = node.op if node.op in TYPES else next((v.name for v in named if v.name in TYPES), "")
        if kind:
            return TYPES[kind], node.place
        node = node.inputs[0] if node.inputs else None
    return "", None


def _averaged_models(run: Rehearsing) -> Iterator[Answer]:
    for event in run.tape:
        averaged = event.subject
        if event.name in CASTS and isinstance(averaged, Obj) and averaged.name == "AveragedModel":
            later = [e for e in run.tape if e.subject is averaged and e.serial > event.serial]
            again = any(e.name in CASTS and _dtype(e) for e in later)
            moved = next((e for e in later if e.name == "update_parameters" and e.turns), None)
            if _dtype(event) == "bfloat16" and not again and moved is not None and event.place is not None:
                text = "the average is kept in bfloat16: what an update adds is mostly rounded away"
                yield Answer(event.place, text, tuple(p for p in (moved.place,) if p is not None))
