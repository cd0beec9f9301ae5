"""Classifier-free guidance: two outputs of one network, with and without its condition, and how they are combined."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Items, Node, Obj, Place, Value, is_module
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.classes import span
from trainwreck.code.rehearsal.questions.paths import RANDOM
from trainwreck.code.rehearsal.questions.roles import JOINS, STRUCTURE, backwards
from trainwreck.code.rehearsal.questions.terms import number_of
from trainwreck.core.row import Row

FILLED = frozenset(["full", "full_like", "zeros", "zeros_like", "ones", "ones_like", "new_full", "new_zeros"])
MIXES = frozenset(["where", "masked_fill", "setitem", "either", "bernoulli", "lerp", "dropout", "index_fill"])
"""What may put another value in the place of a condition."""
TYPICAL = 3.0
"""A guidance scale that is not known counts as this: above 1, as all that guide are (arXiv:2207.12598)."""
SLIGHT = 1e-6
Key = int | str


class Guided(Row):
    """``node`` is ``with_ * conditional + without * unconditional``."""

    node: Node
    module: Obj
    key: Key
    """Under which the condition is given: its position, or its keyword."""
    condition: Value
    null: Value
    with_: float
    without: float


def misused(run: Rehearsing) -> Iterator[Answer]:
    """A guided output that moves away from the condition; a network that never learned to do without its condition."""
    told: set[int] = set()
    for found in _guided(run):
        place = found.node.place
        if place is None or id(place[0]) in told:
            continue
        told.add(id(place[0]))
        total = found.with_ + found.without
        if abs(total - 1) < SLIGHT and (found.with_ < 0 or found.without > 1):
            yield Answer(place, "guidance moves away from the condition here: the two outputs are swapped")
        elif abs(total - 1) < SLIGHT and found.with_ > 1:
            yield from _training(run, found, place)


# ---------------------------------------------------------------------- sampling
def _guided(run: Rehearsing) -> Iterator[Guided]:
    twins = list(_twins(run))
    for node in run.nodes:
        if node.grad or node.op not in ("add", "sub", "lerp") or node.place is None:
            continue
        for conditional, unconditional, module, key, condition, null in twins:
            shares = _shares(node, {id(n) for n in conditional}, {id(n) for n in unconditional})
            if shares is not None and shares[0] and shares[1] and abs(sum(shares)) > SLIGHT:
                yield Guided(node, module, key, condition, null, *shares)


Twin = tuple[list[Node], list[Node], Obj, Key, Value, Value]


def _twins(run: Rehearsing) -> Iterator[Twin]:
    """Outputs of one network for the same input, with a condition and without one."""
    forwards = [e for e in run.tape if e.name == "forward" and is_module(e.subject) and e.result is not None]
    outer = [e for e in forwards if len(e.args) + len(e.options) > 1 and not e.state.get("grad")]
    for number, one in enumerate(outer):
        yield from _halves(run, one)
        for other in outer[number + 1 : number + 4]:
            if other.subject is not one.subject:
                continue
            mine, its = _given(one), _given(other)
            apart = [k for k in mine.keys() | its.keys() if mine.get(k) is not its.get(k)]
            if len(apart) != 1:
                continue
            key = apart[0]
            first, second = mine.get(key), its.get(key)
            if _null(first) == _null(second):
                continue
            a, b = list(parts(one.result)), list(parts(other.result))
            if _null(second):
                yield a, b, one.subject, key, first, second
            else:
                yield b, a, one.subject, key, second, first


def _halves(run: Rehearsing, event: Event) -> Iterator[Twin]:
    """Both in one batch: ``model(cat([x, x]), cat([null, c])).chunk(2)``."""
    for key, value in _given(event).items():
        if not isinstance(value, Node) or value.op not in JOINS or not value.inputs:
            continue
        both = value.inputs[0].items if isinstance(value.inputs[0], Items) else value.inputs[0]
        if not isinstance(both, list | tuple) or len(both) != 2 or _null(both[0]) == _null(both[1]):
            continue
        results = {id(n) for n in parts(event.result)}
        split = [n for n in run.nodes if n.op == "part" and isinstance(n.inputs[0], Node)]
        split = [n for n in split if n.inputs[0].op in ("chunk", "split", "tensor_split") and n.inputs[0].inputs]
        halves = [[n for n in split if n.inputs[1] == k and id(n.inputs[0].inputs[0]) in results] for k in (0, 1)]
        at = 0 if _null(both[1]) else 1
        yield halves[at], halves[1 - at], event.subject, key, both[at], both[1 - at]


def _given(event: Event) -> dict[Key, Value]:
    named: dict[Key, Value] = dict(event.options.items())
    return {**dict(enumerate(event.args)), **named}


def _null(value: Value, depth: int = 0) -> bool:
    """True for what stands for no condition: nothing, a constant, a parameter of its own."""
    if value is None or isinstance(value, int | float | str):
        return True
    if isinstance(value, Items | tuple):
        inner = value.items if isinstance(value, Items) else list(value)
        return bool(inner) and all(isinstance(i, str) and not i for i in inner)
    if not isinstance(value, Node) or depth > 6:
        return False
    if value.op in FILLED or value.op == "param":
        return value.op == "param" or not any(isinstance(i, Node) and i.op == "counter" for i in value.inputs)
    if value.op == "mul" and any(number_of(i) == 0 for i in value.inputs):
        return True
    if value.op in ("tensor", "mul", "embedding", *STRUCTURE) and value.inputs:
        return _null(value.inputs[0], depth + 1)
    return False


def _shares(value: Value, conditional: set[int], unconditional: set[int], depth: int = 0) -> tuple[float, float] | None:
    """How often the two outputs are in ``value``; None where it is no sum of them alone."""
    if not isinstance(value, Node) or depth > 12:
        return None
    if id(value) in conditional or id(value) in unconditional:
        return (1.0, 0.0) if id(value) in conditional else (0.0, 1.0)

    def inner(item: Value) -> tuple[float, float] | None:
        return _shares(item, conditional, unconditional, depth + 1)

    inputs = value.inputs
    if value.op in ("add", "sub") and len(inputs) >= 2:
        one, other = inner(inputs[0]), inner(inputs[1])
        factor = (-1.0 if value.op == "sub" else 1.0) * (_scale(value.options.get("alpha", 1.0)) or 0.0)
        return (one[0] + factor * other[0], one[1] + factor * other[1]) if one and other else None
    if value.op in ("mul", "div") and len(inputs) >= 2:
        for item, by in (inputs[:2], inputs[1::-1]) if value.op == "mul" else (inputs[:2],):
            shares, scale = inner(item), _scale(by)
            if shares is not None and scale:
                scale = 1 / scale if value.op == "div" else scale
                return shares[0] * scale, shares[1] * scale
        return None
    if value.op == "lerp" and len(inputs) >= 3:
        one, other, share = inner(inputs[0]), inner(inputs[1]), _scale(inputs[2])
        if one and other and share is not None:
            return one[0] + share * (other[0] - one[0]), one[1] + share * (other[1] - one[1])
        return None
    if value.op == "neg" and inputs:
        shares = inner(inputs[0])
        return (-shares[0], -shares[1]) if shares else None
    return inner(inputs[0]) if value.op in STRUCTURE and inputs else None


def _scale(value: Value, depth: int = 0) -> float | None:
    """A number; one that is not known counts as a typical scale."""
    known = number_of(value)
    if known is not None or not isinstance(value, Node) or depth > 4 or value.grad:
        return known
    if value.op in ("add", "sub") and len(value.inputs) >= 2:
        one, other = (_scale(i, depth + 1) for i in value.inputs[:2])
        if one is None or other is None:
            return None
        return one + other if value.op == "add" else one - other
    return TYPICAL if value.op in ("argument", "unknown", "counter", "attribute", "item") else None


# ---------------------------------------------------------------------- training
def _training(run: Rehearsing, found: Guided, place: Place) -> Iterator[Answer]:
    """Did the network ever learn what it is asked without a condition?"""
    origin = {id(found.module), id(found.module.copy_of)}
    learned = {id(n) for e in backwards(run) for n in ancestors(e.subject)}
    forwards = [e for e in run.tape if e.name == "forward" and id(e.subject) in origin and e.state.get("grad")]
    forwards = [e for e in forwards if any(id(n) in learned for n in parts(e.result))]
    given = [(e, _given(e).get(found.key)) for e in forwards]
    if not given or any(_null(v) or not isinstance(v, Node) for _, v in given):
        return
    event, value = given[-1]
    assert isinstance(value, Node)
    drops = [n for n in ancestors(value) if n.op in MIXES]
    root = {id(n) for n in (value, *ancestors(value))}
    inside = [n for e in backwards(run) for n in ancestors(e.subject) if n.op in MIXES and n.serial > value.serial]
    inside = [n for n in inside if any(id(a) in root for a in ancestors(n))]
    if not drops and not inside and not _masked(value) and event.place is not None:
        text = "the condition is never left out in training, and the sampler asks the network for an output without it"
        here = [at for at in (value.place, *value.stack[::-1]) if at is not None and at[1] is event.place[1]]
        yield Answer(here[0] if here else event.place, text, (event.place, place))
        return
    never = next((n for n in drops if _never(n)), None)
    if never is not None and len(drops) == 1 and not inside and never.place is not None:
        yield Answer(never.place, "the condition is left out with a probability of zero", (place,))
        return
    mostly = next(((n, p) for n in drops if (p := _left_out(n)) is not None and p >= MOSTLY), None)
    if mostly is not None and len(drops) == 1 and not inside and mostly[0].place is not None:
        text = f"the condition is left out in {mostly[1]:.0%} of all cases: the network hardly learns to follow it"
        yield Answer(mostly[0].place, text, (place,))
        return
    seen = [number for n in drops if (number := _put_in(n)) is not None]
    wanted = _number_in(found.null)
    where = found.null.place if isinstance(found.null, Node) else None
    if len(seen) == len(drops) == 1 and not inside and wanted is not None and wanted != seen[0] and where is not None:
        text = f"the sampler takes {wanted:g} for no condition, and the training {seen[0]:g}"
        dropped = drops[0].place
        if dropped is not None and _real(drops[0], seen[0]):
            yield Answer(dropped, text + ", which is a class of the data", (where,))
        else:
            yield Answer(where, text, (dropped,) if dropped is not None else ())


def _real(drop: Node, number: float) -> bool:
    """True where the number that stands for no condition in training is a label of the data too."""
    reach = next((s for i in drop.inputs if (s := span(i)) is not None and s[0] < s[1]), None)
    return reach is not None and reach[0] <= number <= reach[1]


def _masked(value: Node) -> bool:
    """True where random numbers have a part in the condition."""
    return any(n.op in RANDOM and n is not value for m in ancestors(value) if m.op == "mul" for n in ancestors(m))


def _never(node: Node) -> bool:
    """``rand() < 0``."""
    test = node.inputs[0] if node.op == "where" else node.inputs[1] if len(node.inputs) > 1 else None
    if not isinstance(test, Node) or test.op not in ("lt", "le") or len(test.inputs) < 2:
        return False
    drawn = isinstance(test.inputs[0], Node) and test.inputs[0].op in ("rand", "rand_like", "random", "uniform")
    share = number_of(test.inputs[1])
    return drawn and share is not None and share <= 0


MOSTLY = 0.6
"""Conditions are left out in 10 to 20 % of the cases (arXiv:2207.12598, section 4), at times in half of them."""


def _left_out(node: Node) -> float | None:
    """How often the condition gives way to what stands for none."""
    if node.op not in ("where", "masked_fill") or len(node.inputs) < 3:
        return None
    test = node.inputs[0] if node.op == "where" else node.inputs[1]
    if not isinstance(test, Node) or test.op not in ("lt", "le", "gt", "ge") or len(test.inputs) < 2:
        return None
    drawn, share = isinstance(test.inputs[0], Node) and test.inputs[0].op in UNIFORM, number_of(test.inputs[1])
    if not drawn or share is None or not 0 <= share <= 1:
        return None
    holds = share if test.op in ("lt", "le") else 1 - share
    second = node.op == "where" and _number_in(node.inputs[1]) is None and _number_in(node.inputs[2]) is not None
    return 1 - holds if second else holds


UNIFORM = frozenset(["rand", "rand_like", "random", "uniform"])


def _put_in(node: Node) -> float | None:
    """The number that stands for no condition in training."""
    items = (
        node.inputs[1:3] if node.op in ("where", "masked_fill") else node.inputs[1:2] if node.op == "setitem" else ()
    )
    return next((n for i in items if (n := _number_in(i)) is not None), None)


def _number_in(value: Value) -> float | None:
    known = number_of(value)
    if known is not None or not isinstance(value, Node):
        return known
    if value.op in ("full", "full_like", "new_full"):
        return number_of(value.options.get("fill_value", value.inputs[1] if len(value.inputs) > 1 else None))
    if value.op in ("zeros", "zeros_like", "ones", "ones_like"):
        return 1.0 if value.op.startswith("ones") else 0.0
    if value.op in ("mul", "add") and len(value.inputs) > 1:
        one, other = (_number_in(i) for i in value.inputs[:2])
        if one is None or other is None:
            return None
        return one * other if value.op == "mul" else one + other
    return _number_in(value.inputs[0]) if value.op in STRUCTURE and value.inputs else None
