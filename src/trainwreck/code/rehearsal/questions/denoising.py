"""Diffusion models: the noise that is added and that is to be told, times, and what the sampler takes outputs for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Obj, Place, Value, is_module
from trainwreck.code.rehearsal.graph import ancestors, carries, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.drawn_noise import NOISE, of_samples
from trainwreck.code.rehearsal.questions.places import formula_left_out, mixture_left_out
from trainwreck.code.rehearsal.questions.roles import JOINS, STRUCTURE, core, sum_in
from trainwreck.code.rehearsal.questions.terms import fits, number_of
from trainwreck.core.row import Row


class Denoiser(Row):
    """One training of a network on noisy data."""

    event: Event
    loss: Node
    module: Obj
    output: Node
    target: Node
    given: Event
    noises: tuple[Node, ...]


def denoisers(run: Rehearsing) -> list[Denoiser]:
    """The losses that compare a network's output for data with noise to a target."""
    if (kept := run.memo.get("denoisers")) is not None:
        return list(kept)
    found: list[Denoiser] = []
    outer = [e for e in run.tape if e.name == "forward" and e.result is not None and is_module(e.subject)]
    outer = [_state_first(e) for e in outer]
    for event, term, output, target in fits(run):
        made = core(output)
        for forward in outer:
            results = {id(n) for r in parts(forward.result) for n in (r, *core(r))}
            if not any(id(m) in results for m in made) or not forward.args:
                continue
            noises = [n for a in forward.args[:1] for n in ancestors(a) if n.op in NOISE]
            noises = [n for n in noises if mixed_in(forward.args[0], n)]
            known = mixture(forward)
            noises = [known[1]] if known is not None else noises
            noises = [n for n in noises if n.turns or not event.turns]  # else it is part of the data
            if noises:
                found.append(Denoiser(event, term.node, forward.subject, output, target, forward, tuple(noises)))
            break
    run.memo["denoisers"] = found
    return found


def _state_first(event: Event) -> Event:
    """The event with noisy data as the first argument, where a network takes the time before them."""
    if len(event.args) != 2 or not all(isinstance(a, Node) for a in event.args):
        return event
    noisy = [any(n.op in NOISE and mixed_in(a, n) for n in ancestors(a)) for a in event.args]
    return replace(event, args=event.args[::-1]) if noisy == [False, True] else event


def same_network(forward: Event, found: Denoiser) -> bool:
    """True where the network that is trained is asked, or a copy of it (an average of its weights)."""
    return forward.subject is found.module or getattr(forward.subject, "copy_of", None) is found.module


def mixed_in(value: Value, noise: Node) -> bool:
    """True where the noise is added to something (not only the data made with noise long before, or noise alone)."""
    if any(made is noise for part in parts(value) for made in core(part)):
        return False
    passes = ("add", "sub", "mul", "setitem", "lerp", "either", *STRUCTURE, *JOINS)
    return any(node is noise for node in ancestors(value, through=lambda n: n.op in passes))


def other_noise(run: Rehearsing) -> Iterator[Answer]:
    """The target is noise that was never added to the input."""
    for found in denoisers(run):
        if _target_kind(found) == "data":
            continue  # data that are drawn themselves
        targets = list(_told_noise(found.target))
        given = {id(n) for n in ancestors(found.given.args[0])}  # of what it was computed from, it is no other noise
        fresh = [n for n in targets if id(n) not in given]
        if fresh and len(fresh) == len(targets):
            place = found.loss.place or fresh[0].place
            scope = found.loss.place[1] if found.loss.place is not None else None
            if fresh[0].place is not None and fresh[0].place[1] is scope:
                place = fresh[0].place
            if place is not None:
                text = "the network is to tell a noise that was not added to what it is given"
                yield Answer(place, text, tuple(p for p in (found.noises[0].place, found.loss.place) if p is not None))
                return
    yield from of_samples(run)


def _told_noise(value: Value, depth: int = 0) -> Iterator[Node]:
    """The noise that a target consists of: scaled, or with something taken off. Data with noise are none."""
    node = next(iter(parts(value)), None)
    if node is None or depth > 30:
        return
    if node.op in NOISE:
        yield node
    elif node.op in ("mul", "div", "neg", "sub", "either"):
        for item in node.inputs[:2]:
            yield from _told_noise(item, depth + 1)
    elif node.op in STRUCTURE and node.op not in ("getitem", "index_select", "gather"):
        yield from _told_noise(node.inputs[:1], depth + 1)


def _arithmetic(node: Node) -> bool:
    return node.op in ("add", "sub", "mul", "div", "neg", *STRUCTURE) or node.op == "either"


# ---------------------------------------------------------------------- times
def times(run: Rehearsing) -> Iterator[Answer]:
    """The network is told times on one scale in training and on another when it samples."""
    for found in denoisers(run):
        here = _time(found.given)
        if here is None:
            continue
        for forward in run.tape:
            if forward.name != "forward" or forward.serial == found.given.serial or not same_network(forward, found):
                continue
            if forward.state.get("grad") or forward.place is None:
                continue
            there = _time(forward)
            if there is None:
                continue
            if (here == 1.0) != (there == 1.0) and max(here, there) / max(min(here, there), 1e-12) >= 10:
                text = "times are scaled otherwise here than in the training"
                yield Answer(forward.place, text, (found.given.place,) if found.given.place is not None else ())
                return


