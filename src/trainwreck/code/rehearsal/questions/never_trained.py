"""A training function that is only ever asked to evaluate: the optimizer is made and given to nobody."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name
from trainwreck.code.facts import bound_to
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Obj
from trainwreck.code.rehearsal.holding import is_optimizer, is_scheduler
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.state import MAX_STEPS
from trainwreck.code.scopes import Scope

SCHEDULES = ("LR", "Plateau", "WarmRestarts", "_schedule", "_schedule_with_warmup")
LEARNS = frozenset(["backward", "grad", "step", "scaler_step", "pass_on"])


def never_trained(run: Rehearsing) -> Iterator[Answer]:
    """The function with the backward runs in a loop, and never comes to it; nothing else uses the optimizer."""
    moves = (e for e in run.tape if e.name in LEARNS and (e.name != "step" or not is_scheduler(e.subject)))
    if any(True for _ in moves) or run.steps > MAX_STEPS / 2:
        return
    optimizers = [o for o in run.objects if is_optimizer(o)]
    if not optimizers or not all(_left_alone(run, o) for o in optimizers):
        return
    for event in run.tape:
        if event.name == "forward" and event.turns and event.stack and _may_learn(event):
            text = "this runs the network and never comes to the backward: the optimizer is given to nobody"
            proof = tuple(o.place for o in optimizers[:1] if o.place is not None)
            yield Answer(event.stack[-1], text, proof)
            return


def _may_learn(event: Event) -> bool:
    """True where the function that runs the network has a backward in it, under a condition."""
    scope = event.place[1] if event.place is not None else None
    if scope is None or scope.kind != "function":
        return False
    calls = (n for n in scope.nodes if isinstance(n, ast.Call))
    return any(isinstance(c.func, ast.Attribute) and c.func.attr == "backward" for c in calls)


def _left_alone(run: Rehearsing, optimizer: Obj) -> bool:
    """True for an optimizer in a variable that nothing reads."""
    place = optimizer.place
    if place is None or not isinstance(place[0], ast.Call):
        return False
    name = bound_to(run.project, Call(place[0], place[1]))
    if not name.isidentifier():
        return False
    walked = [w for w in run.project.walked.values() if place[1] in w.scopes]
    return not any(_reads(scope, name, place[1]) for w in walked for scope in w.scopes)


def _reads(scope: Scope, name: str, home: Scope) -> bool:
    """True where this scope reads the variable ``name`` of ``home``, and not one of its own."""
    if scope is not home and (name in scope.bindings or (home.kind == "function" and not _within(scope, home))):
        return False
    schedules = [n for n in scope.nodes if isinstance(n, ast.Call) and last_name(n.func).endswith(SCHEDULES)]
    given = {id(a) for call in schedules for a in call.args}  # a schedule moves the rate of it, and steps nothing
    read = (n for n in scope.nodes if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load))
    return any(id(n) not in given for n in read)


def _within(scope: Scope, home: Scope) -> bool:
    at: Scope | None = scope
    while at is not None:
        if at is home:
            return True
        at = at.parent
    return False
