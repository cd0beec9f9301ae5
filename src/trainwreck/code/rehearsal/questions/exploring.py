"""How often an agent acts at random (epsilon): worked out for the first step and for late ones."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from trainwreck.code.bounds import origin
from trainwreck.code.pattern import pattern
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, core
from trainwreck.core.row import Row

BELOW = frozenset(["lt", "le"])
ABOVE = frozenset(["gt", "ge"])
DRAWS = frozenset(["random", "rand", "uniform", "random_sample"])
RANDOM = pattern(r"\b(randrange|randint|integers|choice|choices|action_space\.sample|sample_action)\b|random_action")
BEST = pattern(r"\bargmax\b|\bargmin\b|\bmax\(|\btopk\b", re.IGNORECASE)
FIRST = pattern(r"start|init|begin|first|high|max|hi\b", re.IGNORECASE)
LAST = pattern(r"end|final|stop|last|low|min|floor|lo\b", re.IGNORECASE)
TIMES = (0, 1, 3, 10, 1000, 10**7)
FEW = 3
"""Turns after which an agent that starts out at random still acts so now and then."""
OFTEN = 0.8
"""An agent that acts at random more often than this from beginning to end uses little of what it learns."""
SMALL = 0.02
LEAST = 0.1
"""Where schedules of random actions usually end (0.01 to 0.1)."""


class Choice(Row):
    """A draw that decides between a random action and the best one. ``less``: the random one below the threshold."""

    place: Place
    first: Value
    """The threshold when the first action is taken."""
    threshold: Value
    """The threshold in a later turn."""
    less: bool


def choices(run: Rehearsing) -> Iterator[Choice]:
    """The tests of random draws, the last that was made at each place (of a later turn)."""
    found: dict[tuple[int, ...], Choice] = {}
    for test, node in run.memo.get("tested", ()):
        if not isinstance(test, Node) or test.op not in BELOW | ABOVE or len(test.inputs) < 2 or test.place is None:
            continue
        for draw, threshold, below in (
            (test.inputs[0], test.inputs[1], test.op in BELOW),
            (test.inputs[1], test.inputs[0], test.op in ABOVE),
        ):
            first = _random_first(node, test.place) if _drawn(draw) and not _drawn(threshold) else None
            if first is not None:
                key = (id(node), *(id(call[0]) for call in test.stack))
                before = found[key].first if key in found else threshold
                found[key] = Choice(test.place, before, threshold, below == first)
    yield from found.values()


def _drawn(value: Value) -> bool:
    """True for one number between 0 and 1 that is drawn."""
    return isinstance(value, Node) and any(n.op in DRAWS for n in core(value)) and all(
        n.op in DRAWS | {"item"} or n.op in STRUCTURE for n in core(value)
    )  # fmt: skip


def _random_first(node: ast.AST, place: Place) -> bool | None:
    """True where the branch that is taken draws an action, and the other one looks for the best; False the other way
    round; None where it isn't so."""
    if isinstance(node, ast.IfExp):
        sides = [_told(node.body, place), _told(node.orelse, place)]
    elif isinstance(node, ast.If):
        after: list[ast.stmt] = node.orelse
        if not after:
            after = _following(node, place)
        sides = ["\n".join(map(ast.unparse, part)) for part in (node.body, after)]
    else:
        return None
    at_random = [bool(RANDOM.search(s)) and not BEST.search(s) for s in sides]
    best = [bool(BEST.search(s)) and not RANDOM.search(s) for s in sides]
    if at_random[0] and best[1]:
        return True
    return False if at_random[1] and best[0] else None


def _told(value: ast.expr, place: Place) -> str:
    """A value as it is written; of a name that is given one value in this function, that value."""
    if isinstance(value, ast.Name):
        given = [b.value for b in place[1].bindings.get(value.id, ()) if b.kind == "assign" and not b.path]
        if len(given) == 1 and given[0] is not None:
            return ast.unparse(given[0])
    return ast.unparse(value)


