"""Losses that are worked out in a step and that no backward goes through, while weights wait for them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Place
from trainwreck.code.rehearsal.graph import ancestors, graph, near, opaque
from trainwreck.code.rehearsal.graph import reached as behind
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import backwards, held, reached, same_turn, steps
from trainwreck.code.rehearsal.questions.optimizing import settled
from trainwreck.code.rehearsal.questions.paths import key_of
from trainwreck.code.rehearsal.questions.signs import ERRORS
from trainwreck.code.rehearsal.questions.terms import divergences, reconstructions, terms

CLOSE = 8
"""Values between a sum and the losses that it is made of."""


def never_added(run: Rehearsing) -> Iterator[Answer]:
    """Weights of an optimizer are reached by one loss alone, and it is only looked at: the sum has lost a term."""
    candidates = [n for n in run.nodes if n.op in ERRORS and n.grad and n.place is not None]
    events = backwards(run)
    if not candidates or not events or not settled(run) or any(opaque(e.subject) for e in events):
        return
    learned = {id(p) for e in events for p in reached(e)}
    waiting = {id(p) for s in steps(run) for p in held(s) if p.trainable is not False and id(p) not in learned}
    if not waiting:
        return
    used = [*events, *(e for e in run.tape if e.name == "grad")]  # of an inner loop the gradients are asked for
    inside = {id(n) for e in used for n in graph(e.subject)}
    for node in candidates:
        if id(node) in inside:
            continue
        event = next((e for e in events if e.serial > node.serial and e.turns and same_turn(e, node)), None)
        if event is None or event.place is None or len(node.turns) < len(event.turns):
            continue
        mine = [p for p in behind(node) if id(p) in waiting]
        if mine and node.place is not None:
            name = mine[0].name.rpartition(".")[0] or mine[0].name
            text = f"a loss is worked out in this step and is no part of what is learned from: {name} learns nothing"
            yield Answer(summed_at(run, event), text, (node.place, event.place))
            return


def divergence_left_out(run: Rehearsing) -> Iterator[Answer]:
    """The divergence from the prior is worked out beside the reconstruction, and is no part of what is minimised."""
    events = [e for e in backwards(run) if e.turns and not opaque(e.subject)]
    inside = {id(n) for e in events for n in graph(e.subject)}
    for node in run.nodes if events else ():
        left = node.grad and node.op in ("sum", "mean") and id(node) not in inside and node.place is not None
        if not left or node.shape.open or node.shape.dims or not divergences(terms(node)):
            continue
        event = next((e for e in events if e.serial > node.serial and same_turn(e, node)), None)
        if event is None or len(node.turns) < len(event.turns):
            continue
        found = terms(event.subject)
        noise = any(n.op in ("randn_like", "randn", "rsample") for n in ancestors(event.subject))
        if noise and not divergences(found) and reconstructions(found, []):
            text = "the divergence from the prior is worked out in this step and is no part of what is minimised"
            last = event.subject.place if isinstance(event.subject, Node) else None
            alone = last if last is not None and node.place is not None and last[1] is node.place[1] else None
            proof = (node.place,) if node.place is not None else ()
            yield Answer(_returned(alone) or summed_at(run, event), text, proof)
            return


def _returned(place: Place | None) -> Place | None:
    """The statement with which the function gives back what is minimised."""
    if place is None:
        return None
    last = [n for n in place[1].nodes if isinstance(n, ast.Return)]
    return (last[-1], place[1]) if last else None


def summed_at(run: Rehearsing, event: Event) -> Place:
    """Where the value of a backward was put together; the backward where it is written elsewhere."""
    assert event.place is not None
    for last in _summed(event):
        if (instead := _overwriting(last, event)) is not None:
            return instead
    call, scope = event.place
    target = call.func.value if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else None
    if not isinstance(target, ast.Name):
        return event.place
    line = getattr(call, "lineno", 0)
    written = [
        n for n in scope.nodes
        if isinstance(n, ast.Assign) and n.lineno <= line and any(isinstance(t, ast.Name) and t.id == target.id
                                                                 for t in n.targets)
    ]  # fmt: skip
    return (max(written, key=lambda n: n.lineno), scope) if written else event.place


def overwritten_sum(run: Rehearsing) -> Iterator[Answer]:
    """A sum over a loop begins at zero and is overwritten in each turn: only the last loss runs backward, and those of
    the turns before hang in the graph for nothing."""
    found = [(e, last, place) for e in backwards(run) for last in _summed(e)
             if (place := _overwriting(last, e)) is not None and last.grad]  # fmt: skip
    if not found:
        return
    learned = [e for e in run.tape if e.name in ("backward", "grad")]
    used = {id(n) for e in learned for n in graph(e.subject)}
    for event, last, place in found:
        before = (n for n in run.nodes if id(n) not in used and _turn_before(n, last))
        if not opaque(last) and any(_compared(n) != _compared(last) for n in before):
            text = "this is zero before the loop and overwritten in each turn: only the last loss is learned from"
            yield Answer(place, text, (event.place,) if event.place is not None else ())
            return


def _compared(value: Node) -> set[tuple[str, object]]:
    """What the outputs meet in a loss: the last of several guesses at one thing may be all that is to count."""
    return {(n.op, key_of(i)) for n in near(value, CLOSE) if n.grad and n.op != "param"
            for i in n.inputs if isinstance(i, Node) and not i.grad and i.op != "param"}  # fmt: skip


def _turn_before(node: Node, last: Node) -> bool:
    """True for what the same statement gave in an earlier turn of the innermost loop."""
    same = node.place is not None and last.place is not None and node.place[0] is last.place[0] and node.op == last.op
    return same and node.grad and node.serial < last.serial and node.turns[:-1] == last.turns[:-1]


def _summed(event: Event) -> Iterator[Node]:
    """What runs backward, and the values that it is the sum of."""
    if isinstance(event.subject, Node):
        yield event.subject
        for term in terms(event.subject):
            yield from term.path[1:]
            yield term.node


def _overwriting(last: Node, event: Event) -> Place | None:
    """The statement of an inner loop that puts a loss into a name instead of adding it: the name is zero before the
    loop and is read by nothing within it."""
    if last.place is None or len(last.turns) <= len(event.turns):
        return None
    loop, scope = last.turns[-1].node, last.place[1]
    if not isinstance(loop, ast.For) or last.turns[-1].scope is not scope:
        return None
    inside = [n for statement in loop.body for n in ast.walk(statement)]
    for at in inside:
        target = at.targets[0] if isinstance(at, ast.Assign) and len(at.targets) == 1 else None
        if isinstance(target, ast.Name) and any(n is last.place[0] for n in ast.walk(at)):
            begun = any(
                _zero(n, target.id) and n.lineno < loop.lineno for n in scope.nodes if isinstance(n, ast.Assign)
            )
            read = any(isinstance(n, ast.Name) and n.id == target.id and n is not target for n in inside)
            return (at, scope) if begun and not read else None
    return None


def _zero(at: ast.Assign, name: str) -> bool:
    """True for ``name = 0`` or a tensor of one zero, alone or beside others."""
    named = [t for t in at.targets if isinstance(t, ast.Name) and t.id == name]
    value = at.value
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        zeros = value.func.attr in ("zeros", "new_zeros")
        value = value.args[0] if value.args and value.func.attr in ("tensor", "zeros", "new_zeros") else value
        if zeros:
            return bool(named) and isinstance(value, ast.Constant | ast.Tuple | ast.List)
    return bool(named) and isinstance(value, ast.Constant) and value.value in (0, 0.0) and value.value is not False


__all__ = ["divergence_left_out", "never_added", "overwritten_sum", "summed_at"]
