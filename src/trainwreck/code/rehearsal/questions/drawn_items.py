"""Ranking losses over items that were chosen and items that were drawn: which of the two is pushed up?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import backwards
from trainwreck.code.rehearsal.questions.terms import terms

RISES = frozenset(["logsigmoid", "softplus"])
"""What rises with its argument: a loss that adds it pushes the argument down."""
DRAWS = frozenset(["randint", "multinomial", "integers", "choice", "randint_like"])
CASTS = frozenset(["long", "to", "tensor", "from_numpy", "as_tensor", "view", "reshape", "unsqueeze", "astype", "int"])


def drawn_pushed_up(run: Rehearsing) -> Iterator[Answer]:
    """``-logsigmoid(drawn - chosen)``: the items that were drawn at random come to stand above the chosen ones."""
    told: set[int] = set()
    for event in backwards(run):
        for term in terms(event.subject):
            if term.node.op not in RISES or not term.weight or not term.node.inputs:
                continue
            margin = term.node.inputs[0]
            down = term.weight > 0
            if isinstance(margin, Node) and margin.op == "neg":
                margin, down = margin.inputs[0], not down
            if not isinstance(margin, Node) or margin.op != "sub" or len(margin.inputs) < 2 or margin.place is None:
                continue
            drawn = [_drawn(side) for side in margin.inputs[:2]]
            if drawn[0] == drawn[1] or id(margin.place[0]) in told:
                continue
            if drawn[0] is not down:
                told.add(id(margin.place[0]))
                text = "items that were drawn at random are pushed above those of the data"
                yield Answer(margin.place, text, (event.place,) if event.place is not None else ())


def _drawn(side: Value) -> bool:
    """True where an embedding is looked up for numbers that are drawn as they are, not for rows of the data."""
    return any(n.op == "embedding" and n.inputs and _draw(n.inputs[0]) for n in ancestors(side))


def _draw(value: Value) -> bool:
    for _ in range(6):
        if not isinstance(value, Node):
            return False
        if value.op in DRAWS:
            return True
        if value.op not in CASTS or not value.inputs:
            return False
        value = value.inputs[0]
    return False


__all__ = ["drawn_pushed_up"]