def _following(node: ast.If, place: Place) -> list[ast.stmt]:
    """What comes after an ``if`` that leaves the function."""
    if not node.body or not isinstance(node.body[-1], ast.Return | ast.Continue):
        return []
    for holder in ast.walk(place[1].node):
        for body in (getattr(holder, "body", None), getattr(holder, "orelse", None)):
            if isinstance(body, list) and node in body:
                return body[body.index(node) + 1 :][:3]
    return []


def shares(run: Rehearsing, choice: Choice) -> dict[int, float]:
    """How often it acts at random after so many turns, as far as that can be worked out (above 1 is always)."""
    from trainwreck.code.rehearsal.trial.bench import Bench, Unknown

    counters = [n for n in ancestors(choice.threshold) if n.op == "counter"]
    found: dict[int, float] = {}
    for time in (-1, *TIMES):
        bench = Bench()
        threshold = choice.first if time < 0 else choice.threshold
        known = [(c, _at(c, max(time, 0))) for c in counters]
        if any(value is None for _, value in known):
            continue
        for counter, value in known:
            bench.set(counter, value)
        try:
            share = float(bench.work(threshold))
        except (Unknown, TypeError, ValueError):
            continue
        if -1e6 < share < 1e6:
            found[time] = share if choice.less else 1 - share
    return found


def worked_out(value: Value, time: int) -> float | None:
    """A number that hangs on counters of turns alone, after so many of them (of a loop that is known to end: at most
    its last); None where that can't be told."""
    from trainwreck.code.rehearsal.trial.bench import Bench, Unknown

    bench = Bench()
    for counter in (n for n in ancestors(value) if n.op == "counter"):
        turns = [i for i in counter.inputs if isinstance(i, int)]
        known = counter.full == "builtins.range" and turns and len(turns) == len(counter.inputs)
        number = _at(counter, time) if known or time <= 1 else None
        if number is None:
            return None
        bench.set(counter, number)
    try:
        return float(bench.work(value))
    except (Unknown, TypeError, ValueError, OverflowError):
        return None


def _at(counter: Node, time: int) -> Any:
    """A number that changes from turn to turn after ``time`` of them; None where only its beginning is known."""
    inputs = counter.inputs
    if counter.full == "builtins.range":
        numbers = [i for i in inputs if isinstance(i, int)]
        if len(numbers) == len(inputs) and numbers:
            turns = range(*numbers)
            return turns[min(time, len(turns) - 1)] if turns else None
        return time
    if counter.full or len(inputs) != 2 or not all(isinstance(i, int | float) for i in inputs):
        return time if counter.full else None
    first, second = inputs
    change = counter.place[0] if counter.place is not None else None
    if isinstance(change, ast.AugAssign) and isinstance(change.op, ast.Mult):
        return first * second**time if time <= FEW or second <= 1 else None
    step = second if isinstance(change, ast.AugAssign) else second - first
    if isinstance(change, ast.AugAssign) and isinstance(change.op, ast.Sub):
        step = -step
    whole = isinstance(first, int) and isinstance(second, int)
    return first + step * time if whole or time <= 1 else None


def _judged(run: Rehearsing) -> Iterator[tuple[Choice, str, dict[int, float]]]:
    for choice in choices(run):
        found = shares(run, choice)
        known = sorted(found)
        if not known:
            continue
        start, end = found[known[0]], found[known[-1]]
        if known[-1] < 1 and isinstance(choice.threshold, Node):
            continue
        yield choice, _kind(found, known, start, end), found


def _kind(found: dict[int, float], known: list[int], start: float, end: float) -> str:
    if min(end, 1.0) > start + SMALL or (known[-1] <= 1 and end > start >= 0):
        return "rises"
    if start >= OFTEN and min(found.values()) >= OFTEN and known[-1] > FEW:
        return "stays"
    early = [found[t] for t in known if 1 <= t <= FEW]
    least = max(end, 0.0) if known[-1] > FEW else LEAST
    if min(start, 1.0) - max(end, 0.0) > 10 * SMALL and early and min(early) <= SMALL + least:
        return "falls"
    return ""


