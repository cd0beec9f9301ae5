"""Do schedules move in the unit that they count in, with the optimizer that is in use, and from a rate above zero?"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from trainwreck.code.calls import last_name
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Frame, Function, Items, Node, Obj, Place, Turn, Value, candidates
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.holding import is_optimizer, is_scheduler
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.clocks import zero_written
from trainwreck.code.rehearsal.questions.counts import counts_batches, number, times, trips
from trainwreck.code.rehearsal.questions.curves import APART, FUNCTIONS, NEVER_SEEN, factor, faded, idle_for
from trainwreck.code.rehearsal.questions.gradients import steps
from trainwreck.code.rehearsal.questions.places import apart

HORIZONS = {
    "CosineAnnealingLR": ("T_max", 1), "CosineAnnealingWarmRestarts": ("T_0", 1),
    "OneCycleLR": ("total_steps", 2), "LinearLR": ("total_iters", 3),
    "PolynomialLR": ("total_iters", 1), "StepLR": ("step_size", 1), "MultiStepLR": ("milestones", 1),
    "get_linear_schedule_with_warmup": ("num_training_steps", 2),
    "get_cosine_schedule_with_warmup": ("num_training_steps", 2),
    "get_polynomial_decay_schedule_with_warmup": ("num_training_steps", 2), "get_scheduler": ("num_training_steps", 3),
}  # fmt: skip
"""The argument that says how long a schedule is, with its place."""


def schedules(run: Rehearsing) -> list[Obj]:
    return [o for o in run.objects if is_scheduler(o)]


def driven(scheduler: Obj) -> list[Obj]:
    """The optimizers that it moves."""
    given = scheduler.attributes.get("optimizer", scheduler.get("optimizer", 0))
    return [c for c in candidates(given) if isinstance(c, Obj)]


def moves(run: Rehearsing, scheduler: Obj) -> list[Event]:
    return [_since(scheduler, e) for e in run.tape if e.name == "step" and e.subject is scheduler]


def _since(scheduler: Obj, event: Event) -> Event:
    """The event without the loops in which the schedule itself was made anew (folds, trials)."""
    shared = 0
    while (
        not scheduler.maybe
        and shared < len(scheduler.turns)
        and event.turns[shared : shared + 1] == scheduler.turns[shared : shared + 1]
    ):
        shared += 1
    return replace(event, turns=event.turns[shared:]) if shared else event


def granularity(run: Rehearsing) -> Iterator[Answer]:
    """A schedule that counts epochs and moves with every batch, or the reverse."""
    for scheduler in schedules(run):
        moved = [e for e in moves(run, scheduler) if e.turns]
        users = [_since(scheduler, s) for s in steps(run) if s.subject in driven(scheduler)]
        users = [u for u in users if u.turns]
        if any(e.args and isinstance(e.args[0], Node) for e in moved) and scheduler.name != "ReduceLROnPlateau":
            continue  # it is told where it stands
        if not moved or not users or moved[-1].place is None:
            continue
        move, user = moved[-1], users[-1]
        done, updates = times(run, moved), times(run, [u for u in users if u.subject is user.subject])
        rarer = done is not None and updates is not None and done * 2 < updates
        micro = done is not None and updates is not None and len(_rounds(move)) == len(_rounds(user))
        if micro and move.place and done and updates and done >= 2 * updates and user.tests and not move.tests:
            known = [n for n in (number(run, v) for v in horizon(run, scheduler)) if n]
            if any(updates / 1.5 <= n <= updates * 1.5 for n in known):
                text = f"{scheduler.name} counts {updates:g} updates, and moves with every micro-batch: {done:g} times"
                yield Answer(move.place, text, tuple(p for p in (user.place, scheduler.place) if p is not None))
                continue
        each_update = len(_rounds(move)) >= len(_rounds(user)) and not rarer
        if each_update:
            wrong = _too_often(run, scheduler, move, done)
        else:
            wrong = _too_rare(run, scheduler, move, user, done, updates)
        if wrong:
            alias = named_length(run, scheduler, move.turns[0]) if each_update else None
            places = [p for p in (alias, moved[-1].place, scheduler.place) if p is not None]
            yield Answer(places[0], f"{scheduler.name} {wrong}", tuple(places[1:]))


def named_length(run: Rehearsing, scheduler: Obj, epochs: Turn) -> Place | None:
    """Where a length of the schedule's own is set to the number of epochs as it is: ``total = epochs``."""
    import ast

    if scheduler.place is None or not isinstance(scheduler.place[0], ast.Call) or not isinstance(epochs.node, ast.For):
        return None
    counted = {last_name(n) for n in ast.walk(epochs.node.iter) if isinstance(n, ast.Name | ast.Attribute)}
    function = scheduler.get("lr_lambda", 1) if scheduler.name == "LambdaLR" else None
    roots: list[Place] = [(a, scheduler.place[1]) for a in scheduler.place[0].args[1:]]
    roots += [(k.value, scheduler.place[1]) for k in scheduler.place[0].keywords]
    if isinstance(function, Function):
        roots.append((function.node, function.scope))
    for root, scope in roots:
        for node in ast.walk(root):
            if not isinstance(node, ast.Name) or node.id in counted:
                continue
            for binding in run.project.lookup(node.id, scope):
                value = binding.value if binding.kind == "assign" and not binding.path else None
                if isinstance(value, ast.Name | ast.Attribute) and last_name(value) in counted:
                    return binding.node, binding.scope
    return None


