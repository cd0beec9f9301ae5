"""Actors that are trained through a critic: the sign of its verdict, and whether it reaches the actor at all."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Node, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.asked_states import put_aside
from trainwreck.code.rehearsal.questions.gradients import held, steps
from trainwreck.code.rehearsal.questions.policy import COSTS
from trainwreck.code.rehearsal.questions.roles import STRUCTURE
from trainwreck.code.rehearsal.questions.terms import (
    Term,
    fits,
    losses_of,
    number_of,
    parameters_behind,
    squared_error,
)
from trainwreck.core.row import Row

CUTS = frozenset(["sample", "argmax", "multinomial", "round", "bernoulli", "one_hot"])
"""What gives a value without a gradient."""


TAKEN_OUT = frozenset(["item", "numpy", "tolist", "int", "float", "clip"])


class Verdict(Row):
    """A term of an actor's loss that is the output of a critic for what the actor did."""

    event: Event
    term: Term
    mine: set[int]
    """The parameters (by ``id``) that the next step moves."""


def verdicts(run: Rehearsing) -> Iterator[Verdict]:
    """Outputs of networks that learn from rewards, in losses whose step moves other networks."""
    critics = _critics(run)
    if not critics:
        return
    for event, found in losses_of(run):
        after = next((e for e in steps(run) if e.serial > event.serial and e.turns == event.turns), None)
        mine = {id(p) for p in held(after)} if after is not None else set()
        for term in found:
            live = parameters_behind(term.node, through_grad=True)
            if term.factors or not term.sign or not live or not (live.keys() & critics) or live.keys() & critics & mine:
                continue
            if squared_error(term.node) is None and term.node.op in ("min", "minimum", "linear", "max", "mean", "add"):
                yield Verdict(event, term, mine)


def _critics(run: Rehearsing, costs: bool = False) -> set[int]:
    """The parameters (by ``id``) of networks that are fitted to a reward (or only those: a cost) and what follows."""
    found: set[int] = set()
    for _, _, output, target in fits(run):
        if any(_discounted(n) and (not costs or _costly(n)) for n in ancestors(target)):
            found |= parameters_behind(output, through_grad=True).keys()
    return found


def _discounted(node: Node) -> bool:
    """``reward + 0.97 * value``, with no network behind the reward."""
    if node.op != "add" or len(node.inputs) < 2:
        return False
    for reward, rest in (node.inputs[:2], node.inputs[1::-1]):
        if not isinstance(reward, Node) or not isinstance(rest, Node) or rest.op != "mul":
            continue
        numbers = [f for n in ancestors(rest, through=lambda n: n.op == "mul") for i in n.inputs
                   if (f := number_of(i)) is not None]  # fmt: skip
        if any(0.5 < f <= 1 for f in numbers) and not _computed(reward) and parameters_behind(rest):
            return True
    return False


def _costly(target: Node) -> bool:
    """True where less is better: it is called a cost, or the larger of two estimates is the careful one."""
    written = target.place[0] if target.place is not None else None
    sides = [written.left, written.right] if isinstance(written, ast.BinOp) else []
    plain = [ast.unparse(s) for s in sides if not isinstance(s, ast.BinOp)]
    names = [n.name for i in target.inputs[:2] for n in near(i, 3) if n.name]
    if any(COSTS.search(word) for word in (*plain, *names)) or any(_distance(i) for i in target.inputs[:2]):
        return True
    twins = [n for n in near(target, 12) if n.op in ("max", "maximum") and len(n.inputs) == 2]
    return any(all(isinstance(i, Node) and parameters_behind(i) for i in n.inputs) for n in twins)


def _distance(value: Value, depth: int = 0) -> bool:
    """True for a sum of squares and absolute values alone: how far something is from where it should be."""
    if not isinstance(value, Node) or depth > 20 or not value.inputs:
        return False
    if value.op in ("square", "abs", "norm") or (value.op == "pow" and value.inputs[1:2] in ((2,), (2.0,))):
        return True
    sides = value.inputs[:2]
    if value.op == "add":
        return all(_distance(s, depth + 1) for s in sides)
    if value.op in ("mul", "div"):
        numbers = [n for s in sides if (n := number_of(s)) is not None]
        return len(numbers) == 1 and numbers[0] > 0 and any(_distance(s, depth + 1) for s in sides)
    if value.op in STRUCTURE | {"tensor", "as_tensor", "stack", "either", "element", "item", "float", "part", "array"}:
        inner = list(parts(value.inputs if value.op == "either" else value.inputs[0]))
        return bool(inner) and all(_distance(n, depth + 1) for n in inner)
    return False