def _time(event: Event) -> float | None:
    """What the number of the step is multiplied with before the network gets it; None where it isn't seen."""
    given = event.options.get("t", event.args[1] if len(event.args) > 1 else None)
    given = next((event.options[k] for k in ("timestep", "timesteps", "time", "sigma") if k in event.options), given)
    return _factor(given, 0)


def _factor(value: Value, depth: int) -> float | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return 1.0
    if not isinstance(value, Node) or depth > 20:
        return None
    first = value.inputs[0] if value.inputs else None
    if value.op in ("randint", "counter", "arange", "range", "index"):
        return 1.0
    if value.op in ("div", "mul") and len(value.inputs) > 1:
        number = number_of(value.inputs[1])
        rest = first
        if number is None and value.op == "mul":
            number, rest = number_of(first), value.inputs[1]
        base = _factor(rest, depth + 1)
        if number is None or base is None or not number:
            return None
        return base / number if value.op == "div" else base * number
    if value.op in ("full", "full_like", "new_full"):
        filled = value.options.get("fill_value", value.inputs[1] if len(value.inputs) > 1 else None)
        return _factor(filled, depth + 1)
    if value.op in ("tensor", "as_tensor", "repeat", "expand", "element", "long", "float", "to", "int", "add", "sub",
                    "setitem", "flip", "reversed", "list", "stack", *STRUCTURE):  # fmt: skip
        inner = next(iter(parts(first)), first)
        if isinstance(inner, tuple) and inner:
            inner = inner[0]
        return _factor(inner, depth + 1)
    if value.op == "mul" or value.op == "either":
        return next((f for i in value.inputs if (f := _factor(i, depth + 1)) is not None), None)
    return None


# ---------------------------------------------------------------------- what is told
def kinds(run: Rehearsing) -> Iterator[Answer]:
    """The network learns to tell one thing, and the sampler takes its output for another."""
    for found in denoisers(run):
        learned = _target_kind(found)
        if not learned:
            continue
        for forward in run.tape:
            if forward.name != "forward" or forward.state.get("grad") or not same_network(forward, found):
                continue
            used = _use_kind(run, forward)
            if used and {used[0], learned} == {"data", "velocity"}:
                continue  # a * v + s * x is the noise that a velocity tells of, and the mean that clean data give
            if used and used[0] == "noise" and _right_anyway(found, learned, used[1]):
                continue
            if used and used[0] != learned and forward.place is not None:
                words = {"noise": "the noise", "data": "the clean data", "velocity": "a velocity"}
                text = f"the network learns {words[learned]}, and is taken for {words[used[0]]} here"
                left = used[0] == "noise" and formula_left_out(run)
                place = forward.place if left else used[1].place or forward.place
                if used[0] == "velocity" and mixture_left_out(run, found.noises):
                    place = found.loss.place or place  # the target that was meant is written, and not called
                if found.loss.place is not None and used[0] == "noise" and not left and _steps_at_once(run, used[1]):
                    text = f"the network learns {words[learned]}, and the sampler takes what it tells for the noise"
                    yield Answer(found.loss.place, text, (place,))
                else:
                    yield Answer(place, text, (found.loss.place,) if found.loss.place is not None else ())
                return


def _right_anyway(found: Denoiser, learned: str, difference: Node) -> bool:
    """True for ``x - c * out`` that is right for what was learned: clean data times the training's own factor on them,
    or a velocity along a straight line times a plain time."""
    taken = difference.inputs[1]
    if learned == "velocity":
        return isinstance(taken, Node) and taken.op == "mul" and not any(_schedule(n) for n in _factors(taken))
    signal = signal_of(found)
    mixed = [n for n in ancestors(found.given.args[0]) if n.op == "mul" and any(i is signal for i in n.inputs)]
    theirs = {_origin(f) for n in mixed for f in n.inputs if isinstance(f, Node) and f is not signal} - {None}
    return learned == "data" and isinstance(taken, Node) and any(_origin(f) in theirs for f in _factors(taken))


def _factors(node: Node) -> list[Node]:
    """The factors that do not hang on what a network told."""
    return [i for i in node.inputs[:2] if isinstance(i, Node) and not any(n.op == "param" for n in ancestors(i))]


def _origin(node: Node) -> int | None:
    return id(node.place[0]) if node.place is not None and node.stack else None


def _steps_at_once(run: Rehearsing, difference: Node) -> bool:
    """True where ``x - c * out`` is scaled and gets fresh noise: all of the step is made for noise, not only a line."""
    from trainwreck.code.rehearsal.questions.roles import users

    at = difference
    for _ in range(8):
        after = users(run).get(id(at), ())
        for user in after:
            rest = [i for i in user.inputs[:2] if i is not at] if user.op == "add" else []
            if rest and any(n.op in NOISE for n in ancestors(tuple(rest), through=_arithmetic)):
                return True
        scaled = [u for u in after if u.op in ("mul", "div") or u.op in STRUCTURE]
        if len(scaled) != 1:
            return False
        at = scaled[0]
    return False


