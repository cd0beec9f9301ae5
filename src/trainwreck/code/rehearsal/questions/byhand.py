"""Rates that the program works out itself and writes into the optimizer: how do they run over the training?

The expression is worked out for the first, the last and steps between, with numbers in the place of what counts."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Frame, Node, Obj, Place, Turn, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.clocks import called_in, clocks, numbers_at, worked_out, zero_written
from trainwreck.code.rehearsal.questions.counts import number, times, trips
from trainwreck.code.rehearsal.questions.curves import asked
from trainwreck.code.rehearsal.questions.gradients import going_on, in_legs
from trainwreck.code.rehearsal.questions.places import once
from trainwreck.code.rehearsal.questions.run_length import formula_of, length_given
from trainwreck.code.rehearsal.questions.schedules import granularity, moves, returned, schedules
from trainwreck.code.rehearsal.questions.spans import assumed, over_groups, supposing
from trainwreck.code.rehearsal.state import Spent

POINTS = 160
FEW = 8
"""Updates below which no schedule is judged."""
DEAD = 1e-3
SHORT = 0.6
"""A schedule that ends before this share of the run trains with the rate of its end for the rest of it."""
SLOW = 0.8
"""Share of the highest rate that is left at the end of a run in which it hardly decays."""
FAR = (1.3, 1.6, 2.0, 2.5, 3.2, 4.0, 5.0, 6.4, 8.0, 10.0, 13.0, 16.0, 20.0, 25.0, 32.0, 40.0, 50.0, 64.0, 80.0, 100.0)
ABRUPT = 2.3
"""Half of the rate is left, then a twentieth: a line or a cosine comes from one to the other in this ratio of times or
less (1.9, 1.7); an exponential takes 4.3 and a square root 100."""
SAFE = 1e-2
"""A test of rates along a line begins no higher: where a network trains surely (Smith 2017: from a small rate up)."""
SWINGS = 4
"""So many times up and down, without a word of cycles, is no plan."""
BACK = 0.9
TURNS_ROUND = ("cycl", "restart", "period", "%", "fmod", "divmod", "sin(", "triang")
REMAINDER = re.compile(r"// (\w+)\)? \* \1\b|\b(\w+) \* \(\w+ // \2\b")
"""A remainder that is written out: ``k - k // n * n``."""
LOW = 0.1
"""A floor of a tenth of the highest rate or less: what is left of a cosine by custom (Hoffmann et al. 2022)."""
EARLY = 0.4
"""A decay that is over before this share of the run: the lengths of both should agree (same source: within 25%)."""
SMOOTH = 6
"""So many different rates on the way down are no steps."""
LONG_RISE = 1.5
BLOWN_UP = 5.0
"""A rate that grows to so many times the one that the optimizer was given."""


@dataclass
class Course:
    """The rates over a run: at which updates, of how many, and how to ask for more."""

    at: list[int]
    rates: list[float]
    total: int
    place: Place
    texts: str
    start: float | None
    asked: Place | None
    """The call that gives it a length that is worked out right there."""
    later: list[float | None]
    """At multiples (``FAR``) of the length of the run."""
    ask: Callable[[int], float | None]

    @property
    def top(self) -> float:
        return max(self.rates)


def zero_for_long(run: Rehearsing) -> Iterator[Answer]:
    """A rate of zero through the whole warm-up."""
    for course in courses(run):
        zero = next((k for k, r in zip(course.at, course.rates, strict=True) if r != 0), course.total)
        if zero_written(course.place[0]):
            continue
        if zero >= max(FEW / 2, min(16, course.total / 4)) and course.top > 0:
            yield Answer(_first_way(course), f"the rate is exactly zero for the first {zero} updates")


def out_of_step(run: Rehearsing) -> Iterator[Answer]:
    """A rate that is over long before the run is, falls below zero, swings, or hardly decays in it."""
    for course in courses(run):
        told = _told(course)
        if told:
            formula = formula_of(course.place)
            yield Answer(_end_written(run, course) or course.asked or length_given(formula) or formula, told)
        elif (reached := _floor(course)) is not None:
            place = next((p for k in range(reached[0] + 1, reached[1] + 1) if (p := once(run, k)) is not None), None)
            text = f"the rate is at its floor after {reached[1]} of {course.total} updates: the decay is too short"
            yield Answer(
                place or course.asked or length_given(formula_of(course.place)) or formula_of(course.place),
                text,
                () if place is None else (formula_of(course.place),),
            )


