"""Parameters that an optimizer holds at a learning rate of zero: they are trained and never move."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Place, Table
from trainwreck.code.rehearsal.holding import is_optimizer
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import steps

RAISES = frozenset(["OneCycleLR", "CyclicLR"])
"""Schedules that set the rate themselves: all others multiply the first one, and 0 stays 0."""


def never_moves(run: Rehearsing) -> Iterator[Answer]:
    """A group (or the whole) of an optimizer in use with ``lr=0``, that nothing sets to another rate."""
    if any(e.name == "set_rate" or (e.name == "load_state_dict" and is_optimizer(e.subject)) for e in run.tape):
        return
    if any(o.name in RAISES for o in run.objects):
        return
    moved = {id(e.subject) for e in steps(run) if e.turns}
    for optimizer in (o for o in run.objects if is_optimizer(o) and id(o) in moved):
        for group in (g for g in run.groups(optimizer).items if isinstance(g, Table)):
            rate, params = group.entries.get("lr"), group.entries.get("params")
            held = [p for p in params.items if isinstance(p, Node)] if isinstance(params, Items) else []
            zero = type(rate) in (int, float) and rate == 0
            if zero and any(p.op == "param" and p.trainable is True for p in held) and optimizer.place is not None:
                place = _written(optimizer) or optimizer.place
                yield Answer(place, "these parameters are trained at a rate of 0: they never move", (optimizer.place,))
                return


def _written(optimizer: Obj) -> Place | None:
    """The group that is written with this rate, in the function that makes the optimizer."""
    scope = optimizer.place[1] if optimizer.place is not None else None
    for node in scope.nodes if scope is not None else ():
        pairs = zip(node.keys, node.values, strict=True) if isinstance(node, ast.Dict) else ()
        for key, value in pairs:
            named = isinstance(key, ast.Constant) and key.value == "lr"
            if named and isinstance(value, ast.Constant) and value.value == 0 and scope is not None:
                return value, scope
    return None


__all__ = ["never_moves"]