def _target_kind(found: Denoiser) -> str:
    """``noise``, ``data`` or ``velocity`` by what the target is."""
    node = _unshaped(found.target)
    if node.op in NOISE and any(node is n for n in found.noises):
        return "noise"
    signal = signal_of(found)
    if signal is not None and node is _unshaped(signal):
        return "data"
    if node.op == "sub":
        inside = {id(n) for n in ancestors(node)}
        if any(id(n) in inside for n in found.noises) and signal is not None and id(signal) in inside:
            return "velocity"
    return ""


def _unshaped(node: Node) -> Node:
    for _ in range(12):
        if node.op not in STRUCTURE or not node.inputs or not isinstance(node.inputs[0], Node):
            break
        if node.op in ("getitem", "index_select", "gather"):
            break
        node = node.inputs[0]
    return node


def signal_of(found: Denoiser) -> Node | None:
    """What the noise was added to."""
    made = mixture(found.given)
    return made[0] if made is not None else None


def mixture(given: Event) -> tuple[Node, Node] | None:
    """Of ``a * x + s * noise`` that a network is given: what the noise is added to, and the noise."""
    told = (*given.args[1:], *given.options.values())
    times = {id(n) for a in told for n in ancestors(a, through=carries) if n.op != "param"}
    at = sum_in(given.args[0]) if given.args else None
    sides = [i for i in at.inputs[:2] if isinstance(i, Node)] if at is not None else []
    if len(sides) != 2:
        return None
    for side, other in ((sides[0], sides[1]), (sides[1], sides[0])):
        noise = next((n for m in _multiplied(side) for n in core(m) if n.op in NOISE), None)
        # of all that the network is told (a class as well) the time is what the noise is scaled by
        before = {id(n) for m in _multiplied(side) if noise not in core(m) for n in ancestors(m, through=carries)}
        mine = before & times or times
        wide = [m for m in _multiplied(other) if not any(id(n) in mine for n in ancestors(m)) and not _schedule(m)]
        wide = sorted(wide, key=_one_column)
        if noise is not None and wide and not any(n is noise for n in ancestors(wide[0])):
            return wide[0], noise
    return None


def _one_column(node: Node) -> bool:
    """True for one number for each sample: times and levels, rather than data."""
    return not node.shape.open and node.shape.dims[-1:] in ((), (1,))


def _schedule(node: Node) -> bool:
    """True for a factor that comes from a table of noise levels."""
    return any(n.op in ("sqrt", "cumprod", "linspace", "rsqrt") for n in near(node, 10))


def _multiplied(node: Node) -> list[Node]:
    return [i for i in node.inputs[:2] if isinstance(i, Node)] if node.op == "mul" else [node]


def _use_kind(run: Rehearsing, forward: Event) -> tuple[str, Node] | None:
    """What a sampler takes the output for: ``x - c * out`` for noise, ``a * x - b * out`` for a velocity."""
    from trainwreck.code.rehearsal.questions.roles import users

    table = users(run)
    given = [n for a in forward.args[:1] for n in parts(a)]
    outputs = [n for n in parts(forward.result)]
    if not given or not outputs:
        return None
    queue, seen = list(outputs[:1]), set[int]()
    while queue:
        node = queue.pop(0)
        for user in table.get(id(node), ()):
            if id(user) in seen or len(seen) > 60:
                continue
            seen.add(id(user))
            if user.op == "sub" and len(user.inputs) > 1 and user.inputs[1] is node:
                other = user.inputs[0]
                if any(other is g for g in given):
                    # ``(x - out) / sigma`` is the slope towards what a network that tells the data makes of ``x``
                    slope = node is outputs[0] and any(u.op in ("div", "mul") for u in table.get(id(user), ()))
                    return None if slope else ("noise", user)
                product = other.inputs if isinstance(other, Node) and other.op == "mul" else ()
                if any(i is g for i in product for g in given):
                    return ("noise", user) if _by_root(other) else ("velocity", user)
                return None
            if user.op in ("mul", "clamp", "clip", *STRUCTURE):
                queue.append(user)
            elif user.op == "add":
                sides = [i for i in user.inputs if i is not node]
                factors = ancestors(tuple(_factors(node)), through=lambda n: n.op in STRUCTURE)
                if any(s is g for s in sides for g in given) and any(n.op in ("sub", "neg") for n in factors):
                    return None  # ``x + (next - now) * out``: a step along what any of them may be
                if any(any(n is g for n in ancestors(s, through=_arithmetic) for g in given) for s in sides):
                    return "data", user
    return None


def _by_root(node: Node) -> bool:
    """True for ``x / sqrt(a)`` written as a product: ``x * (1 / a).sqrt()``."""
    return any(n.op == "rsqrt" or (n.op == "div" and number_of(n.inputs[0]) == 1.0) for n in near(node, 10))


__all__ = ["NOISE", "Place", "denoisers", "kinds", "other_noise", "signal_of", "times"]
