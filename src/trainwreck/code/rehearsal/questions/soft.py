"""Policies that are paid for staying random (soft actor-critic): the sign of the entropy wherever it counts."""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Items, Node, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import RAW, STRUCTURE, backwards
from trainwreck.code.rehearsal.questions.targets import bootstraps, fits
from trainwreck.code.rehearsal.questions.terms import number_of, parameters_behind
from trainwreck.core.row import Row

PASSES = STRUCTURE | frozenset(["sum", "mean", "either", "clamp", "clip", "part"])
PROBABILITIES = frozenset(["softmax", "exp", "sigmoid"])
WIDEST = math.log(2)
"""The most entropy of an action between -1 and 1, in one dimension: that of equally likely ones."""


class Piece(Row):
    """A summand: how often it counts (the sign is what matters), what it is, and where its sign was given."""

    weight: float
    node: Value
    place: Place | None


def pieces(value: Value) -> list[Piece]:
    """The summands of a value, also within averages, and within products of which a probability, a number or a lone
    parameter is the other side."""
    found: list[Piece] = []
    _apart(value, 1.0, None, found, 0)
    return found


def _apart(value: Value, weight: float, place: Place | None, found: list[Piece], depth: int) -> None:
    if not isinstance(value, Node) or depth > 40 or len(found) > 40:
        if isinstance(value, int | float):
            found.append(Piece(weight * value, value, place))
        return
    inputs = value.inputs
    if value.op == "neg" and inputs:
        _apart(inputs[0], -weight, value.place, found, depth + 1)
    elif value.op in ("add", "sub") and len(inputs) > 1:
        if likelihood(value):
            found.append(Piece(weight * likelihood(value), value, place or value.place))
            return
        _apart(inputs[0], weight, place, found, depth + 1)
        _apart(inputs[1], -weight if value.op == "sub" else weight, value.place, found, depth + 1)
    elif value.op == "mul" and len(inputs) > 1:
        _product(value, weight, place, found, depth)
    elif value.op == "div" and len(inputs) > 1 and (by := number_of(inputs[1])):
        _apart(inputs[0], weight / by, place, found, depth + 1)
    elif value.op in PASSES and inputs and isinstance(inputs[0], Node) and value.full[:9] != "builtins.":
        if value.op != "either" or len(inputs) == 1:
            _apart(inputs[0], weight, place, found, depth + 1)
    elif likelihood(value):
        found.append(Piece(weight * likelihood(value), value, place or value.place))
    else:
        found.append(Piece(weight, value, place or value.place))


def _product(value: Node, weight: float, place: Place | None, found: list[Piece], depth: int) -> None:
    for factor, rest in (value.inputs[:2], value.inputs[1::-1]):
        known = number_of(factor)
        if known is not None or _strength(factor) or _probability(factor):
            sign = known if known is not None else -1.0 if _negated(factor) else 1.0
            at = value.place if sign < 0 or place is None else place
            _apart(rest, weight * sign, at, found, depth + 1)
            return
    found.append(Piece(weight, value, place or value.place))


def _strength(value: Value) -> bool:
    """True for a temperature: a number that is learned, by itself or as an exponential, also outside of the graph."""
    at = value
    for _ in range(8):
        if not isinstance(at, Node):
            return False
        if at.op == "param":
            return all(d == 1 for d in at.shape.dims) and (not at.shape.open or at.owner is None)
        if at.op not in STRUCTURE | {"exp", "item", "float", "neg", "softplus", "clamp", "either"} or not at.inputs:
            return False
        at = at.inputs[0]
    return False


def _negated(value: Value) -> bool:
    turned = False
    while isinstance(value, Node) and value.op in STRUCTURE | {"neg", "float", "item"} and value.inputs:
        turned = turned != (value.op == "neg")
        value = value.inputs[0]
    return turned


def _probability(value: Value) -> bool:
    at = value
    while isinstance(at, Node) and at.op in STRUCTURE and at.inputs:
        at = at.inputs[0]
    return isinstance(at, Node) and at.op in PROBABILITIES and any(n.op in RAW for n in near(at, 12))


