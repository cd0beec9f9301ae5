"""Data that are divided in two, of which the second part is never used and the first one teaches and judges."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Obj, Place
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import evaluated, feeding, key_of
from trainwreck.code.rehearsal.questions.roles import users
from trainwreck.code.rehearsal.questions.signs import ERRORS
from trainwreck.code.rehearsal.state import MAX_STEPS

SMALL = 8
"""Fewer elements than this at an end are a lag or a look back, and no part of the data."""


def judged_by_the_taught(run: Rehearsing) -> Iterator[Answer]:
    """``x[:k]`` is trained on and evaluated too, while ``x[k:]``, which was cut beside it, is used by nothing.

    Said only where the rehearsal went through all of the program."""
    if run.steps > MAX_STEPS:
        return
    halves = list(_halves(run))
    if not halves:
        return
    for event, node in evaluated(run):
        yield from _told(run, halves, node, event)
    for node in run.nodes:
        if node.op in ERRORS and node.place is not None and _adapted(node):
            yield from _told(run, halves, node, None)


def _told(run: Rehearsing, halves: list[tuple[Node, Node]], value: Node, event: Event | None) -> Iterator[Answer]:
    """The answer where ``value`` is made of first parts alone whose second parts nothing uses."""
    behind = {id(n) for n in ancestors(value)}
    for first, second in halves:
        taught = id(first) in feeding(run) or _followed(run, first)
        place = value.place if event is None else _asked(event, value, first)
        if id(first) in behind and taught and id(second) not in behind and place is not None:
            text = "this judges by the rows that were trained on, and the part that was put aside is never used"
            yield Answer(place, text, (second.place,) if second.place is not None else ())
            return


def _halves(run: Rehearsing) -> Iterator[tuple[Node, Node]]:
    """The two parts of one array, cut at one place in one turn, of which the second one has no use."""
    starts: dict[tuple[object, ...], Node] = {}
    ends: list[tuple[tuple[object, ...], Node]] = []
    for node in run.nodes:
        index = node.inputs[1] if node.op == "getitem" and len(node.inputs) > 1 else None
        cut = index[0] if isinstance(index, tuple) and index else index
        if not isinstance(cut, Obj) or cut.kind != "builtins.slice" or node.maybe:
            continue
        start, end, step = cut.args
        if step is not None or (start in (None, 0)) == (end is None):
            continue
        at = start if end is None else end
        if isinstance(at, int) and abs(at) < SMALL:
            continue
        key: tuple[object, ...] = (id(node.inputs[0]), key_of(at), node.stack, node.turns)
        if end is None:
            ends.append((key, node))
        else:
            starts.setdefault(key, node)
    for key, second in ends:
        first = starts.get(key)
        if first is not None and not _used(run, second) and not _perhaps_later(run, second):
            yield first, second


def _perhaps_later(run: Rehearsing, node: Node) -> bool:
    """True where the name of the part is read in a branch, which may be taken another time (``if args.test:``)."""
    if node.place is None:
        return True
    statement, scope = run.project.statement(*node.place), node.place[1]
    names = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    branches = [s for n in ast.walk(scope.node) if isinstance(n, ast.If) for s in (*n.body, *n.orelse)]
    return any(isinstance(n, ast.Name) and n.id in names for s in branches for n in ast.walk(s))


def _used(run: Rehearsing, node: Node) -> bool:
    """True where anything is computed from a value, or an object or a function of a library is given it."""
    if users(run).get(id(node)):
        return True
    if "given away" not in run.memo:
        kept = {id(n) for o in run.objects for a in (*o.args, *o.options.values()) for n in parts(a)}
        calls = [a for e in run.tape if e.name != "append" for a in (*e.args, *e.options.values())]
        run.memo["given away"] = kept | {id(n) for a in calls for n in parts(a)}
    found: set[int] = run.memo["given away"]
    return id(node) in found


def _asked(event: Event, value: Node, first: Node) -> Place | None:
    """Where the data for the evaluation were put together; of a part as it is, where its function hands it on."""
    if value.op in ("cat", "concat", "concatenate", "stack", "vstack"):
        return value.place
    own = first.place[1] if first.place is not None else None
    return next((p for p in event.stack if p[1] is own), event.place)


def _adapted(node: Node) -> bool:
    """True for an error of weights that were moved by hand along the gradient of an error."""
    grads = (n for n in ancestors(node) if n.op == "grad" and len(n.inputs) > 1)
    return any(isinstance(g.inputs[0], Node) and g.inputs[0].op in ERRORS for g in grads)


def _followed(run: Rehearsing, first: Node) -> bool:
    """True for data behind the error whose gradient weights were moved along."""
    if "followed" not in run.memo:
        grads = [n for n in run.nodes if n.op == "grad" and len(n.inputs) > 1]
        run.memo["followed"] = {id(a) for g in grads for a in ancestors(g.inputs[0])}
    found: set[int] = run.memo["followed"]
    return id(first) in found


__all__ = ["judged_by_the_taught"]