def _end_written(run: Rehearsing, course: Course) -> Place | None:
    """Where the length of a schedule that ends after the run is written, if only one place has this number."""
    last, far = course.later[-1], int(course.total * FAR[-1])
    if last is None or last >= course.rates[-1] or last > LOW * course.top:
        return None
    low, high = course.total - 1, far
    while high - low > 1:
        middle = (low + high) // 2
        rate = course.ask(middle)
        if rate is None:
            return None
        low, high = (low, middle) if rate <= last else (middle, high)
    return once(run, high)


def _floor(course: Course) -> tuple[int, int] | None:
    """Between which updates a smooth decay ends that leaves most of the run with the lowest rate.

    Not meant: a decay in a few steps, which are placed on purpose, and a floor that still learns (``LOW``)."""
    last, top = course.rates[-1], course.top
    if top <= 0 or last > LOW * top or any(w in course.texts.lower() for w in TURNS_ROUND):
        return None
    first = max((n for n, r in enumerate(course.rates) if not math.isclose(r, last, rel_tol=1e-6)), default=-1) + 1
    peak = course.rates.index(top)
    values = {round(r / top, 6) for r in course.rates[peak:first]}
    if first < 1 or first <= peak or len(values) < SMOOTH or course.at[first] > EARLY * course.total:
        return None
    return course.at[first - 1], course.at[first]


def _straight(course: Course, rates: list[float]) -> bool:
    """True for a rate (or its logarithm) that grows by the same amount all along: a test of rates."""
    first, last = rates[0], rates[-1]
    if len(course.at) < 3 or last <= first:
        return False
    slope = (last - first) / (course.at[-1] - course.at[0])
    line = [first + slope * (k - course.at[0]) for k in course.at]
    return all(abs(a - b) <= 1e-6 * (last - first) for a, b in zip(line, rates, strict=True))


