"""Turns in which nothing is learned: summands that hang on nothing, networks that an earlier step left frozen."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Place, is_module
from trainwreck.code.rehearsal.graph import ancestors, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import held, steps
from trainwreck.code.rehearsal.questions.roles import trained, unknown, users
from trainwreck.code.rehearsal.questions.terms import losses_of


def exchanged(run: Rehearsing) -> Iterator[Answer]:
    """A term between a network and a frozen one, of which the wrong one ran with gradients switched off."""
    learning = {id(p) for s in steps(run) for p in held(s) if p.trainable is not False}
    for event, found in losses_of(run):
        if not any(t.node.grad for t in found):
            continue
        for term in found:
            behind = list(ancestors(term.node)) if not term.node.grad else []
            if not behind or any(unknown(n) or n.op in ("detach", "data") for n in behind):
                continue
            inside = {id(n) for n in behind}
            made = [e for e in run.tape if e.name == "forward" and is_module(e.subject) and e.serial < event.serial
                    and e.turns == event.turns and any(id(p) in inside for p in parts(e.result))]  # fmt: skip
            weights = [(e, [id(p) in learning for p in run.parameters(e.subject)[0]]) for e in made]
            off = [e for e, learns in weights if not e.grad_mode and any(learns)]
            on = [e for e, learns in weights if e.grad_mode and learns and not any(learns)]
            if off and on and off[0].place is not None:
                text = "gradients are off for the network that learns, and on for its copy: this term trains nothing"
                places = (on[0].place, event.place)
                yield Answer(off[0].place, text, tuple(p for p in places if p is not None))
                return


def hard_term(run: Rehearsing) -> Iterator[Answer]:
    """A summand of the loss that was computed from a network with gradients, and lost them all to a comparison or a
    rounding: it changes the number, and trains nothing."""
    for event, found in losses_of(run):
        if not any(t.node.grad for t in found):
            continue
        for term in found:
            if term.node.grad or not term.weight or not term.sure or event.place is None:
                continue
            beside = (t for t in found if t.node.grad and abs(t.weight) == abs(term.weight))
            if any(set(map(id, t.reductions)) & set(map(id, term.reductions)) for t in beside):
                continue  # a count within a quantity that has a slope all the same (steps taken and what remains)
            behind = list(ancestors(term.node))
            hard = [n for n in behind if n.op in HARD and any(isinstance(i, Node) and i.grad for i in n.inputs)]
            if not hard or any(unknown(n) or n.op in CUT for n in behind) or _estimates(behind, hard):
                continue
            place = hard[-1].place
            if place is not None:
                text = "no gradient passes this operation, and a term of the loss hangs on nothing else"
                yield Answer(place, text, (event.place,))
                return


def rounded(run: Rehearsing) -> Iterator[Answer]:
    """A value that hangs on what is trained is rounded, and goes on into the loss without the slope of anything.

    Not meant: straight-through estimates (``x + (x.round() - x).detach()``), indices, and what is only shown."""
    used = {id(n) for n in trained(run)}
    for node in run.nodes:
        first = node.inputs[0] if node.inputs else None
        if node.op not in ("round", "round_") or node.place is None or not isinstance(first, Node) or not first.grad:
            continue
        if node.grad and id(node) not in used:
            continue
        following = [u for u in users(run).get(id(node), ()) if id(u) in used]
        learned = any(n.op == "param" for n in near(first, 60))
        scales = [u for u in following if u.op in ("mul", "matmul", "bmm", "linear", "einsum")]
        if scales and learned and len(following) == len(users(run).get(id(node), ())):
            text = "no gradient passes this rounding, and the loss goes on from it"
            yield Answer(node.place, text, tuple(p for p in (scales[0].place,) if p is not None))
            return


def _estimates(behind: list[Node], hard: list[Node]) -> bool:
    """True where the term has another way to the network that a backward could have gone."""
    inside = {id(m) for n in hard for m in ancestors(n)}
    return any(n.grad and id(n) not in inside for n in behind)


HARD = frozenset(
    "lt le gt ge eq ne compare round sign floor ceil argmax argmin heaviside long int bool one_hot".split()
)
CUT = frozenset("detach detach_ data item tolist numpy".split())
"""Values that were taken out of the graph by name: that is meant."""


def left_frozen(run: Rehearsing) -> Iterator[Answer]:
    """What is frozen for the step of another network in one turn, and is still so when its own next step comes."""
    for step in steps(run):
        if not step.turns or not step.turns[-1].generic:
            continue
        before = [e for e in run.tape if e.name == "backward" and e.serial < step.serial]
        if not before or before[-1].turns[-1:] != step.turns[-1:]:
            continue
        backward = before[-1]
        mine = held(step)
        flags = [_last(p, backward.serial) for p in mine]
        off = [f for f in flags if f is not None and f.args[:1] == (False,) and f.turns]
        begun = [e for e in before if e.turns and e.turns[-1].node is step.turns[-1].node and e.turns[-1].index == 0]
        learned = {id(p) for e in begun for p in e.state.get("reached", ())}
        at = backward.place
        if at is not None and mine and len(off) == len(mine) and all(id(p) in learned for p in mine):
            place = _begin(at)
            text = "what this step trains was frozen in the turn before, and nothing sets it free again"
            yield Answer(place, text, tuple(p for p in (off[0].place, backward.place) if p is not None))
            return


def _begin(place: Place) -> Place:
    """The first statement of the function that holds a backward, where freezing is undone; else the backward."""
    node, scope = place
    body = getattr(scope.node, "body", None)
    if scope.kind != "function" or not isinstance(body, list):
        return place
    first = next((b for b in body if not (isinstance(b, ast.Expr) and isinstance(b.value, ast.Constant))), body[0])
    return (first, scope) if getattr(node, "lineno", 0) - first.lineno <= LONG else place


LONG = 20
"""Lines of a function for one step; in a longer one the beginning is no place for it."""


def _last(param: Node, serial: int) -> Event | None:
    """The last time that ``requires_grad`` of a parameter was set before this moment."""
    found = [w for w in param.writes if w.name == "requires_grad" and w.serial < serial]
    return found[-1] if found else None
