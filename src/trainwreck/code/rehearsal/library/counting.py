"""The numbers that loops count with: exact where there are few, else the first and one that stands for any later."""

from __future__ import annotations

import ast

from trainwreck.code.rehearsal.calling import Asked
from trainwreck.code.rehearsal.domain import FLOOR, UNKNOWN, Items, Node, Obj, Value, candidates
from trainwreck.code.rehearsal.library import function
from trainwreck.code.rehearsal.rehearsing import Rehearsing
from trainwreck.code.rehearsal.storing import EXACT_TURNS
from trainwreck.code.shapes.domain import count_of

CYCLED = "cycled"
"""Key of the ``id`` of what ``itertools.cycle`` goes through: it ends no ``zip``."""


@function("builtins.range")
def counted(run: Rehearsing, asked: Asked) -> Value:
    """The numbers of a ``range``."""
    if all(isinstance(a, int) for a in asked.args) and asked.args:
        try:
            numbers = range(*asked.args)
        except (ValueError, TypeError):
            return UNKNOWN
        if count_of(numbers) <= EXACT_TURNS:
            return Items(list(numbers), False, "range")
        any_turn = _counter(run, asked, numbers[1] if numbers.step > 0 else None)
        return Items([numbers[0], any_turn], True, "range", asked.place, count_of(numbers))
    fresh = _of_a_first_run(asked)
    if fresh is not None:
        return Items([fresh[0], _counter(run, asked, None)], True, "range", asked.place, count_of(fresh))
    first = asked.args[0] if len(asked.args) > 1 and isinstance(asked.args[0], int) else 0
    upwards = len(asked.args) == 1 or (len(asked.args) == 2 and isinstance(asked.args[0], int))
    return Items([first, _counter(run, asked, first + 1 if upwards else None)], True, "range")


def _of_a_first_run(asked: Asked) -> range | None:
    """``range(start, end)`` whose start is a number, or what a checkpoint says: the turns of a first run."""
    start, end = asked.args if len(asked.args) == 2 else (None, None)
    written = [c for c in candidates(start) if isinstance(c, int)]
    if not isinstance(start, Node) or not isinstance(end, int) or len(written) != 1 or end - written[0] <= EXACT_TURNS:
        return None
    return range(written[0], end)


@function("builtins.slice")
def sliced(run: Rehearsing, asked: Asked) -> Value:
    """``slice(a, b)`` is what ``a:b`` between brackets gives."""
    ends = tuple(asked.args)
    if not 1 <= len(ends) <= 3 or asked.options:
        return UNKNOWN
    return Obj("builtins.slice", args=(None, ends[0], None) if len(ends) == 1 else (*ends, None)[:3], place=asked.place)


def _counter(run: Rehearsing, asked: Asked, least: Value) -> Node:
    """The number of any later turn, not below ``least``."""
    made = run.node("counter", tuple(asked.args) if asked.name != "enumerate" else (), asked.place, full=asked.full)
    if isinstance(least, int):
        made.attributes[FLOOR] = least
    return made


def turned_round(run: Rehearsing, given: Value, found: list[Value], asked: Asked) -> list[Value]:
    """The elements from the last on; of the numbers of a long ``range`` the last of them, and any before it."""
    counter = given.items[-1] if isinstance(given, Items) and given.kind == "range" and given.more else None
    if not isinstance(counter, Node):
        return found[::-1]
    ends = counter.inputs
    before = run.node("counter", ends, asked.place, full=asked.full)
    if ends and all(isinstance(a, int) for a in ends):
        numbers = range(*ends)
        if numbers.step > 0:
            before.attributes[FLOOR] = numbers[0]
        return [numbers[-1], before]
    if len(ends) in (1, 2):
        return [run.operated(ast.Sub(), ends[-1], 1, asked.place), before]
    return [run.node("counter", ends, asked.place, full=asked.full), before]


@function("builtins.enumerate")
def _enumerate(run: Rehearsing, asked: Asked) -> Value:
    found, more = run.elements(asked.get("iterable", 0), asked.place, asked.frame)
    start = asked.get("start", 1, 0)
    numbered: list[Value] = []
    for place, value in enumerate(found):
        known = isinstance(start, int) and (not more or place == 0)
        later = start + 1 if isinstance(start, int) else None
        numbered.append((start + place if known else _counter(run, asked, later), value))
    return Items(numbered, more, "iterator", source=asked.get("iterable", 0))


@function("itertools.count")
def _count(run: Rehearsing, asked: Asked) -> Value:
    start = asked.get("start", 0, 0)
    least = start + 1 if isinstance(start, int) and asked.get("step", 1, 1) == 1 else None
    return Items([start, _counter(run, asked, least)], True, "range")


@function("builtins.any", "builtins.all")
def _quantified(run: Rehearsing, asked: Asked) -> Value:
    """``any(key in name for key in KEPT)``, where all that is asked about is known."""
    given = asked.args[0] if asked.args else None
    if not isinstance(given, Items | tuple):
        return run.node(asked.name, asked.given, asked.place, dict(asked.options), full=asked.full)
    found, more = run.elements(given, asked.place, asked.frame)
    truths = [run.truth(v) for v in found]
    decides = asked.name == "any"
    if decides in truths:
        return decides
    if more or None in truths:
        return run.node(asked.name, asked.given, asked.place, dict(asked.options), full=asked.full)
    return not decides


@function("itertools.cycle")
def _cycle(run: Rehearsing, asked: Asked) -> Value:
    given = asked.args[0] if asked.args else Items([])
    if isinstance(given, Node) and given.op != "either":
        return run.node(asked.name, (given,), asked.place)
    endless = given
    if not isinstance(given, Obj):
        endless = Items(list(run.elements(given, asked.place, asked.frame)[0]), True, place=asked.place)
    run.memo.setdefault(CYCLED, set()).add(id(endless))
    return endless


@function("itertools.accumulate")
def _accumulated(run: Rehearsing, asked: Asked) -> Value:
    """Each value with what came before it, by a function of the two (a sum, where none is given)."""
    given, function_ = asked.args[0] if asked.args else UNKNOWN, asked.get("func", 1)
    found, more = run.elements(given, asked.place, asked.frame)
    start = asked.options.get("initial")
    results: list[Value] = [] if start is None else [start]
    for value in [*found, *found[-1:]][:EXACT_TURNS] if more else found[:EXACT_TURNS]:
        if not results:
            results.append(value)
        elif function_ is None:
            results.append(run.operated(ast.Add(), results[-1], value, asked.place))
        else:
            results.append(run.call(function_, [results[-1], value], {}, asked.place, asked.frame))
    return Items(results, more or len(found) > EXACT_TURNS, "list", asked.place, source=given)
