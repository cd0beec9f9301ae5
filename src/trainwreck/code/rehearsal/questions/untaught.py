"""Routers that choose, and learn nothing from what comes of the choice: the task's loss does not reach them."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Place
from trainwreck.code.rehearsal.graph import OPAQUE, ancestors, graph, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.cuts import DETACHES
from trainwreck.code.rehearsal.questions.gradients import steps
from trainwreck.code.rehearsal.questions.roles import STRUCTURE
from trainwreck.code.rehearsal.questions.terms import Term, losses_of
from trainwreck.core.row import Row

HARD = frozenset(["argmax", "max", "multinomial", "sample", "argsort"])
PLACED = frozenset("index_add index_add_ index_copy index_copy_ setitem scatter scatter_add index_put where".split())
"""What puts the outputs of the parts that were chosen together: where they should be weighed by the scores."""
NEAR = 40
PLAIN = frozenset("size len numel zeros ones full eye arange zeros_like ones_like full_like tensor".split())
"""What is the same whatever the data hold."""
SCORES = frozenset(["softmax", "sigmoid", "log_softmax"])
MOVES = (STRUCTURE | SCORES | {"either", "add", "sub", "div", "mul", "Categorical", "part"}) - {"detach", "detach_"}


def untaught_router(run: Rehearsing) -> Iterator[Answer]:
    """A layer's scores choose which parts of a network run, and of all terms only those that keep the choices even
    have a gradient for it.

    Not meant: scores that also weigh what was chosen, a choice that is told by a target or paid for, straight-through
    estimates (all give another term with a gradient)."""
    for found in _untaught(run):
        if found.cut is None:
            text = "this choice is all that links these scores with the task's loss, and no gradient passes it: "
            text += "only a term that keeps the choices even reaches the layer behind them"
            places = (found.choice.place, found.even.place, found.event.place)
            yield Answer(found.place, text, tuple(p for p in places if p is not None and p is not found.place))
            return


def weight_cut_off(run: Rehearsing) -> Iterator[Answer]:
    """The same where the scores do weigh what was chosen, cut off from their layer."""
    for found in _untaught(run):
        if found.cut is not None and found.cut.place is not None:
            text = "what these scores weigh teaches them nothing: they are cut off here, and only a term that keeps "
            text += "the choices even reaches the layer behind them"
            yield Answer(found.cut.place, text, tuple(p for p in (found.place, found.event.place) if p is not None))
            return


class Untaught(Row):
    """A choice by scores that the task's loss does not reach, and where what was chosen is put together."""

    choice: Node
    event: Event
    even: Node
    place: Place
    cut: Node | None
    """Where the scores are cut off on their way into that loss."""


def _untaught(run: Rehearsing) -> Iterator[Untaught]:
    if not steps(run):
        return
    for event, found in losses_of(run):
        for choice, weight in _choices(event):
            reaching = [t for t in found if any(n is weight for n in graph(_sides(t)))]
            apart = [t for t in found if t not in reaching and t.node.grad and t.weight]
            if not reaching or not apart or not all(_even(t, choice, weight) for t in reaching):
                continue
            behind = [n for t in apart for n in ancestors(t.node)]
            led = any(n is choice for n in behind)
            if led and not any(n.grad and n.op in OPAQUE for n in behind) and choice.place is not None:
                placed = [n for n in behind if n.op in PLACED and n.grad and n.place is not None]
                mine = [n.place for n in placed if any(i is choice for i in near(n.inputs[1:], NEAR))]
                place = next((p for p in mine if p is not None), choice.place)
                cuts = (n for n in behind if n.op in DETACHES and n.place is not None)
                cut = next((n for n in cuts if any(_scores(m, weight) for m in ancestors(n, through=_moves))), None)
                yield Untaught(choice, event, reaching[0].node, place, cut)


def _moves(node: Node) -> bool:
    return node.op in MOVES or node.op in HARD or node.op in DETACHES or node.op == "topk"


def _sides(term: Term) -> tuple[Node, ...]:
    return (term.node, *term.factors)


def _choices(event: Event) -> Iterator[tuple[Node, Node]]:
    """Each choice by the largest of a layer's scores, with the weights of that layer."""
    for node in ancestors(event.subject):
        first = node.inputs[0] if node.op in HARD and node.inputs else None
        if not isinstance(first, Node) or (node.op == "max" and not node.shapes):
            continue
        for inner in ancestors(first, through=lambda n: n.op in MOVES):
            weight = inner.inputs[1] if inner.op == "linear" and inner.grad and len(inner.inputs) > 1 else None
            if isinstance(weight, Node) and weight.op == "param":
                yield node, weight
                break


def _even(term: Term, choice: Node, weight: Node) -> bool:
    """True for a term of these scores and choices alone (mean scores times shares, a spread, an entropy): without any
    data beside them it asks for nothing but an even load."""
    for node in ancestors(_sides(term), through=lambda n: n is not choice and not _scores(n, weight)):
        if node is choice or _scores(node, weight) or node.op in PLAIN:
            continue
        if not any(isinstance(i, Node) for i in node.inputs) and not any(True for _ in parts(node.inputs)):
            return False
    return True


def _scores(node: Node, weight: Node) -> bool:
    return node.op == "linear" and len(node.inputs) > 1 and node.inputs[1] is weight
