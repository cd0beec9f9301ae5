"""Two networks that are one: a copy that shares its weights with what it was made from."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Place, Value, candidates, is_module
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.checkpoints import VIEWS

MOVES = frozenset(["lerp_", "add_", "copy_", "inplace"])
SHARES = "the copy shares its parameters with the network (copy.deepcopy gives it its own)"


def frozen_with_copy(run: Rehearsing) -> Iterator[Answer]:
    """``copy.copy(net).requires_grad_(False)``: the network itself is frozen, and is called again to be trained."""
    for event in run.tape:
        module = event.subject
        if event.name != "shallow copy" or not is_module(module) or event.place is None:
            continue
        params, whole = run.parameters(module)
        stops = [_stopped(p) for p in params]
        if not params or not whole or any(s is None or s.serial < event.serial for s in stops):
            continue
        inside = {id(module), *(id(v) for v in module.attributes.values())}
        called = [e for e in run.tape if e.name == "forward" and id(e.subject) in inside and e.turns]
        taught = [e for e in called if e.grad_mode and e.serial > event.serial]
        alone = [e for e in called if not e.grad_mode and not e.maybe]
        if taught and alone and any(e.name == "backward" and e.serial > taught[0].serial for e in run.tape):
            stop = stops[0].place if stops[0] is not None else None
            proof = (*((stop,) if stop is not None else ()), *((taught[0].place,) if taught[0].place else ()))
            yield Answer(event.place, f"{SHARES}: freezing it freezes both", proof)
            return


def _stopped(param: Node) -> Event | None:
    told = [w for w in param.writes if w.name == "requires_grad"]
    return told[-1] if told and told[-1].args[:1] == (False,) and param.trainable is False else None


def moved_towards_itself(run: Rehearsing) -> Iterator[Answer]:
    """The average of the weights, or the older network that follows, is the network that learns."""
    for param in run.nodes:
        if param.op != "param" or param.trainable is False:
            continue
        for event in param.writes:
            if event.name not in MOVES or not event.turns or event.place is None or not event.args:
                continue
            pair = event.name != "inplace" and all(_itself(c, param) for c in candidates(event.args[0]))
            made = _made_one(run, param, event) if pair and _of_two(event) else None
            if made is not None:
                yield Answer(made, f"{SHARES}: it is moved towards itself", (event.place,))
                return


def _itself(value: Value, param: Node) -> bool:
    while isinstance(value, Node) and value is not param and value.inputs and (value.op in VIEWS or _scaled(value)):
        value = next((i for i in value.inputs if isinstance(i, Node)), None)
    return value is param


def _scaled(node: Node) -> bool:
    """True for a number times the weights."""
    return node.op == "mul" and sum(isinstance(i, Node) for i in node.inputs[:2]) == 1


def _of_two(event: Event) -> bool:
    """True where the program writes of two different names: ``old.lerp_(new, 0.01)``."""
    call = event.place[0] if event.place is not None else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    mine = {n.id for n in ast.walk(call.func) if isinstance(n, ast.Name)}
    other = {n.id for a in call.args for n in ast.walk(a) if isinstance(n, ast.Name)}
    return bool(mine) and bool(other - mine)


def _made_one(run: Rehearsing, param: Node, event: Event) -> Place | None:
    """Where a copy that shares was made of the network that holds the parameter."""
    for copied in run.tape:
        if copied.name != "shallow copy" or not is_module(copied.subject) or copied.serial > event.serial:
            continue
        if any(p is param for p in run.parameters(copied.subject)[0]):
            return copied.place
    for place, obj in run.memo.get("aliases", ()):
        node = place[0]
        kept = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute)
        if kept and is_module(obj) and any(p is param for p in run.parameters(obj)[0]):
            return place[0], place[1]
    return None