def _rounds(event: Event) -> list[Turn]:
    """The loops around a step, without one over the schedules or the optimizers themselves."""
    found = []
    for turn in event.turns:
        items = turn.over.items if isinstance(turn.over, Items) else turn.over if isinstance(turn.over, tuple) else ()
        inner = [i for item in items for i in _held_in(item)]
        if not any(i is event.subject for i in inner):
            found.append(turn)
    return found


def _too_rare(
    run: Rehearsing, scheduler: Obj, move: Event, user: Event, done: float | None, updates: float | None
) -> str:
    if move.turns[0].node is not user.turns[0].node:
        return ""
    if scheduler.name == "LambdaLR" and done and updates and updates >= 2 * APART * done:
        last, before, whole = (factor(run, scheduler, int(k)) for k in (done, done - 1, updates))
        if last is not None and before is not None and whole is not None and before < last < whole / 1.5:
            return f"is still warming up at the end: it moves only {done:g} times in {updates:g} updates"
    if scheduler.name in FUNCTIONS and len(move.turns) < len(user.turns) and done and updates:
        idle = idle_for(run, scheduler, done, updates)
        if idle:
            return idle
    lengths = horizon(run, scheduler)
    each = scheduler.get("steps_per_epoch", 4) if scheduler.name == "OneCycleLR" else None
    if each not in (None, 1) and len(move.turns) < len(user.turns):
        return "is told how many batches an epoch has, and moves once an epoch here"
    for value in lengths:
        if counts_batches(value) and not _per_epoch(value) and len(move.turns) < len(user.turns):
            return "counts batches and moves once an epoch here"
        known = number(run, value)
        if done and updates and known and known >= APART * done and updates / 1.5 <= known <= updates * 1.5:
            return f"is {known:g} steps long, as many as there are updates, and moves only {done:g} times"
    return ""


def _per_epoch(value: Value) -> bool:
    """True if a length is divided by the number of batches again."""
    return any(
        n.op in ("div", "floor_divide") and any(counts_batches(i) for i in n.inputs[1:2]) for n in ancestors(value)
    )


def _too_often(run: Rehearsing, scheduler: Obj, move: Event, done: float | None) -> str:
    if len(_rounds(move)) < 2:
        return ""
    epochs = trips(run, move.turns[0])
    gamma = number(run, scheduler.get("gamma", 2 if scheduler.name in ("StepLR", "MultiStepLR") else 1))
    if scheduler.name == "ExponentialLR":
        if (
            gamma is not None
            and done
            and 0 < gamma < 1
            and gamma**done < NEVER_SEEN
            and (not epochs or gamma**epochs > 1e-4)
        ):
            return f"shrinks the rate by {gamma:g} with every batch: {gamma**done:.0e} of it is left at the end"
        return ""
    if scheduler.name in FUNCTIONS:
        gone = faded(run, scheduler, epochs, done)
        if gone:
            return gone
    lengths = horizon(run, scheduler)
    if scheduler.name in ("OneCycleLR",) and scheduler.get("steps_per_epoch", 4) is not None:
        return ""
    for value in lengths:
        if counts_batches(value):
            return ""
    for value in lengths:
        known = number(run, value)
        same = _turned_by(move.turns[0], value)
        if scheduler.name == "LambdaLR" and not (same or (epochs and known == epochs)):
            continue
        if known is not None and done is not None and epochs is not None:
            if known <= epochs and done >= APART * known and epochs >= 2:
                return f"is {known:g} long, which counts epochs, and moves with every batch: {done:g} times"
        elif (same or (known is not None and known == epochs and known > 1)) and done is None:
            return "is as long as there are epochs, and moves with every batch"
    return ""


def _turned_by(turn: Turn, value: Value) -> bool:
    """True if the loop goes up to this very value."""
    over = turn.over
    counted = over.items if isinstance(over, Items) and over.kind == "range" else []
    return isinstance(value, Node) and any(isinstance(n, Node) and any(i is value for i in n.inputs) for n in counted)


