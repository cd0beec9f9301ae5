"""Is a schedule as long as the run in which it moves?"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from trainwreck.code.bounds import origin
from trainwreck.code.calls import Call, last_name
from trainwreck.code.project import Project
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Frame, Function, Items, Node, Obj, Place, Turn, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.counts import ASSUMED, number, size_of, times, trips
from trainwreck.code.rehearsal.questions.gradients import going_on, in_legs
from trainwreck.code.rehearsal.questions.schedules import (
    HORIZONS,
    granularity,
    horizon,
    moves,
    schedules,
    used_numbers,
)

LONG = 1.5
"""A schedule so many times longer than the run ends it at a third of its rate or more."""
SHORT = 0.6
"""One that ends before this share of the run trains with the rate of its end for the rest of it."""
DEAD = 1e-3
"""Share of the highest rate below which next to nothing is learned."""
EARLY = 0.45
LOW = 0.15
"""A decay that is over before half of the run, at a seventh of the rate or less, was worked out for a shorter run."""
BATCHES = 9600.0
"""Stands for the length of data that isn't known: the same number wherever this length is used."""
ENDS_AT_ZERO = frozenset(
    """PolynomialLR get_linear_schedule_with_warmup get_cosine_schedule_with_warmup
    get_polynomial_decay_schedule_with_warmup""".split()
)
GONE = 1 / 3
"""A decay by the same factor each time that is down to ``DEAD`` in this share of the run leaves 1e-9 of the rate at its
end: recipes leave 1e-3 and more."""
BY_A_FACTOR = {"ExponentialLR": ("gamma", 1), "MultiplicativeLR": ("lr_lambda", 1), "StepLR": ("gamma", 2)}
"""The argument that says by which factor such a schedule shrinks the rate, with its place."""
SAMPLES = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
AHEAD = (0.02, 0.05, 0.1, 0.2, 0.5)
"""Shares of a schedule at which its highest rate is looked for."""
STILL_LOW = 2.0
"""How many times as high the rate would become, were the run as long as the schedule."""


def _set_back(run: Rehearsing, scheduler: Obj) -> bool:
    """True where the schedule is given another state: by more than a job that goes on where it was left."""
    loads = (e for e in run.tape if e.name == "load_state_dict" and e.subject is scheduler)
    return in_legs(run) or any(e.serial not in going_on(run) for e in loads)


def misfit(run: Rehearsing) -> Iterator[Answer]:
    """A schedule that ends long before the run, or far behind its end."""
    other = {id(a.place[0]) for a in granularity(run)}
    for scheduler in schedules(run):
        moved = [e for e in moves(run, scheduler) if e.turns]
        if not moved or moved[-1].place is None or scheduler.place is None or id(moved[-1].place[0]) in other:
            continue
        if _set_back(run, scheduler):
            continue
        with supposing(run, assumed(run, moved)):
            done = times(run, moved)
            text, value = _told(run, scheduler, done) if done is not None and done >= 4 else ("", None)
            every = _accumulated(run, scheduler) if text else 1.0
            if every != 1 and (not every or not done or not _told(run, scheduler, done / every)[0]):
                text = ""
            if any(_left(e) for e in moved) and not (number(run, value) or 0) > LONG * (done or math.inf):
                text = ""  # a run that is left early is no longer than this: it may be as short as the schedule
        if text:
            yield Answer(_place(run, scheduler, value), text, (moved[-1].place,))


def _accumulated(run: Rehearsing, scheduler: Obj) -> float | None:
    """How many calls of ``step`` an Accelerator that the schedule was given to makes one of: those without a step of
    the optimizer are left out (``accelerate/scheduler.py``)."""
    contexts = {o.kind.rpartition(".")[0] for o in run.objects if o.name == "accumulate"}
    for event in run.tape:
        made = event.subject
        if event.name != "prepare" or not isinstance(made, Obj) or made.kind not in contexts:
            continue
        if any(a is scheduler for a in event.args) and made.get("step_scheduler_with_optimizer") is not False:
            plugin = made.get("gradient_accumulation_plugin")
            return number(run, made.get("gradient_accumulation_steps", 3, 1)) if plugin is None else None
    return 1.0