def _computed(reward: Node) -> bool:
    """True where a network gives the value itself; that actions which led to it came from one is no matter."""
    return any(n.op == "param" for n in ancestors(reward, through=lambda n: n.op not in CUTS | TAKEN_OUT | {"rsample"}))


def minimised(run: Rehearsing) -> Iterator[Answer]:
    """The actor is trained towards what its critic values least."""
    costs = _critics(run, costs=True)
    for verdict in verdicts(run):
        live = parameters_behind(verdict.term.node, through_grad=True).keys()
        if verdict.term.sign > 0 and live & verdict.mine and not live & costs:
            text = "the critic's value of the actor's own action is part of what is minimised: it has to be taken off"
            place = _sum(verdict.term)
            if place is not None:
                yield Answer(place, text, (verdict.event.place,) if verdict.event.place is not None else ())
                return


def _sum(term: Term) -> Place | None:
    """The sum that gives the term its sign."""
    signs = [n for n in term.path if n.op in ("add", "sub", "neg", "mul") and n.place is not None]
    return signs[-1].place if signs else term.path[-1].place if term.path else term.node.place


def cut_off(run: Rehearsing) -> Iterator[Answer]:
    """The actor's action is detached before the critic judges it: the verdict teaches the actor nothing."""
    for verdict in verdicts(run):
        if parameters_behind(verdict.term.node, through_grad=True).keys() & verdict.mine:
            continue
        for node in ancestors(verdict.term.node):
            if node.op not in ("detach", "detach_") or node.place is None:
                continue
            if parameters_behind(node).keys() & verdict.mine:
                text = "this takes the action out of the graph: the critic's verdict does not reach the actor"
                yield Answer(node.place, text, (verdict.event.place,) if verdict.event.place is not None else ())
                return


def unreached(run: Rehearsing) -> Iterator[Answer]:
    """A sample without a gradient between the actor and the critic: the verdict teaches the actor nothing."""
    for verdict in verdicts(run):
        if parameters_behind(verdict.term.node, through_grad=True).keys() & verdict.mine:
            continue
        for node in ancestors(verdict.term.node):
            if node.op in CUTS and node.place is not None and parameters_behind(node).keys() & verdict.mine:
                text = "this cuts the gradient: the critic's verdict does not reach the parameters that are trained"
                yield Answer(node.place, text, (verdict.event.place,) if verdict.event.place is not None else ())
                return


def judges_another(run: Rehearsing) -> Iterator[Answer]:
    """The critic is asked about an action that was put aside, in the loss that is to teach the actor."""
    for verdict in verdicts(run):
        if parameters_behind(verdict.term.node, through_grad=True).keys() & verdict.mine:
            continue
        beside = [n for e, found in losses_of(run) if e is verdict.event for t in found for n in [t.node]]
        taught = any(parameters_behind(n, through_grad=True).keys() & verdict.mine for n in beside)
        asked = ancestors(verdict.term.node, through=lambda n: not put_aside(n))
        nobody = not any(id(n) in verdict.mine for n in asked)
        if taught and nobody and _moves_nothing(run, verdict) and verdict.term.node.place is not None:
            text = "the critic judges another action than the actor's own here: its verdict teaches the actor nothing"
            place = verdict.term.node.place
            yield Answer(place, text, (verdict.event.place,) if verdict.event.place is not None else ())
            return


def _moves_nothing(run: Rehearsing, verdict: Verdict) -> bool:
    """True where no step before the next backward moves anything that the term hangs on."""
    live = parameters_behind(verdict.term.node, through_grad=True).keys()
    later = [e.serial for e in run.tape if e.name == "backward" and e.serial > verdict.event.serial]
    between = [s for s in steps(run) if verdict.event.serial < s.serial < min(later, default=s.serial + 1)]
    return bool(between) and not any(id(p) in live for s in between for p in held(s))


__all__ = ["cut_off", "judges_another", "minimised", "unreached"]
