"""Actions that are squashed into a range: the density of what is played, and the temperature of the entropy."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import STRUCTURE, backwards, core, trained, users
from trainwreck.code.rehearsal.questions.soft import likelihood, pieces
from trainwreck.code.rehearsal.questions.terms import number_of

WHOLE = STRUCTURE | {"sum", "mean"}


def _density(value: Value) -> Node | None:
    """The ``log_prob`` that a log-probability consists of, with nothing added or taken off."""
    for _ in range(12):
        if not isinstance(value, Node):
            return None
        if value.op == "log_prob":
            return value
        if value.op not in WHOLE or not value.inputs:
            return None
        value = value.inputs[0]
    return None


def _draw(density: Node) -> tuple[Node, Node | None] | None:
    """The draw from the same distribution whose density is asked for, and the squashing between them."""
    squashed: Node | None = None
    at: Value = density.inputs[0] if density.inputs else None
    for _ in range(8):
        made = core(at)
        if len(made) != 1:
            return None
        if made[0].op in ("rsample", "sample"):
            same = made[0].owner is density.owner and density.owner is not None
            return (
                (made[0], squashed) if same and density.owner is not None and density.owner.name == "Normal" else None
            )
        if made[0].op not in ("tanh", "sigmoid") or not made[0].inputs:
            return None
        squashed, at = made[0], made[0].inputs[0]
    return None


def density_of_squashed(run: Rehearsing) -> Iterator[Answer]:
    """The normal distribution is asked how likely the squashed action is, which it never drew."""
    for node in trained(run):
        found = _draw(node) if node.op == "log_prob" else None
        if found is not None and found[1] is not None and node.place is not None:
            text = "the distribution is asked for the density of the squashed action: it drew the one before"
            yield Answer(node.place, text, tuple(n.place for n in (found[1],) if n.place is not None))
            return


def stretch_left_out(run: Rehearsing) -> Iterator[Answer]:
    """The squashed action is judged, and its density is that before the squashing."""
    table = users(run)
    for event in backwards(run):
        found = [p.node for p in pieces(event.subject) if isinstance(p.node, Node)]
        policy = [n for n in found if n.grad and likelihood(n)]
        density = _density(policy[0]) if len(policy) == 1 else None
        drawn = _draw(density) if density is not None else None
        if density is None or drawn is None or drawn[1] is not None or drawn[0].op != "rsample":
            continue
        inside = {id(n) for n in found for n in ancestors(n) if n is not density}
        squashes = [u for u in _moved(table, drawn[0]) if u.op == "tanh" and id(u) in inside]
        plain = [n for n in found if n is not policy[0] and _reached_unsquashed(n, drawn[0])]
        if squashes and not plain and density.place is not None:
            text = "the action is squashed by tanh and its density is that before: log(1 - tanh^2) is not taken off"
            yield Answer(density.place, text, tuple(n.place for n in squashes[:1] if n.place is not None))
            return


def _moved(table: dict[int, list[Node]], node: Node) -> Iterator[Node]:
    todo = [node]
    for at in todo[:40]:
        for user in table.get(id(at), ()):
            yield user
            todo += [user] if user.op in STRUCTURE else []


def _reached_unsquashed(value: Node, drawn: Node) -> bool:
    return any(n is drawn for n in ancestors(value, through=lambda n: n.op != "tanh"))


def logarithm_for_temperature(run: Rehearsing) -> Iterator[Answer]:
    """The learned logarithm of the temperature, which starts below zero, weighs the log-probability as it is."""
    for event in backwards(run):
        for node in ancestors(event.subject, through=lambda n: n.op != "param"):
            if node.op != "mul" or len(node.inputs) < 2 or node.place is None:
                continue
            for factor, rest in (node.inputs[:2], node.inputs[1::-1]):
                start = _start(factor)
                if start is None or start >= 0 or not isinstance(factor, Node) or not likelihood(rest):
                    continue
                beside = [p.node for p in pieces(event.subject) if isinstance(p.node, Node) and not likelihood(p.node)]
                if factor.grad or not any(n.grad for n in beside):
                    continue  # the loss of the temperature itself
                text = f"the temperature is its logarithm here, {start:.2g} at the start: exp() is missing"
                place = factor.place if factor.place is not None else node.place
                yield Answer(place, text, (node.place,))
                return


def _start(value: Value) -> float | None:
    """What a learned number starts at, where it is used as it is."""
    for _ in range(8):
        if not isinstance(value, Node):
            return None
        if value.op == "param":
            made = next(iter(parts(value.inputs[:1])), None)
            if made is not None and made.op == "full" and len(made.inputs) > 1:
                return number_of(made.inputs[1])
            return number_of(made if made is not None else next(iter(value.inputs), None))
        if value.op not in STRUCTURE or not value.inputs:
            return None
        value = value.inputs[0]
    return None