def horizon(run: Rehearsing, scheduler: Obj) -> list[Value]:
    """The lengths that a schedule is given; of a function, the numbers that it uses."""
    if scheduler.name in HORIZONS:
        name, place = HORIZONS[scheduler.name]
        value = scheduler.get(name, place)
        if scheduler.name == "OneCycleLR" and value is None:
            epochs, each = scheduler.get("epochs", 3), scheduler.get("steps_per_epoch", 4)
            known = number(run, epochs), number(run, each)
            return [known[0] * known[1]] if known[0] and known[1] else [each] if isinstance(each, Node) else []
        if isinstance(value, Items | tuple):
            listed = value.items if isinstance(value, Items) else list(value)
            return [max(listed)] if listed and all(isinstance(v, int) for v in listed) else []
        return [value] if value is not None else []
    if scheduler.name == "SequentialLR":
        inner = scheduler.get("schedulers", 1)
        parts = inner.items if isinstance(inner, Items) else []
        return [v for p in parts if isinstance(p, Obj) for v in horizon(run, p)]
    if scheduler.name == "LambdaLR":
        return used_numbers(scheduler.get("lr_lambda", 1))
    return []


def used_numbers(function: Value) -> list[Value]:
    """The values that a function of the program uses from outside: its closure, its defaults, what ``partial`` gave."""
    import ast

    if isinstance(function, Obj) and function.kind == "functools.partial":
        given = [v for v in function.options.values() if isinstance(v, int | float | Node)]
        return [*given, *used_numbers(function.args[0] if function.args else None)]
    if isinstance(function, Items) and function.items:
        return used_numbers(function.items[0])
    if not isinstance(function, Function):
        return []
    found: list[Value] = []
    own = {a.arg for a in (*function.node.args.args, *function.node.args.kwonlyargs)}
    body = function.node.body if isinstance(function.node.body, list) else [function.node.body]
    for statement in body:
        products = [n for n in ast.walk(statement) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mult)]
        parts = {id(side) for n in products for side in (n.left, n.right)}  # epochs * len(loader): neither is a length
        for node in ast.walk(statement):
            value: Value = None
            if id(node) in parts:
                continue
            if isinstance(node, ast.Name) and node.id not in own:
                value = _looked_up(node.id, function.frame)
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id not in own:
                base = _looked_up(node.value.id, function.frame)
                value = base.attributes.get(node.attr) if isinstance(base, Obj) else None
            if isinstance(value, int | float | Node) and not isinstance(value, bool):
                found.append(value)
    return [*found, *(v for v in function.defaults.values() if isinstance(v, int | float | Node))]


def _looked_up(name: str, frame: Frame | None) -> Value:
    while frame is not None:
        if name in frame.names:
            return frame.names[name]
        frame = frame.parent
    return None


def never_moved(run: Rehearsing) -> Iterator[Answer]:
    """A schedule of an optimizer that steps, and that nothing moves or keeps."""
    inside = [i for o in run.objects for v in (*o.args, *o.options.values()) for i in _held_in(v)]
    moving = {id(s.place[0]) for s in schedules(run) if moves(run, s) and s.place is not None}
    for scheduler in schedules(run):
        if scheduler.place is not None and id(scheduler.place[0]) in moving:
            continue  # another run of the same line moves
        users = [s for s in steps(run) if s.subject in driven(scheduler) and s.turns and s.serial > scheduler.serial]
        asked = [
            e
            for e in run.tape
            if e.subject is scheduler and e.name not in ("state_dict", "load_state_dict", "get_last_lr")
        ]
        handed = any(i is scheduler for i in inside) or any(
            i is scheduler
            for n in run.nodes
            if n.op not in ("state_dict", "get_last_lr", "text", "load_state_dict")
            for i in n.inputs
        )
        if users and not asked and not handed and scheduler.place is not None:
            yield Answer(
                scheduler.place, f"{scheduler.name} is built here, and nothing ever moves it", _proof(users[-1])
            )


def _held_in(value: Value) -> list[Value]:
    return (
        [value, *value.items] if isinstance(value, Items) else [value, *value] if isinstance(value, tuple) else [value]
    )


