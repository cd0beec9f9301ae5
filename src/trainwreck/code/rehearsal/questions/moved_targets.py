"""Targets of a critic: do they move with it, and are they on the scale of the returns?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import ancestors, graph
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.asked_states import first_call
from trainwreck.code.rehearsal.questions.gradients import held, ids, steps
from trainwreck.code.rehearsal.questions.roles import JOINS, RAW, STRUCTURE, core, users
from trainwreck.code.rehearsal.questions.standards import standardised
from trainwreck.code.rehearsal.questions.targets import fits
from trainwreck.code.rehearsal.questions.terms import parameters_behind

ERRORS = frozenset(["sub", "mse_loss", "smooth_l1_loss", "huber_loss", "l1_loss"])
MOST = 60
"""Values that are looked at between a sum and the error that it is the target of."""


def moves_along(run: Rehearsing) -> Iterator[Answer]:
    """The value of the state that follows hangs in the graph of the network that is trained: its error is made smaller
    from both sides (Sutton and Barto, section 11.5: the target of a temporal difference is held fixed)."""
    trained = ids(p for s in steps(run) for p in held(s) if p.trainable is not False)
    for one in fits(run):
        if not one.target.grad or not one.found.value.grad or not one.output.grad:
            continue
        theirs = {id(n) for n in graph(one.found.value) if n.op == "param"}
        mine = {id(n) for n in graph(one.output) if n.op == "param"}
        if not theirs or not theirs <= mine & trained or not any(n.op in RAW for n in graph(one.found.value)):
            continue
        place = first_call(one.found.value, one.found.node.place) or one.found.node.place
        if place is not None:
            text = "a gradient flows into the target through the value of the next state: it moves with each step"
            yield Answer(place, text, tuple(p for p in (one.found.node.place, one.event.place) if p is not None))
            return


def scaled_advantage(run: Rehearsing) -> Iterator[Answer]:
    """The values are added to advantages that were brought to mean 0 and deviation 1 before: no returns come out."""
    scaled = {id(n) for n in run.nodes if n.op == "div" and _scales(run, n)}
    if not scaled:
        return
    for node in run.nodes:
        if node.op != "add" or node.grad or len(node.inputs) < 2 or node.place is None:
            continue
        first, second = (set(map(id, core(i))) for i in node.inputs[:2])
        one = next((i for i, s in ((0, first), (1, second)) if s and s <= scaled), None)
        if one is None or not _values(node.inputs[1 - one]) or not _behind(run, node.inputs[1 - one], scaled):
            continue
        if _is_target(run, node):
            text = "the values are added to advantages that were scaled before: the target of the critic is no return"
            made = next((n.place for n in core(node.inputs[one]) if n.place is not None), None)
            yield Answer(node.place, text, (made,) if made is not None else ())
            return


def _scales(run: Rehearsing, node: Node) -> bool:
    if "standardised" not in run.memo:
        made = {(id(c), id(s)) for c, s, *_ in standardised(run)}
        run.memo["standardised"] = {k for pair in made for k in pair}
    upper = node.inputs[0] if node.inputs else None
    inside = [n for i in node.inputs for n in ancestors(i, through=lambda n: n.op in STRUCTURE | {"add", "sub"})]
    return isinstance(upper, Node) and upper.op == "sub" and sum(id(n) in run.memo["standardised"] for n in inside) > 1


def _values(value: Value) -> bool:
    """True for what a network said of states, put aside."""
    return any(n.op == "param" for n in ancestors(value, through=lambda n: n.op not in ("sample", "multinomial")))


def _behind(run: Rehearsing, values: Value, scaled: set[int]) -> bool:
    """True where these values were taken off in what was scaled: advantages."""
    mine = parameters_behind(values).keys()
    made = [n for n in run.nodes if id(n) in scaled]
    return bool(mine) and any(mine <= parameters_behind(n).keys() for n in made)


def _is_target(run: Rehearsing, node: Node) -> bool:
    """True where an output that is trained is compared with it."""
    queue, seen = [node], {id(node)}
    while queue and len(seen) < MOST:
        at = queue.pop()
        for user in users(run).get(id(at), ()):
            if user.op in ERRORS and user.grad:
                return True
            if id(user) not in seen and (user.op in STRUCTURE or user.op in JOINS or user.op == "batch"):
                seen.add(id(user))
                queue.append(user)
    return False


__all__ = ["moves_along", "scaled_advantage"]
