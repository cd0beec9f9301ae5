"""Weights that a program moves by itself: down the slope of what is to become small, or up?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Items, Node, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, reached
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import held, steps
from trainwreck.code.rehearsal.questions.roles import JOINS, STRUCTURE, bounds
from trainwreck.code.rehearsal.questions.signs import ERRORS, LOG_LIKELIHOODS, by_hand, terms

MOVES = frozenset(["inplace", "add_", "sub_", "copy_", "addcdiv_", "addcmul_"])
SAME = (STRUCTURE | {"sign", "clamp", "clip", "data", "detach", "clone", "to", "mean", "nan_to_num"}) - {"embedding"}
"""What rises where its first input rises."""
MOST = 40


def uphill(run: Rehearsing) -> Iterator[Answer]:
    """The gradient of an error is added to the weights that it was taken at, or that of a likelihood taken off.

    Not for inputs that are changed to fool a network, nor for weights that are moved back or stepped by an optimizer
    of the library too (a look at the worst place nearby)."""
    for place, weight, value in _moves(run):
        way = _slope(value, weight, 0)
        wanted = _wanted(run, value, weight)
        if way is None or not way or not wanted or way != wanted or not _is_weight(run, weight, value):
            continue
        there = value.op in ("add", "sub") and not any(place[0] is w.place[0] for w in weight.writes if w.place)
        if (not there and _stepped(run, weight)) or any(
            _slope(v, weight, 0) == -way for _, w, v in _moves(run) if w is weight
        ):
            continue
        yield Answer(place, "the weights are moved the wrong way along their gradient: the error grows")
        return


def _moves(run: Rehearsing) -> list[tuple[Place, Node, Node]]:
    """Where weights get a new value: the place, the weights, and the value (or the move) that hangs on gradients."""
    if "own moves" not in run.memo:
        found: list[tuple[Place, Node, Node]] = []
        for event in run.tape:
            param = _memory(event.subject)
            if event.name not in MOVES or event.place is None or param is None or not event.args:
                continue
            found += [(event.place, param, made) for made in [_new(run, event, param)] if made is not None]
        for node in run.nodes:
            if node.op in ("add", "sub") and node.place is not None and len(node.inputs) > 1:
                taken = [n for n in ancestors(node.inputs[1], through=_plain) if n.op == "grad" and len(n.inputs) > 1]
                at = next((n.inputs[1] for n in taken if n.inputs[1] is node.inputs[0]), None)
                if isinstance(at, Node):
                    found.append((node.place, at, node))
        run.memo["own moves"] = found
    kept: list[tuple[Place, Node, Node]] = run.memo["own moves"]
    return kept


def _plain(node: Node) -> bool:
    return node.op in SAME or node.op in ("mul", "div", "add", "sub", "neg", "lerp", "either")


def _memory(value: Value) -> Node | None:
    """The parameter that is changed, also through ``.data``."""
    while isinstance(value, Node) and value.op in ("data", "detach") and value.inputs:
        value = value.inputs[0]
    return value if isinstance(value, Node) and value.op == "param" else None


def _new(run: Rehearsing, event: Event, param: Node) -> Node | None:
    """The new value of the weights as one value; it is made for this question where there is none."""
    given = event.args[0]
    if event.name in ("inplace", "copy_"):
        return given if isinstance(given, Node) else None
    inputs: tuple[Value, ...] = (param, *event.args)
    made = Node(event.name.rstrip("_"), inputs, dict(event.options), event.place, serial=event.serial)
    return made


def _slope(value: Value, weight: Node, depth: int) -> int | None:
    """+1 where ``value`` rises with the gradient at ``weight``, -1 where it falls, 0 where it doesn't hang on it; None
    where that can't be told."""
    if not isinstance(value, Node):
        return 0
    if depth > MOST:
        return None
    if value.op == "grad":
        return 1 if any(i is weight for i in value.inputs[-1:]) else None
    inputs, first = value.inputs, value.inputs[0] if value.inputs else None
    if value.op == "param" or not inputs:
        return 0
    if value.op in ("add", "sub") and len(inputs) > 1:
        factor = _sign_of(value.options.get("alpha", 1))
        other = _slope(inputs[1], weight, depth + 1)
        turned = None if other is None or factor is None else other * factor * (1 if value.op == "add" else -1)
        return _joined([_slope(first, weight, depth + 1), turned])
    if value.op in ("addcdiv", "addcmul") and len(inputs) > 2:
        factor, other = _sign_of(value.options.get("value", 1)), _sign_of(inputs[2])
        own = _slope(inputs[1], weight, depth + 1)
        known = own is not None and factor is not None and other is not None
        return _joined([_slope(first, weight, depth + 1), own * factor * other if known else None])  # type: ignore[operator]
    if value.op == "neg":
        own = _slope(first, weight, depth + 1)
        return None if own is None else -own
    if value.op in ("mul", "div") and len(inputs) > 1:
        return _product(value, weight, depth)
    if value.op == "lerp":
        return _joined([_slope(i, weight, depth + 1) for i in inputs[:2]])
    if value.op == "either":
        return _joined([_slope(i, weight, depth + 1) for i in inputs])
    if value.op in JOINS or (value.op in ("sum", "mean") and isinstance(first, Items | tuple)):
        items = first.items if isinstance(first, Items) else first if isinstance(first, tuple) else ()
        return _joined([_slope(i, weight, depth + 1) for i in items])
    if value.op in SAME:
        return _slope(first, weight, depth + 1)
    return None if any(n.op == "grad" for n in ancestors(value)) else 0


