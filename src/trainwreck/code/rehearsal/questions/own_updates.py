"""What a program does to gradients and weights itself: clipping by hand, and steps without an optimizer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Items, Node, Turn, Value
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import backwards, held, ids, lives, reached, same_turn, steps
from trainwreck.code.rehearsal.questions.places import asked, literal
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, core

CHANGES = frozenset(["mul_", "div_", "clamp_", "clip_", "clamp_min_", "clamp_max_", "copy_", "set_grad"])
BOUNDED = frozenset(["clamp_", "clip_", "clamp", "clip"])
LENGTHS = frozenset(["norm", "vector_norm", "sqrt"])
MOVES = frozenset(["inplace", "sub_", "add_", "copy_", "addcdiv_"])
SMALL = 5e-3
"""Gradients of a network have norms around 1; the smallest bound in common recipes is 0.01."""
NAMES = ("clip", "max_norm", "limit", "bound", "norm", "grad")


@dataclass(eq=False)
class Change:
    """One place at which gradients are changed in a loop, in one turn of the loop around it: its events, whose
    gradients these are, and by which factors or limits."""

    events: list[Event]
    params: list[Node] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)

    @property
    def last(self) -> Event:
        return self.events[-1]


def gradient_of(value: Value) -> Node | None:
    """The parameter whose gradient ``value`` is, moved or copied at most."""
    for node in core(value):
        if node.op == "grad" and node.inputs and isinstance(node.inputs[0], Node) and node.inputs[0].op == "param":
            return node.inputs[0]
    return None


def changes(run: Rehearsing) -> list[Change]:
    """Gradients that are scaled or clamped by the program itself, all parameters of one loop over them together."""
    if "own changes" not in run.memo:
        run.memo["own changes"] = _changes(run)
    made: list[Change] = run.memo["own changes"]
    return made


def _changes(run: Rehearsing) -> list[Change]:
    found: dict[tuple[int, tuple[Turn, ...]], Change] = {}
    for event in run.tape:
        if event.name not in CHANGES or event.place is None:
            continue
        if event.name == "set_grad":
            param, values = event.subject, _factors(event)
        else:
            param, values = gradient_of(event.subject), list(event.args)
        if param is None or not values:
            continue
        outer = event.turns if len(event.turns) < 2 else event.turns[:-1]
        change = found.setdefault((id(event.place[0]), outer), Change([]))
        change.events.append(event)
        change.params.append(param)
        change.values += values
    return list(found.values())


def _factors(event: Event) -> list[Value]:
    """What a gradient is multiplied by or held to where it is bound anew: ``p.grad = p.grad.clamp(-1, 1)``."""
    new = event.args[0] if event.args else None
    if not isinstance(new, Node) or new.op not in ("mul", "div", "clamp", "clip") or not new.inputs:
        return []
    old = [n for n in parts(new.inputs[:2]) if gradient_of(n) is event.subject]
    given = [*new.inputs, *new.options.values()]
    return [i for i in given if not any(i is o for o in old)] if old else []


def _limits(change: Change) -> bool:
    """True for clipping: limits, or a factor that depends on how large gradients are."""
    held_to = [e.args[0] for e in change.events if e.name == "set_grad" and e.args]
    if any(e.name in BOUNDED for e in change.events) or any(getattr(v, "op", "") in BOUNDED for v in held_to):
        return True
    return any(
        n.op in LENGTHS and any(a.op == "grad" for a in ancestors(n)) for v in change.values for n in ancestors(v)
    )


def changed_too_late(run: Rehearsing) -> Iterator[Answer]:
    """Gradients that are clipped by hand after the step that used them, and cleared before the next."""
    for change in _last_ones(run):
        event, params = change.last, ids(change.params)
        before = [b for b in backwards(run) if b.serial < event.serial and params & ids(reached(b))]
        if not before or not same_turn(before[-1], event) or not _limits(change) or event.place is None:
            continue
        used = [s for s in steps(run) if params & ids(held(s))]
        between = [s for s in used if before[-1].serial < s.serial < change.events[0].serial]
        again = next((b for b in backwards(run) if b.serial > event.serial and params & ids(reached(b))), None)
        later = [s for s in used if s.serial > event.serial and (again is None or s.serial < again.serial)]
        if between and not later and _clears(run, before[-1], event, params):
            text = "gradients are clipped here after the step that used them, and cleared before the next one"
            yield Answer(event.place, text, (between[-1].place,) if between[-1].place is not None else ())


def _last_ones(run: Rehearsing) -> list[Change]:
    """Of each place the last turn, where it is a turn like any other."""
    found = {id(c.last.place[0]): c for c in changes(run) if c.last.place is not None and c.last.turns}
    return list(found.values()) if lives(run).sure else []


def _clears(run: Rehearsing, backward: Event, change: Event, params: set[int]) -> bool:
    """True where the gradients are cleared in each turn, between the change and the next backward."""
    loop = backward.turns[-1].node if backward.turns else None
    for event in run.tape:
        if event.name == "zero_grad" and params <= ids(event.state.get("held", ())) and event.turns:
            inside = event.turns[-1].node is loop and (event.serial > change.serial or event.serial < backward.serial)
            if inside:
                return True
    return False


def changed_scaled(run: Rehearsing) -> Iterator[Answer]:
    """Gradients that are clipped by hand while they are still multiplied by the scale of the loss."""
    for change in _last_ones(run):
        event, params = change.last, ids(change.params)
        scaled = [e for e in run.tape if e.name == "scale" and e.serial < event.serial]
        moves = [e for e in run.tape if e.name == "scaler_step" and e.serial > event.serial]
        if not scaled or not moves or not same_turn(scaled[-1], moves[0]) or not same_turn(event, moves[0]):
            continue
        scaler = moves[0].subject
        off = getattr(scaler, "options", {}).get("enabled", True) is not True
        if off or scaled[-1].subject is not scaler or not _limits(change):
            continue
        mine = [s for s in steps(run) if s.serial > moves[0].serial and params & ids(held(s))]
        freed = any(
            e.name in ("unscale_", "unscale") and scaled[-1].serial < e.serial < event.serial for e in run.tape
        )  # fmt: skip
        by_scale = any(n.op == "get_scale" for v in change.values for n in ancestors(v))
        if mine and not freed and not by_scale:
            looked = [n for v in change.values for n in ancestors(v) if n.op == "grad" and n.serial > scaled[-1].serial]
            place = asked(min(looked, key=lambda n: n.serial)) if looked else event.place
            if place is not None:
                text = "gradients are limited here while they are still multiplied by the scale of the loss"
                yield Answer(place, text, (event.place,) if event.place is not None else ())


def cut_to_nothing(run: Rehearsing) -> Iterator[Answer]:
    """Gradients that are scaled by hand to a norm so small that every update is cut."""
    for change in _last_ones(run):
        for value in change.values:
            if not isinstance(value, Node) or value.op not in ("div", "mul", "clamp", "min", "minimum"):
                continue
            quotient = next((n for n in ancestors(value) if n.op == "div" and len(n.inputs) > 1), None)
            limit = quotient.inputs[0] if quotient is not None else None
            if quotient is None or not isinstance(limit, int | float) or not 0 < limit <= SMALL:
                continue
            below = [n for n in ancestors(quotient.inputs[1]) if n.op in LENGTHS]
            if any(a.op == "grad" for n in below for a in ancestors(n)) and change.last.place is not None:
                place = literal(run, limit, NAMES, change.last.place)
                text = f"gradients are scaled to a norm of {limit:g}, which cuts every update"
                yield Answer(place, text, (change.last.place,))
                break


def own_step_uncleared(run: Rehearsing) -> Iterator[Answer]:
    """Weights that are moved by hand along gradients that nothing ever clears."""
    touched = [e for e in run.tape if e.name in ("zero_grad", "zero_", "set_grad", "fill_")]
    if any(e.name == "zero_grad" or any(n.op == "grad" for n in ancestors(e.subject)) for e in touched):
        return
    if steps(run) or not lives(run).sure:
        return
    for event in run.tape:
        param = event.subject
        if event.name not in MOVES or not event.turns or not isinstance(param, Node) or param.op != "param":
            continue
        grads = [n for a in event.args for n in _behind(a) if n.op == "grad" and gradient_of(n) is param]
        giving = [b for b in backwards(run) if id(param) in ids(reached(b)) and b.turns and b.place is not None]
        if not grads or len({b.turns for b in giving}) < 2 or giving[-1].turns[-1] not in event.turns:
            continue
        place = giving[-1].place
        if place is not None:
            text = "gradients of all earlier turns are still there when this adds its own: nothing clears them"
            yield Answer(place, text, (event.place,) if event.place is not None else ())
            return


def _behind(value: Value) -> Iterator[Node]:
    return ancestors(value, through=lambda n: n.op in STRUCTURE or n.op not in ("grad", "param"))


def clips_values(run: Rehearsing) -> Iterator[Answer]:
    """``clip_grad_norm_`` of ``p.data`` or ``p.detach()``: these are other tensors, and hold no gradient to clip."""
    for event in run.tape:
        given = event.get("parameters", 0) if event.name == "clip" and event.turns else None
        items = given.items if isinstance(given, Items) else []
        values = [i for i in items if not _written(i)]
        if values and event.place is not None and all(_without_gradient(i) for i in values):
            yield Answer(event.place, "what is clipped here are values of the weights: they hold no gradient", ())
            return


def _written(value: Value) -> bool:
    """True for values into which something was written, element by element."""
    return isinstance(value, Node) and value.op == "setitem"


def _without_gradient(value: Value) -> bool:
    inner = value.inputs[0] if isinstance(value, Node) and value.op in ("data", "detach") and value.inputs else None
    return isinstance(inner, Node) and inner.op == "param"