def _told(run: Rehearsing, scheduler: Obj, done: float) -> tuple[str, Value]:
    name = scheduler.name
    kept = any(e.name == "state_dict" and e.subject is scheduler for e in run.tape)  # goes on in another run
    if name == "LambdaLR":
        return _function(run, scheduler, done, kept)
    gone = _gone(run, scheduler, done)
    if gone:
        return gone, None
    if name not in HORIZONS or name == "get_scheduler":
        return "", None
    for value in horizon(run, scheduler):
        length = number(run, value)
        if not length or length < 1:
            continue
        unit = length / done
        if length > LONG * done and not kept and not _warms_up(scheduler) and not _begins(scheduler, done):
            many = f"{unit:.3g} times as long as the run in which it moves"
            return f"{name} is {many}: the rate hardly decays", value
        short = length < SHORT * done
        if short and (name in ENDS_AT_ZERO or (name == "LinearLR" and _to_nothing(scheduler))):
            return f"{name} is over after {unit:.1%} of the run: the rate is zero for the rest of it", value
        if short and name == "CosineAnnealingLR":
            return f"{name} is at its end after {unit:.1%} of the run, and the rate rises again", value
    return "", None


def _gone(run: Rehearsing, scheduler: Obj, done: float) -> str:
    """What is said of a decay by the same factor each time that is at its end when the run has hardly begun."""
    if scheduler.name not in BY_A_FACTOR:
        return ""
    by = scheduler.get(*BY_A_FACTOR[scheduler.name], 0.1)
    shrinks = [number(run, by)]
    if scheduler.name == "MultiplicativeLR":
        shrinks = [_factor(run, scheduler, int(done * share)) for share in SAMPLES]
    each = number(run, scheduler.get("step_size", 1)) if scheduler.name == "StepLR" else 1.0
    if each is None or each < 1 or any(s is None or not 0 < s < 1 for s in shrinks):
        return ""
    weakest = max(s for s in shrinks if s is not None)
    left = weakest ** (GONE * done / each)
    if left > DEAD or done < each * len(SAMPLES):
        return ""
    over = math.log(DEAD) / math.log(weakest) * each / done
    text = f"{scheduler.name} shrinks the rate by {weakest:.2g} each time: less than {DEAD:g} of it"
    return f"{text} is left after {over:.1%} of the run"


def _begins(scheduler: Obj, done: float) -> bool:
    """True where some of several milestones lie within the run."""
    given = scheduler.get("milestones", 1) if scheduler.name == "MultiStepLR" else None
    listed = given.items if isinstance(given, Items) else given if isinstance(given, tuple) else ()
    return any(isinstance(m, int) and m < done for m in listed)


def _warms_up(scheduler: Obj) -> bool:
    """True for a line that rises: how long a warm-up may be is another question."""
    if scheduler.name != "LinearLR":
        return False
    start, end = scheduler.get("start_factor", 1, 1 / 3), scheduler.get("end_factor", 2, 1.0)
    return not (isinstance(start, int | float) and isinstance(end, int | float) and end < start)


def _to_nothing(scheduler: Obj) -> bool:
    end = scheduler.get("end_factor", 2, 1.0)
    return isinstance(end, int | float) and end <= DEAD


def _function(run: Rehearsing, scheduler: Obj, done: float, kept: bool) -> tuple[str, Value]:
    """A function of the program: it is asked for a few steps of the run."""
    first = [_factor(run, scheduler, int(done * share)) for share in SAMPLES]
    late = [_factor(run, scheduler, int(done * share)) for share in (SHORT, 0.8, 0.97)]
    known = [f for f in first if f is not None]
    if len(known) != len(first) or None in late or max(known, default=0) <= 0:
        return "", None
    top = max(known)
    numbers = [(n, v) for v in used_numbers(scheduler.get("lr_lambda", 1)) if (n := number(run, v)) is not None]
    if all(f is not None and f <= DEAD * top for f in late):
        ended = [v for n, v in numbers if 1 < n < SHORT * done]
        return "the factor on the rate is zero for the last third of the run and more", ended[-1] if ended else None
    floor = [_factor(run, scheduler, int(done * share)) for share in (EARLY, *(EARLY + n / 20 for n in range(1, 11)))]
    ended = [v for n, v in numbers if 1 < n <= EARLY * done]
    if ended and top > 0 and floor[0] is not None and all(f == floor[0] <= LOW * top for f in floor):
        return f"the factor on the rate is at its floor of {floor[0]:g} after {EARLY:.0%} of the run", ended[-1]
    last = late[-1]
    for n, value in numbers:
        if n > LONG * done and not kept and last is not None and last >= top / 2:
            end = _factor(run, scheduler, int(n))
            if end is not None and end <= top / 10:
                return f"the schedule is {n / done:.3g} times as long as the run in which it moves", value
    longest = max(numbers, key=lambda pair: pair[0], default=None)
    course = [f for f in (*first, *late) if f is not None]
    rises = course == sorted(set(course)) and course[0] > 0
    if longest is None or kept or not rises or longest[0] <= LONG * done or last is None:
        return "", None
    peak = max((f for share in AHEAD if (f := _factor(run, scheduler, int(longest[0] * share))) is not None), default=0)
    if peak >= STILL_LOW * last:
        many = f"the schedule is {longest[0] / done:.3g} times as long as the run"
        return f"the rate is still in its warm-up when the run ends: {many}", longest[1]
    return "", None


