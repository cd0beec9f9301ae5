"""Ranking losses over items that were chosen and items that were drawn: which of the two is pushed up?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import backwards, bounds, given, trained
from trainwreck.code.rehearsal.questions.terms import terms

RISES = frozenset(["logsigmoid", "softplus"])
"""What rises with its argument: a loss that adds it pushes the argument down."""
DRAWS = frozenset(["randint", "multinomial", "integers", "choice", "randint_like"])
CASTS = frozenset(
    """long to tensor from_numpy as_tensor view reshape unsqueeze astype int expand repeat flatten setitem""".split()
)
"""Where some of the drawn numbers are drawn again (``setitem``), they are what was drawn before."""
PAIRS = frozenset(
    """mul sum bmm matmul mm einsum baddbmm squeeze unsqueeze view reshape transpose permute expand getitem t T mT
    contiguous normalize cosine_similarity flatten div""".split()
)
"""What a score is made of that is the product of looked up embeddings."""


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
                falls = term.node.op == "logsigmoid" and term.weight > 0 and term.node.place is not None
                place = term.node.place if falls and term.node.place is not None else margin.place
                yield Answer(place, text, (event.place,) if event.place is not None else ())


def order_turned(run: Rehearsing) -> Iterator[Answer]:
    """``margin_ranking_loss(chosen, drawn, -1)``: the second of the two is to stand above the first."""
    for loss in trained(run):
        if loss.op != "margin_ranking_loss" or loss.place is None:
            continue
        first, second, target = (given(loss, name, n) for n, name in enumerate(("input1", "input2", "target")))
        sign = bounds(target)
        if _drawn(first) == _drawn(second) or not (sign.low == sign.high and abs(sign.low) == 1):
            continue
        if _drawn(first) is (sign.low > 0):
            yield Answer(loss.place, "items that were drawn at random are pushed above those of the data")
            return


def single_scores(run: Rehearsing) -> Iterator[Answer]:
    """Negative sampling: scores of pairs from the data and scores of drawn ones, each in a log-sigmoid of its own. The
    first ones are to rise, the drawn ones to fall."""
    for event in backwards(run):
        pushed = [(t, *_pushed(t.node, t.weight)) for t in terms(event.subject) if t.node.op in RISES and t.weight]
        looked = [(t, score, down) for t, score, down in pushed if score is not None and _looked_up(score)]
        drawn = [(t, down) for t, score, down in looked if _drawn(score)]
        given = [(t, down) for t, score, down in looked if not _drawn(score)]
        if not drawn or not given or len(looked) != len(pushed):
            continue
        wrong = [t for t, down in given if down] or [t for t, down in drawn if not down]
        for term in wrong[:1]:
            if term.node.place is not None:
                text = "pairs of the data are pushed apart, or those that were drawn at random together"
                yield Answer(term.node.place, text, (event.place,) if event.place is not None else ())


def _pushed(node: Node, weight: float) -> tuple[Node | None, bool]:
    """The score in a log-sigmoid, and whether the loss pushes it down."""
    margin, down = (node.inputs[0] if node.inputs else None), weight > 0
    while isinstance(margin, Node) and margin.op == "neg" and margin.inputs:
        margin, down = margin.inputs[0], not down
    return (margin if isinstance(margin, Node) else None), down


def _looked_up(score: Node) -> bool:
    """True for a product of two rows of tables at least, and of nothing else."""
    found = list(ancestors(score, through=lambda n: n.op in PAIRS))
    rows = [n for n in found if n.op == "embedding"]
    return len(rows) > 1 and all(n.op in PAIRS or n.op == "embedding" or not n.grad for n in found)


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


__all__ = ["drawn_pushed_up", "order_turned", "single_scores"]