def stale(run: Rehearsing) -> Iterator[Answer]:
    """A schedule that moves an optimizer which no longer steps, while another one steps the same weights."""
    for scheduler in schedules(run):
        moved = [e for e in moves(run, scheduler) if e.turns]
        mine = driven(scheduler)
        if not moved or not mine or any(not is_optimizer(o) for o in mine):
            continue
        last = moved[-1]
        later = _later(run, scheduler, mine, last)
        if later is not None and later.place is not None:
            text = f"this takes the place of the optimizer that {scheduler.name} moves: its own rate stays as it is"
            places = tuple(p for p in (scheduler.place, last.place) if p is not None)
            yield Answer(apart(later, mine) or later.place, text, places)
            continue
        after = [
            s for s in steps(run) if (s.turns and s.turns[-1].node is last.turns[-1].node) or s.serial > moved[0].serial
        ]
        now = [s for s in after if s.turns[:1] and s.turns[0] is last.turns[0]]
        if not now or any(s.subject in mine for s in now):
            continue
        held = {id(p) for o in mine for p in run.optimized(o)[0]}
        new = [
            s.subject
            for s in now
            if (held & {id(p) for p in s.state.get("held", ())} or _in_place_of(run, s.subject, mine))
            and s.subject.serial > mine[0].serial
        ]
        if new and new[-1].place is not None and not last.maybe:
            text = f"this takes the place of the optimizer that {scheduler.name} moves: its own rate stays as it is"
            places = tuple(p for p in (scheduler.place, last.place) if p is not None)
            first = new[-1] if new[-1].serial > scheduler.serial else scheduler
            yield Answer(apart(first, mine) or new[-1].place, text, places)


def _in_place_of(run: Rehearsing, optimizer: Obj, mine: list[Obj]) -> bool:
    """True where an attribute that held one of these optimizers got this one (the network may be a new one too)."""
    changes = (e for e in run.tape if e.name == "set" and len(e.args) > 1 and e.args[1] is optimizer)
    return any(any(e.options.get("old") is o for o in mine) for e in changes)


def _later(run: Rehearsing, scheduler: Obj, mine: list[Obj], last: Event) -> Obj | None:
    """An optimizer of the same weights, built in the loop in which the schedule goes on moving, with no schedule."""
    held = {id(p) for o in mine for p in run.optimized(o)[0]}
    for made in run.objects:
        if not is_optimizer(made) or made in mine or made.serial < scheduler.serial or not made.turns:
            continue
        used = [s for s in steps(run) if s.subject is made and s.turns and s.turns[0] is last.turns[0]]
        own = [s for s in schedules(run) if made in driven(s)]
        same = held & {id(p) for p in run.optimized(made)[0]}
        if used and not own and made.serial < last.serial and same and made.turns[0].node is last.turns[0].node:
            return made
    return None


def before_optimizer(run: Rehearsing) -> Iterator[Answer]:
    """A schedule that moves before the first step of its optimizer, in the loop in which both stand."""
    for scheduler in schedules(run):
        moved = [e for e in moves(run, scheduler) if e.turns]
        mine = [s for s in steps(run) if s.subject in driven(scheduler) and s.turns and s.serial > scheduler.serial]
        if not moved or not mine or moved[0].serial > mine[0].serial or moved[0].place is None:
            continue
        beside = any(t in mine[0].turns for t in moved[0].turns)
        if beside and not moved[0].tests and scheduler.name != "ReduceLROnPlateau":
            yield Answer(
                moved[0].place, "the schedule moves here before the optimizer has made its first step", _proof(mine[0])
            )


def _proof(event: Event) -> tuple[Place, ...]:
    return (event.place,) if event.place is not None else ()


def starts_at_zero(run: Rehearsing) -> Iterator[Answer]:
    """A warm-up whose factor stays at zero: of a function of the program, as far as the run goes."""
    for scheduler in schedules(run):
        moved = [e for e in moves(run, scheduler) if e.turns]
        if scheduler.name != "LambdaLR" or not moved:
            continue
        total = times(run, moved) or 1000.0
        some = [factor(run, scheduler, k) for k in range(4)]
        if None in some or any(some) or total < 4:
            continue
        # how long it stays there: a factor that is zero for a good part of the run trains nothing meanwhile
        zero = 4
        while zero < min(total, 400) and factor(run, scheduler, zero) == 0:
            zero = zero * 2
        if zero >= min(16, total / 4):
            place = returned(run, scheduler) or scheduler.place
            if place is not None and not zero_written(place[0]):
                yield Answer(place, f"the factor on the rate is zero for the first {zero} moves and more", ())


def returned(run: Rehearsing, scheduler: Obj) -> Place | None:
    """The first ``return`` of a schedule's function, or the lambda."""
    function = scheduler.get("lr_lambda", 1)
    while isinstance(function, Obj) and function.kind == "functools.partial":
        function = function.args[0] if function.args else None
    if isinstance(function, Items) and function.items:
        function = function.items[0]
    function = getattr(function, "function", function)  # of a method
    if not isinstance(function, Function):
        return None
    if isinstance(function.node, ast.Lambda):
        return (function.node, function.scope)
    for node in ast.walk(function.node):
        if isinstance(node, ast.Return):
            return (node, function.scope)
    return None