def _factor(run: Rehearsing, scheduler: Obj, at: int) -> float | None:
    function = scheduler.get("lr_lambda", 1)
    function = function.items[0] if isinstance(function, Items) and function.items else function
    if scheduler.place is None or function is None:
        return None
    before = len(run.tape)
    with _numbers_for(run, function):
        found = run.call(function, [at], {}, scheduler.place, Frame(scheduler.place[1], {}))
    del run.tape[before:]
    return number(run, found)


@contextmanager
def _numbers_for(run: Rehearsing, function: Value) -> Iterator[None]:
    """The names around a function hold numbers where these are known or supposed, so that its tests are decided."""
    held: list[tuple[dict[str, Value], str, Value]] = []
    frame = function.frame if isinstance(function, Function) else None
    while frame is not None:
        for name, value in frame.names.items():
            known = number(run, value) if isinstance(value, Node) else None
            if known is not None:
                held.append((frame.names, name, value))
                frame.names[name] = int(known) if float(known).is_integer() else known
        frame = frame.parent
    try:
        yield
    finally:
        for names, name, value in held:
            names[name] = value


def _left(event: Event) -> bool:
    """True if a loop around it can be left early."""
    return any(isinstance(n, ast.Break) for t in event.turns for n in ast.walk(t.node))


@contextmanager
def supposing(run: Rehearsing, lengths: Mapping[int, float]) -> Iterator[None]:
    """Data of unknown length have these lengths."""
    run.memo[ASSUMED] = lengths
    try:
        yield
    finally:
        run.memo[ASSUMED] = {}


def over_groups(turn: Turn) -> bool:
    """True for a loop over the groups of an optimizer."""
    return isinstance(turn.node, ast.For) and "param_groups" in ast.unparse(turn.node.iter)


def assumed(run: Rehearsing, moved: list[Event]) -> Mapping[int, float]:
    """A length for each loader of the loop whose own isn't known, and for its data."""
    found: dict[int, float] = {}
    for event in moved:
        for turn in event.turns:
            over = turn.over
            while isinstance(over, Items) and over.source is not None:
                over = over.source
            if isinstance(over, Node) and trips(run, turn) is None:
                found |= _rows(run, over)
            if isinstance(over, Obj) and trips(run, turn) is None and id(over) not in found:
                found[id(over)] = BATCHES
                batch, data = number(run, over.get("batch_size", 1, 1)), over.get("dataset", 0)
                if batch and isinstance(data, Obj | Node):
                    found[id(data)] = BATCHES * batch
                    size = size_of(run, data) if isinstance(data, Obj) else None
                    if isinstance(size, Node) and size.op == "len" and size.inputs:
                        found[id(size.inputs[0])] = BATCHES * batch
    return found


def _rows(run: Rehearsing, over: Node) -> dict[int, float]:
    """Of an order that is split into batches: a length for the rows that are counted for it."""
    size = over.inputs[1] if over.op == "split" and len(over.inputs) > 1 else None
    rows = [n.inputs[0] for n in ancestors(over) if n.op == "len" and n.inputs and number(run, n) is None]
    return {id(r): BATCHES * size for r in rows} if isinstance(size, int) else {}


def _place(run: Rehearsing, scheduler: Obj, value: Value) -> Place:
    """Where the length is worked out."""
    assert scheduler.place is not None
    node, scope = scheduler.place
    said = BY_A_FACTOR if value is None and scheduler.name in BY_A_FACTOR else HORIZONS
    if scheduler.name in said and isinstance(node, ast.Call):
        given = Call(node, scope).argument(*said[scheduler.name])
        told = isinstance(given, ast.Name) and given.id in scope.params and bool(scheduler.stack)
        if told and scope.name != "__init__":
            return scheduler.stack[-1]
        if given is not None:
            return (given, scope) if for_other_things(run.project, given) else origin(run.project, given, scope)
    if isinstance(value, Node) and value.place is not None:
        return value.place
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    # a helper that is told the length: the call that tells it
    return (
        scheduler.stack[-1] if scheduler.stack and names & {*scope.params} - {"opt", "optimizer"} else scheduler.place
    )


def for_other_things(project: Project, given: ast.expr) -> bool:
    """True for a name that the program reads elsewhere too: what is wrong is that the schedule takes this one."""
    if not isinstance(given, ast.Name | ast.Attribute):
        return False
    name = last_name(given)
    read = [
        n
        for walked in project.walked.values()
        for scope in walked.scopes
        for n in scope.nodes
        if isinstance(n, ast.Name | ast.Attribute) and isinstance(n.ctx, ast.Load) and last_name(n) == name
    ]
    return len(read) > 1
