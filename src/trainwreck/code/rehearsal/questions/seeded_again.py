"""Batches that are drawn: is the generator put back to one seed before each of them?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Obj, Place, Value
from trainwreck.code.rehearsal.graph import parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.redrawn import seeded
from trainwreck.code.rehearsal.questions.streams import DRAWS, SEEDED

PICKS = frozenset(["getitem", "index_select", "take", "take_along_dim", "gather", "element"])
ORDERS = frozenset(["randperm", "permutation", "shuffle"])
MOST = 6_000


def same_batch_each_turn(run: Rehearsing) -> Iterator[Answer]:
    """Between one step of an optimizer and the next a generator gets the same seed, and then draws which rows to take.

    Rows of an array that was there before the turn, and picked only: numbers that are drawn as data or as labels make
    the same data set anew, which may be meant."""
    told: set[int] = set()
    for before, step in _turns(run):
        for backward in (e for e in run.tape if e.name == "backward" and before.serial < e.serial < step.serial):
            picked, used = _reached(backward.subject)
            for draw in (n for n in picked.values() if n.op in DRAWS and id(n) not in used):
                begun = seeded(run, draw) if draw.serial > before.serial else None
                if begun is None or begun[0] <= before.serial or (draw.op in ORDERS and not _cut(draw, picked)):
                    continue
                if any(
                    n.op in DRAWS and (since := seeded(run, n)) is not None and since[0] == begun[0]
                    for n in used.values()
                ):
                    continue  # the data are drawn anew as well
                place = _place(run, begun, step.maybe)
                if place is not None and id(place[0]) not in told:
                    told.add(id(place[0]))
                    text = "the generator is put back to this seed before each step: each step takes the same rows"
                    yield Answer(place, text, tuple(p for p in (draw.place, step.place) if p is not None))


def _turns(run: Rehearsing) -> Iterator[tuple[Event, Event]]:
    """A step of an optimizer and the one at the same place in the next turn of the innermost loop, any turn of it."""
    steps: dict[tuple[int, int], list[Event]] = {}
    for event in run.tape:
        if event.name == "step" and isinstance(event.subject, Obj) and event.turns and event.place is not None:
            steps.setdefault((id(event.place[0]), id(event.subject)), []).append(event)
    for before, step in (pair for group in steps.values() for pair in pairwise(group)):
        here, there = before.turns[-1], step.turns[-1]
        if here.node is there.node and there.generic and before.turns[:-1] == step.turns[:-1]:
            yield before, step


def _reached(loss: Value) -> tuple[dict[int, Node], dict[int, Node]]:
    """What rows are picked by on the way to a loss, and what the loss is made of itself, by ``id``."""
    picked: dict[int, Node] = {}
    used: dict[int, Node] = {}
    queue = [(n, False) for n in parts(loss)]
    for at in range(MOST):
        if at >= len(queue):
            break
        node, index = queue[at]
        if node.op == "param" or (id(node) in picked if index else id(node) in used):
            continue
        if index:
            picked[id(node)] = node
        else:
            used[id(node)] = node
        for number, item in enumerate((*node.inputs, *node.options.values())):
            by = index or (node.op in PICKS and number > 0)
            queue += [(inner, by) for inner in _inner(item)]
    return picked, used


def _inner(value: Value) -> Iterator[Node]:
    """The values in ``value``, also those that a slice goes from and to."""
    items = value if isinstance(value, tuple) else (value,)
    for item in items:
        if isinstance(item, Obj) and item.kind == "builtins.slice":
            yield from parts(tuple(item.args))
        else:
            yield from parts(item)


def _cut(order: Node, picked: dict[int, Node]) -> bool:
    """True where only a part of an order is taken: all of it are all rows, in whatever order."""
    for node in picked.values():
        if node.op == "getitem" and node.inputs[0] is order and len(node.inputs) > 1:
            index = node.inputs[1]
            if isinstance(index, Obj) and index.kind == "builtins.slice" and isinstance(index.args[1], int):
                return not any(isinstance(a, Node) for a in index.args)
    return False


def _place(run: Rehearsing, begun: tuple[int, Value, tuple[object, ...]], maybe: int) -> Place | None:
    """Where the seed was given; None where a branch decides in which turns it is."""
    at, maker, _ = begun
    if isinstance(maker, Node) and maker.serial == at:
        return maker.place if maker.maybe <= maybe else None
    if isinstance(maker, Obj) and maker.serial == at:
        return maker.place
    found = (e.place for e in run.tape if e.serial == at and e.name in SEEDED and e.maybe <= maybe)
    return next(found, None)


__all__ = ["same_batch_each_turn"]