def likelihood(value: Value, depth: int = 0) -> int:
    """+1 for the log-probability of an action, also when summed or corrected for squashing; -1 for its negative and
    for an entropy; 0 for anything else."""
    if not isinstance(value, Node) or depth > 14 or not value.inputs:
        return 0
    first = value.inputs[0]
    if value.op in ("log_prob", "log_softmax"):
        return 1
    if value.op == "entropy":
        return -1
    if value.op == "log" and _normalised(first):
        return 1 if any(n.op in RAW for n in near(first, 20)) else 0
    if value.op == "neg":
        return -likelihood(first, depth + 1)
    if value.op in PASSES and isinstance(first, Node):
        return likelihood(first, depth + 1)
    if value.op in ("add", "sub") and len(value.inputs) > 1:
        second = value.inputs[1]
        kind = likelihood(first, depth + 1)
        return kind if kind and _correction(second) else 0
    if value.op == "mul" and len(value.inputs) > 1:
        for factor, rest in (value.inputs[:2], value.inputs[1::-1]):
            if _probability(factor):
                return likelihood(rest, depth + 1)
    return 0


def _normalised(value: Value) -> bool:
    """True for what may be a probability: an exponential by itself is a width or a rate."""
    found = [n.op for n in near(value, 6)]
    return any(op in PROBABILITIES for op in found) and (found[0] != "exp" or "div" in found)


def _correction(value: Value) -> bool:
    """The logarithm of what squashing an action does to its density."""
    if not isinstance(value, Node):
        return False
    found = near(value, 30)
    logarithms = any(n.op in ("log", "log1p", "softplus", "logsigmoid") for n in found)
    return logarithms and not any(n.op in ("log_prob", "log_softmax") for n in near(value, 6))


# ---------------------------------------------------------------------- the target and the actor
def entropy_punished(run: Rehearsing) -> Iterator[Answer]:
    """The log-probability of the next action is added to its value; or the actor raises what it should lower."""
    for one in bootstraps(run):
        found = pieces(one.value)
        values = [p for p in found if isinstance(p.node, Node) and not likelihood(p.node) and _of_layers(p.node)]
        policy = [p for p in found if isinstance(p.node, Node) and likelihood(p.node)]
        if values and all(p.weight > 0 for p in values) and len(policy) == 1 and policy[0].weight > 0:
            place = policy[0].place
            if place is not None:
                text = "the log-probability is added to the value of what follows: randomness is punished, not paid"
                yield Answer(place, text, tuple(p for p in (one.node.place,) if p is not None))
                return
    for event, worth, own in _actors(run):
        place = own.place
        if all(p.weight < 0 for p in worth) and own.weight < 0 and place is not None:
            text = "the actor lowers its own entropy here: the log-probability has to be added to what is minimised"
            yield Answer(place, text, tuple(p for p in (event.place,) if p is not None))
            return


def value_minimised(run: Rehearsing) -> Iterator[Answer]:
    """The actor lowers the value of what it does, and raises its entropy: the whole has the wrong sign."""
    for event, values, policy in _actors(run):
        place = values[0].place
        if all(p.weight > 0 for p in values) and policy.weight < 0 and place is not None:
            text = "the critic's value of what the actor does is minimised here, and has to be maximised"
            yield Answer(place, text, tuple(p for p in (event.place,) if p is not None))
            return


def _actors(run: Rehearsing) -> Iterator[tuple[Event, list[Piece], Piece]]:
    """Losses of a policy that weigh the values of a critic against one log-probability."""
    critics = {key for one in fits(run) for key in parameters_behind(one.output, through_grad=True)}
    for event in backwards(run) if critics else ():
        found = [p for p in pieces(event.subject) if isinstance(p.node, Node)]
        values = [p for p in found if isinstance(p.node, Node) and _only(p.node, critics)]
        policy = [p for p in found if isinstance(p.node, Node) and p.node.grad and likelihood(p.node)]
        policy = [p for p in policy if not parameters_behind(p.node, through_grad=True).keys() & critics]
        if values and len(policy) == 1:
            yield event, values, policy[0]