def blown_up(run: Rehearsing) -> Iterator[Answer]:
    """A rate that only grows, to a multiple of the one that the optimizer was made with."""
    for course in courses(run):
        grows = all(b >= a for a, b in zip(course.rates, course.rates[1:], strict=False))
        last = course.rates[-1]
        # a test of rates goes through them on purpose, from the optimizer's own on; a warm-up comes from below it
        tested = min(course.rates) > 0 and _constant_ratio(course)
        tested = tested or (min(course.rates) > 0 and _straight(course, [math.log(r) for r in course.rates]))
        line = _straight(course, course.rates) and course.rates[0] <= SAFE
        tested = tested or (line and course.rates[0] >= 0.99 * (course.start or math.inf))
        if (
            grows
            and not tested
            and course.start
            and last > BLOWN_UP * course.start
            and last > course.rates[len(course.rates) // 2]
        ):
            yield Answer(_first_way(course), f"the rate grows to {last / course.start:.0f} times that of the optimizer")


def _told(course: Course) -> str:
    top, rates, total = course.top, course.rates, course.total
    if top <= 0:
        return ""
    below = next((k for k, r in zip(course.at, rates, strict=True) if r < -1e-3 * top), None)
    if below is not None:
        return f"the rate is negative from update {below} of {total} on"
    late = [r for k, r in zip(course.at, rates, strict=True) if k >= SHORT * total]
    if late and all(r <= DEAD * top for r in late):
        return "the rate is zero for the last part of the run"
    if any(word in course.texts.lower() for word in TURNS_ROUND) or REMAINDER.search(course.texts):
        return ""
    turns = _swings(rates, top)
    if turns >= SWINGS:
        return f"the rate goes up and down {turns} times and more: its curve is passed through again and again"
    end = rates[-1]
    if end >= BACK * top and _dips(rates, top):
        return "the rate comes down and is back at its highest when the run ends"
    after = [r for r in course.later if r is not None]
    peak = max(after, default=0.0)
    if end >= top and peak >= LONG_RISE * top and len(after) == len(course.later) and after[-1] <= peak / 2:
        return f"the rate is still warming up at the end of the run, at {top / peak:.0%} of its highest or less"
    falls = all(
        b <= a + 1e-9 * top for a, b in zip(rates[len(rates) // 2 :], rates[len(rates) // 2 + 1 :], strict=False)
    )
    if falls and SLOW * top <= end < top * (1 - 1e-9):
        floor = max(0.0, min(after, default=0.0))  # a cosine that ends at a tenth of the rate is over there
        half, over = (
            next((f for f, r in zip(FAR, course.later, strict=True)
                  if r is not None and r - floor <= share * (top - floor)), None)
            for share in (0.5, 0.05)
        )  # fmt: skip
        if half is not None and over is not None and over <= ABRUPT * half:
            return f"the schedule is over after {over:g} times the length of the run: the rate hardly decays in it"
    return ""


def _dips(rates: Sequence[float], top: float) -> bool:
    """True where a rate that was high comes down to less than a third."""
    high = next((n for n, r in enumerate(rates) if r >= BACK * top), len(rates))
    return any(r < top / 3 for r in rates[high:])


def _swings(rates: Sequence[float], top: float) -> int:
    """How often a curve goes from low to high."""
    count, low = 0, False
    for rate in rates:
        if rate < 0.1 * top:
            low = True
        elif low and rate > 0.5 * top:
            count, low = count + 1, False
    return count


def _constant_ratio(course: Course) -> bool:
    """True for a decay by the same factor in the same time: it has no end."""
    third = len(course.rates) // 3
    one, two, three = course.rates[third], course.rates[2 * third], course.rates[-1]
    return one > 0 and two > 0 and math.isclose(two / one, three / two, rel_tol=1e-2) and course.later[0] != 0


# ---------------------------------------------------------------------- the course of a rate
def courses(run: Rehearsing) -> list[Course]:
    """The rates of all schedules of the program's own, over the run."""
    if "rates by hand" not in run.memo:
        run.memo["rates by hand"] = [*_written(run), *_of_functions(run)]
    found: list[Course] = run.memo["rates by hand"]
    return found


def _of_functions(run: Rehearsing) -> Iterator[Course]:
    """Factors that a function of the program gives to ``LambdaLR``, where it is asked in the unit that it counts in."""
    other = list(granularity(run))
    for scheduler in schedules(run):
        moved = [e for e in moves(run, scheduler) if e.turns]
        place = returned(run, scheduler)
        supposed = assumed(run, moved)
        with supposing(run, supposed):
            total = times(run, moved)
        if scheduler.name != "LambdaLR" or place is None or total is None or total < FEW:
            continue
        loads = (e for e in run.tape if e.name == "load_state_dict" and e.subject is scheduler)
        if in_legs(run) or any(e.serial not in going_on(run) for e in loads):
            continue
        if any(e.place in (a.place, *a.proof) for a in other for e in moved):
            continue

        def ask(k: int, scheduler: Obj = scheduler, supposed: Mapping[int, float] = supposed) -> float | None:
            with supposing(run, supposed):
                return asked(run, scheduler, k)

        course = _course(ask, int(total), place, 1.0)
        if course is not None:
            yield course


def _written(run: Rehearsing) -> Iterator[Course]:
    events: dict[int, list[Event]] = {}
    for event in run.tape:
        if event.name == "set_rate" and event.turns and event.place is not None:
            events.setdefault(id(event.place[0]), []).append(event)
    for same in events.values():
        event = same[-1]
        assert event.place is not None
        statement = run.project.statement(*event.place)
        if (
            not isinstance(statement, ast.Assign)
            or event.maybe > len(event.tests)
            or _share_of_turns(run, event) is None
        ):
            continue
        course = _of_statement(run, statement, event, same)
        if course is not None:
            yield course


def _of_statement(run: Rehearsing, statement: ast.Assign, event: Event, same: list[Event]) -> Course | None:
    frame: Frame = event.state["in"]
    names: dict[str, Value] = event.state["names"]
    written = worked_out(run, statement.value, frame, names)
    counting = clocks(run, written, frame, names)
    turns = [t for t in event.turns if not over_groups(t)]
    if len(counting) != 1 or not turns or event.place is None:
        return None
    clock = counting[0]
    counted = next((t for t in turns if _counts(t, clock)), None)
    if counted is not None and counted is not turns[0]:
        return None  # the number of a batch within its epoch
    total = trips(run, counted) if counted is not None else _updates(run, same, turns)
    if total is None or total < FEW:
        return None

    def ask(k: int) -> float | None:
        inner = Frame(
            frame.scope, {**names, **{clock: k}} if "." not in clock else dict(names), frame.parent, frame.kind
        )
        inner.receiver, inner.function = frame.receiver, frame.function
        before = len(run.tape), len(run.nodes), run.steps
        try:
            with numbers_at(run, (inner, frame), clock, k):
                return number(run, run.value(written, inner))
        except Spent:
            return None
        finally:
            del run.tape[before[0] :], run.nodes[before[1] :]
            run.steps = before[2]

    called = called_in(written, frame, names)
    course = _course(ask, int(total), called or (written, event.place[1]), _own_rate(run, event))
    if course is not None and isinstance(written, ast.Call) and any(_product(a, clock) for a in written.args):
        course.asked = (statement, event.place[1])
    return course


def _product(node: ast.expr, clock: str) -> bool:
    """True for a product or quotient that the clock has no part in, or that is the clock in another unit."""
    scaled = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div | ast.FloorDiv)
    mine = any(isinstance(n, ast.Name) and n.id == clock for n in ast.walk(node))
    return scaled and (not mine or (isinstance(node, ast.BinOp) and not isinstance(node.right, ast.Constant)))


def _course(ask: Callable[[int], float | None], total: int, place: Place, start: float | None) -> Course | None:
    stride = max(1, total // POINTS)
    at = sorted({*range(0, min(total, 40)), *range(0, total, stride), total - 1})
    if ask(at[0]) is None or ask(at[-1]) is None:
        return None
    rates = [ask(k) for k in at]
    known = [r for r in rates if r is not None]
    if len(known) != len(rates):
        return None
    later = [ask(int(total * f)) for f in FAR]
    return Course(at, known, total, place, ast.unparse(place[0]), start, None, later, ask)


def _updates(run: Rehearsing, same: list[Event], turns: list[Turn]) -> float | None:
    """How often the rate is written, each group once."""
    first = {(tuple(id(t) for t in e.turns if not over_groups(t))): e for e in same}
    total = 0.0
    for event in first.values():
        weight = _share_of_turns(run, event) or 0.0
        for turn in event.turns:
            if turn.generic and not over_groups(turn):
                known = trips(run, turn)
                if known is None:
                    return None
                weight *= max(0.0, known - 1)
        total += weight
    return total


def _share_of_turns(run: Rehearsing, event: Event) -> float | None:
    """In which share of the turns the rate is written, where each test asks for every so many (gradient accumulation);
    None where a test can't be told."""
    share = 1.0
    for test in event.tests:
        every = next((n.inputs[1] for n in ancestors(test) if n.op == "mod" and len(n.inputs) > 1), None)
        if every is None and isinstance(test, Node) and test.op == "eq" and any(n.op == "len" for n in ancestors(test)):
            return 0.0  # the last turn of an epoch
        known = number(run, every)
        if not known:
            return None
        share /= known
    return share


def _counts(turn: Turn, clock: str) -> bool:
    """True if the loop itself gives the number this name."""
    target = turn.node.target if isinstance(turn.node, ast.For) else None
    return target is not None and any(isinstance(n, ast.Name) and n.id == clock for n in ast.walk(target))


def _own_rate(run: Rehearsing, event: Event) -> float | None:
    """The rate that the optimizer was made with."""
    for optimizer in run.objects:
        if optimizer.groups is not None and any(g is event.subject for g in optimizer.groups.items):
            return number(run, optimizer.get("lr", 1))
    return None


# ---------------------------------------------------------------------- places
def _first_way(course: Course) -> Place:
    """The first ``return`` of the function that works the rate out, or the statement itself."""
    node, scope = course.place
    found = [n for n in ast.walk(node) if isinstance(n, ast.Return)]
    return (min(found, key=lambda n: n.lineno), scope) if found else course.place