def _product(value: Node, weight: Node, depth: int) -> int | None:
    one, other = value.inputs[:2]
    if value.op == "div":
        own, factor = _slope(one, weight, depth + 1), _sign_of(other)
        return 0 if own == 0 else None if own is None or factor is None else own * factor
    sides = [_slope(one, weight, depth + 1), _slope(other, weight, depth + 1)]
    if sides == [0, 0]:
        return 0
    for side, factor in ((sides[0], _sign_of(other)), (sides[1], _sign_of(one))):
        if side and factor is not None:
            return side * factor
    return None


def _sign_of(value: Value) -> int | None:
    """The sign of a factor, where it is sure; None where it is not, or where the size of a gradient decides it (steps
    of a given length to the worst place nearby are meant)."""
    if isinstance(value, Node) and any(n.op in ("norm", "vector_norm", "_foreach_norm") for n in ancestors(value)):
        return None
    if isinstance(value, Node) and value.op in ("mul", "div") and len(value.inputs) > 1:
        signs = [_sign_of(i) for i in value.inputs[:2]]
        return None if None in signs else int(signs[0] == signs[1]) * 2 - 1
    if isinstance(value, Node) and value.op == "add" and len(value.inputs) > 1:
        signs = [_sign_of(i) for i in value.inputs[:2]]
        return signs[0] if signs[0] == signs[1] else None
    if isinstance(value, Node) and value.op == "sub" and len(value.inputs) > 1 and value.inputs[0] == 1:
        return 1 if _share(value.inputs[1]) else None  # what corrects a running average for its start
    if isinstance(value, Node) and value.op == "pow" and len(value.inputs) > 1:
        power = value.inputs[1]
        whole = isinstance(power, int | float) and float(power).is_integer() and power % 2
        return None if whole and _sign_of(value.inputs[0]) != 1 else 1
    found = bounds(value)
    if found.low == found.high == 0:
        return None
    return 1 if found.low >= 0 else -1 if found.high <= 0 else None


def _share(value: Value) -> bool:
    """True for a power of a number below one."""
    base = value.inputs[0] if isinstance(value, Node) and value.op == "pow" and value.inputs else None
    return isinstance(base, float) and 0 < base < 1


def _joined(found: list[int | None]) -> int | None:
    kinds = {f for f in found if f != 0}
    return 0 if not kinds else kinds.pop() if len(kinds) == 1 else None


def _wanted(run: Rehearsing, value: Node, weight: Node) -> int:
    """+1 where the gradient is one of an error, -1 of a likelihood, 0 where that isn't known."""
    ways: set[int] = set()
    for grad in (n for n in ancestors(value) if n.op == "grad" and any(i is weight for i in n.inputs[-1:])):
        loss = grad.inputs[0] if len(grad.inputs) > 1 else _behind(run, grad, weight)
        ways.add(_kind(loss))
    return ways.pop() if len(ways) == 1 else 0


def _behind(run: Rehearsing, grad: Node, weight: Node) -> Value:
    """What was backpropagated last before this gradient was read."""
    found = [e for e in run.tape if e.name == "backward" and e.serial < grad.serial]
    giving = [e for e in found if any(p is weight for p in reached(e.subject))]
    return giving[-1].subject if giving else None


def _kind(loss: Value) -> int:
    found = [t for t in terms(loss) if t.node.grad]
    errors = [t for t in found if (t.node.op in ERRORS or by_hand(t.node)) and t.sign and not t.factors]
    likely = [t for t in found if t.node.op in LOG_LIKELIHOODS and t.sign and not t.factors]
    ways = {t.sign for t in errors} | {-t.sign for t in likely}
    return ways.pop() if len(ways) == 1 else 0


def _is_weight(run: Rehearsing, weight: Node, value: Node) -> bool:
    """False for an input that is optimised while a network behind the same loss stays as it is."""
    if weight.owner is not None:
        return True
    for grad in (n for n in ancestors(value) if n.op == "grad" and any(i is weight for i in n.inputs[-1:])):
        loss = grad.inputs[0] if len(grad.inputs) > 1 else _behind(run, grad, weight)
        if any(p.owner is not None for p in ancestors(loss) if p.op == "param"):
            return False
    return True


def _stepped(run: Rehearsing, weight: Node) -> bool:
    """True where an optimizer of the library moves these weights as well."""
    library = (s for s in steps(run) if getattr(s.subject, "cls", None) is None)
    return any(p is weight for s in library for p in held(s))


__all__ = ["uphill"]