def _of_layers(node: Node) -> bool:
    return any(n.op in RAW for n in near(node, 60))


def _only(node: Node, critics: set[int]) -> bool:
    """True for the output of a critic, whatever it is asked about."""
    last = next((n for n in near(node, 40) if n.op in RAW), None)
    return last is not None and any(id(p) in critics for p in last.inputs if isinstance(p, Node)) and (
        not likelihood(node)
    )  # fmt: skip


# ---------------------------------------------------------------------- the temperature
def temperature_turned(run: Rehearsing) -> Iterator[Answer]:
    """The temperature rises where the policy is random enough, or aims at an entropy that no policy has."""
    for event in backwards(run):
        loss = event.subject
        if not isinstance(loss, Node):
            continue
        behind = parameters_behind(loss, through_grad=True)
        if len(behind) != 1 or not _strength(next(iter(behind.values()))):
            continue
        found = pieces(loss)
        policy = [p for p in found if isinstance(p.node, Node) and likelihood(p.node)]
        if len(policy) != 1 or policy[0].place is None:
            continue
        proof = tuple(p for p in (event.place,) if p is not None)
        if policy[0].weight > 0:
            text = "the temperature rises where the policy is random enough already, and falls where it is not"
            yield Answer(_outer(loss) or policy[0].place, text, proof)
            return
        wanted = [p.weight / -policy[0].weight for p in found if isinstance(p.node, int | float)]
        most = _most(policy[0].node)
        if len(wanted) == 1 and most is not None and -wanted[0] > most:
            text = f"the temperature is to hold an entropy of {-wanted[0]:g}, and {most:.2g} is the most there can be"
            yield Answer(policy[0].place, text, proof)
            return


def _outer(loss: Node) -> Place | None:
    """The product with the temperature."""
    return next((n.place for n in ancestors(loss) if n.op == "mul" and n.grad and n.place is not None), None)


def _most(value: Value) -> float | None:
    """The most entropy of actions that are squashed to -1..1; None for others."""
    drawn = next((n for n in ancestors(value) if n.op == "log_prob"), None)
    squashed = any(n.op in ("tanh", "softplus", "log", "log1p") for n in near(value, 8))
    axes = drawn.shape.dims if drawn is not None and not drawn.shape.open else ()
    count = axes[-1] if axes else None
    return WIDEST * count if squashed and isinstance(count, int) and len(axes) > 1 else None


def squashed_wrongly(run: Rehearsing) -> Iterator[Answer]:
    """The correction of a squashed action's density is added where it has to be taken off."""
    for node in run.nodes:
        if node.op not in ("add", "sub") or len(node.inputs) < 2 or node.place is None:
            continue
        density, stretch = node.inputs[:2]
        wrong = "add" if _slope(stretch) > 0 else "sub" if _slope(stretch) < 0 else ""
        if node.op == wrong and likelihood(density) > 0 and any(n.op == "log_prob" for n in near(density, 4)):
            yield Answer(node.place, "log(1 - tanh^2) is taken off a log-probability; here it is added")
            return


def _slope(value: Value, depth: int = 0) -> int:
    """+1 for ``log(1 - tanh(u) ** 2)``, summed or not, -1 for its negative, 0 for anything else."""
    if not isinstance(value, Node) or not value.inputs or depth > 8:
        return 0
    first = value.inputs[0]
    if value.op == "neg":
        return -_slope(first, depth + 1)
    if value.op in PASSES and not isinstance(first, Items):
        return _slope(first, depth + 1)
    if value.op not in ("log", "log1p") or not isinstance(first, Node):
        return 0
    inner = [n for n in near(first, 6) if n.op == "sub" and number_of(n.inputs[0]) == 1.0]
    squares = [n for i in inner for m in parts(i.inputs[1]) for n in near(m, 3) if n.op in ("pow", "square", "mul")]
    return 1 if any(m.op == "tanh" for n in squares for m in near(n, 5)) else 0


__all__ = ["entropy_punished", "squashed_wrongly", "temperature_turned", "value_minimised"]