def always_random(run: Rehearsing) -> Iterator[Answer]:
    """The share of random actions never falls, or grows."""
    for choice, kind, found in _judged(run):
        known = sorted(found)
        start, end = found[known[0]], found[known[-1]]
        if kind == "rises":
            text = f"random actions become more frequent ({start:.3g} at first, {end:.3g} later)"
        elif kind == "stays":
            text = f"the agent acts at random {end:.0%} of the time from beginning to end"
        else:
            continue
        yield Answer(_decided(run, choice), text, (choice.place,))


def hardly_random(run: Rehearsing) -> Iterator[Answer]:
    """The share of random actions falls to its least within a few turns."""
    for choice, kind, _ in _judged(run):
        if kind == "falls":
            text = f"after {FEW} turns the agent hardly tries anything at random any more: its exploration ends at once"
            yield Answer(_decided(run, choice), text, (choice.place,))


def _decided(run: Rehearsing, choice: Choice) -> Place:
    """What is to be changed: the comparison, the numbers that a schedule runs between, or the line that computes it."""
    if not choice.less and isinstance(choice.place[0], ast.Compare):
        return choice.place
    value = choice.threshold
    if not isinstance(value, Node) or value.op == "counter":
        return _changes(choice) or choice.place
    inner = next((n for n in ancestors(value) if n.place is not None and n.op != "counter"), None)
    place = inner.place if inner is not None and inner.place is not None else choice.place
    return _ends(run, place) or place


def _ends(run: Rehearsing, place: Place) -> Place | None:
    """Where the first and the last share are written, where these are no falling ones."""
    written: dict[str, tuple[float, Place]] = {}
    for node in ast.walk(place[0]):
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            found = origin(run.project, node, place[1])
            name = ast.unparse(node)
            kind = "first" if FIRST.search(name) else "last" if LAST.search(name) else ""
            if found is not None and kind and isinstance(found[0], ast.Constant):
                number = found[0].value
                if isinstance(number, int | float):
                    written.setdefault(kind, (float(number), found))
    if len(written) == 2 and written["first"][0] <= written["last"][0]:
        return written["first"][1]
    return None


def _changes(choice: Choice) -> Place | None:
    """The assignment in which a number that is compared with changes from turn to turn."""
    node = choice.place[0]
    names = {n.attr if isinstance(n, ast.Attribute) else n.id for n in ast.walk(node)
             if isinstance(n, ast.Attribute | ast.Name)}  # fmt: skip
    for inner in ast.walk(choice.place[1].module.tree):
        if isinstance(inner, ast.AugAssign | ast.Assign):
            targets = [inner.target] if isinstance(inner, ast.AugAssign) else inner.targets
            own = {t.attr if isinstance(t, ast.Attribute) else getattr(t, "id", "") for t in targets}
            read = {n.attr if isinstance(n, ast.Attribute) else n.id for n in ast.walk(inner.value)
                    if isinstance(n, ast.Attribute | ast.Name)}  # fmt: skip
            if own & names and (isinstance(inner, ast.AugAssign) or own & read):
                return _set_back(choice, inner, own & names) or (inner, choice.place[1])
    return None


def _set_back(choice: Choice, changed: ast.AST, names: set[str]) -> Place | None:
    """Where a loop around the change gives the number its first value again in each turn."""
    loops = [n for n in ast.walk(choice.place[1].module.tree) if isinstance(n, ast.For | ast.While)]
    for loop in (n for n in loops if any(i is changed for i in ast.walk(n))):
        for inner in loop.body:
            if not isinstance(inner, ast.Assign) or inner is changed:
                continue
            own = {t.attr if isinstance(t, ast.Attribute) else getattr(t, "id", "") for t in inner.targets}
            read = {n.attr if isinstance(n, ast.Attribute) else getattr(n, "id", "") for n in ast.walk(inner.value)}
            if own & names and not read & names:
                return inner, choice.place[1]
    return None


__all__ = ["always_random", "hardly_random"]
