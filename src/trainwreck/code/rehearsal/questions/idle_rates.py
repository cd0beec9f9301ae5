"""Schedules that a program works out itself and that never move: nothing counts, or nothing calls them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Bound, Event, Frame, Obj, Place, Value
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.byhand import Course, courses
from trainwreck.code.rehearsal.questions.clocks import function_of, value_of
from trainwreck.code.rehearsal.questions.counts import number
from trainwreck.code.rehearsal.questions.gradients import steps
from trainwreck.code.rehearsal.questions.schedules import schedules
from trainwreck.code.rehearsal.state import Spent
from trainwreck.code.scopes import Scope

PROBES = (0, 1, 7, 60, 400)
"""Counts at which a function of the program is asked whether its rate hangs on them."""
STEEP = 5.0
"""A rate that begins at so many times that of the optimizer, and comes down to it, is a warm-up the wrong way round."""


def never_counts(run: Rehearsing) -> Iterator[Answer]:
    """``group["lr"] = rate(step)`` in each turn, with a ``step`` that is the same number in all of them."""
    written: dict[int, list[Event]] = {}
    for event in run.tape:
        if event.name == "set_rate" and event.turns and event.place is not None:
            written.setdefault(id(event.place[0]), []).append(event)
    for same in written.values():
        event = same[-1]
        assert event.place is not None
        statement = run.project.statement(*event.place)
        call = statement.value if isinstance(statement, ast.Assign) else None
        if len(same) < 2 or event.maybe or not isinstance(call, ast.Call) or len(call.args) != 1 or call.keywords:
            continue
        frame, names = event.state["in"], event.state["names"]
        function, given = function_of(call.func, frame, names), call.args[0]
        counted = value_of(given, frame, names) if isinstance(given, ast.Name | ast.Attribute) else None
        if function is None or type(counted) is not int or not any(t.generic for t in event.turns):
            continue
        owner = value_of(call.func.value, frame, names) if isinstance(call.func, ast.Attribute) else None
        asked: Value = Bound(function, owner) if isinstance(owner, Obj) else function
        if _changed(run, event, given) or not _hangs_on(run, asked, event.place, frame):
            continue
        text = f"{ast.unparse(given)} is {counted} in each turn: nothing counts it, and the rate stays what it is"
        yield Answer(event.place, text)
        return


def _changed(run: Rehearsing, event: Event, counted: ast.expr) -> bool:
    """True where a loop around it binds the name, or anything but ``__init__`` the attribute."""
    if isinstance(counted, ast.Attribute):
        scopes = [s for s in run.project.scopes if s.name != "__init__"]
        stored = [n for s in scopes for n in s.nodes if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)]
        return any(n.attr == counted.attr for n in stored)
    inside = (n for turn in event.turns for n in ast.walk(turn.node))
    names = (n for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    return any(isinstance(counted, ast.Name) and n.id == counted.id for n in names)


def _hangs_on(run: Rehearsing, function: Value, place: Place, frame: Frame) -> bool:
    """True where the function of the program gives other rates for other counts."""
    found: list[float] = []
    for count in PROBES:
        before = len(run.tape), len(run.nodes), run.steps
        try:
            rate = number(run, run.call(function, [count], {}, place, frame))
        except Spent:
            return False
        finally:
            del run.tape[before[0] :], run.nodes[before[1] :]
            run.steps = before[2]
        if rate is not None:
            found.append(rate)
    return len(set(found)) > 1


def never_asked(run: Rehearsing) -> Iterator[Answer]:
    """A function that gives a share of the optimizer's rate for a count, and that nothing in the program calls.

    Not asked where anything else sets a rate, or a schedule is built."""
    if any(e.name == "set_rate" for e in run.tape) or schedules(run) or not any(s.turns for s in steps(run)):
        return
    rates = _names_of_rates(run)
    for function in run.project.functions if rates else ():
        node = function.node
        if not isinstance(node, ast.FunctionDef) or len(node.args.args) != 1 or _mentioned(run, function):
            continue
        given = node.args.args[0].arg
        returned = [n.value for n in ast.walk(node) if isinstance(n, ast.Return) and n.value is not None]
        scaled = [r for r in returned if isinstance(r, ast.BinOp) and isinstance(r.op, ast.Mult | ast.Div)]
        names = [{n.id for n in ast.walk(r) if isinstance(n, ast.Name)} for r in scaled]
        if returned and len(scaled) == len(returned) and all(n & rates for n in names) and given in set().union(*names):
            text = f"{node.name} works out a rate for each update, and nothing calls it: the rate stays what it is"
            yield Answer((node, function), text)
            return


def _names_of_rates(run: Rehearsing) -> set[str]:
    """The constants of the module that the optimizers get as their rates."""
    found: set[str] = set()
    for step in steps(run):
        place = getattr(step.subject, "place", None)
        for keyword in place[0].keywords if place is not None and isinstance(place[0], ast.Call) else ():
            if keyword.arg == "lr" and isinstance(keyword.value, ast.Name):
                found.add(keyword.value.id)
    return found


def _mentioned(run: Rehearsing, function: Scope) -> bool:
    """True where the name of the function is read anywhere."""
    for walked in run.project.walked.values():
        for node in ast.walk(walked.top.module.tree):
            name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
            if name == function.name:
                return True
            if isinstance(node, ast.Constant) and node.value == function.name:
                return True
    return False


def turned_round(run: Rehearsing) -> Iterator[Answer]:
    """A rate that begins at a multiple of the optimizer's, and only comes down to it: ``rate * warm / (step + 1)``."""
    for course in courses(run):
        if not course.start or course.rates[0] < STEEP * course.start or course.rates[0] < course.top:
            continue
        reached = next((n for n, r in enumerate(course.rates) if _near(r, course.start)), None)
        if reached and all(b <= a for a, b in zip(course.rates[:reached], course.rates[1:reached], strict=False)):
            text = f"the first update has {course.rates[0] / course.start:.0f} times the rate that the warm-up leads to"
            yield Answer(_first_return(course), text)
            return


def _near(rate: float, other: float) -> bool:
    return abs(rate - other) <= 1e-6 * other


def _first_return(course: Course) -> Place:
    node, scope = course.place
    found = [n for n in ast.walk(node) if isinstance(n, ast.Return)]
    return (min(found, key=lambda n: n.lineno), scope) if found else course.place


__all__ = ["never_asked", "never_counts", "turned_round"]
