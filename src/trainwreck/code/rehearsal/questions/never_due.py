"""Evaluations that are due every so many turns, of which the run has fewer."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.counts import trips
from trainwreck.code.rehearsal.questions.gradients import backwards
from trainwreck.code.rehearsal.questions.places import once

COUNTS = frozenset(["add", "counter", "either"])


def never_due(run: Rehearsing) -> Iterator[Answer]:
    """``if step % 500 == 0: evaluate(...)`` in a run of 100 steps: nothing is judged, and no best weights are kept.

    Said only where the number of turns is known, and where nothing else judges the network in its training."""
    learned = {id(t.node) for b in backwards(run) for t in b.turns}
    quiet = [
        e for e in run.tape if e.name == "forward" and not e.grad_mode and any(id(t.node) in learned for t in e.turns)
    ]
    asked: dict[int, list[tuple[Value, ast.AST]]] = {}
    for test, holder in run.memo.get("tested", ()):
        if isinstance(holder, ast.If):
            asked.setdefault(id(holder), []).append((test, holder))
    for found in asked.values():
        holder = found[0][1]
        tests = [t for t, _ in found if isinstance(t, Node)]
        if not tests or any(run.truth(t) for t, _ in found) or not isinstance(holder, ast.If):
            continue
        every = {_interval(run, t) for t in tests}
        interval = every.pop() if len(every) == 1 else None
        body = {id(n) for s in holder.body for n in ast.walk(s)}
        inside = [e for e in quiet if _within(e, body)]
        place = tests[0].place
        if interval is None or not inside or len(inside) < len(quiet) or place is None:
            continue
        text = f"this is due every {interval} turns, and there are fewer of them: nothing is ever evaluated"
        yield Answer(once(run, interval) or place, text, (place,))
        return


def _within(event: Event, body: set[int]) -> bool:
    return any(id(p[0]) in body for p in (*event.stack, event.place) if p is not None)


def _interval(run: Rehearsing, test: Node) -> int | None:
    """The number of turns after which a test would hold for the first time, where there are fewer."""
    left = test.inputs[0] if test.op == "eq" and test.inputs[1:] == (0,) else None
    if not isinstance(left, Node) or left.op != "mod" or len(left.inputs) < 2 or not test.turns:
        return None
    count, every = left.inputs[:2]
    turns = [trips(run, t) for t in test.turns]
    if not isinstance(count, Node) or not isinstance(every, int) or isinstance(every, bool) or None in turns:
        return None
    total = math.prod(t for t in turns if t is not None)
    highest = _highest(count, total)
    return every if highest is not None and highest < every else None


def _highest(count: Node, total: float) -> float | None:
    """The last number of a count that goes on by one in each turn; None for any other."""
    if count.op == "counter" and count.full == "builtins.range" and all(isinstance(i, int) for i in count.inputs):
        return float(count.inputs[0] if len(count.inputs) == 1 else count.inputs[1]) - 1
    first, second = (*count.inputs, None, None)[:2]
    if count.op == "add" and isinstance(second, int) and isinstance(first, Node) and first.op == "counter":
        inner = _highest(first, total)
        if inner is not None and first.full == "builtins.range":
            return inner + second
    for node in ancestors(count):
        if node.op not in COUNTS or (node.op == "add" and node.inputs[1:] != (1,)):
            return None
        if node.op == "counter" and node.full == "builtins.range":
            return None
    return total


__all__ = ["never_due"]
