"""Terms that keep the embeddings of different samples apart: how far they spread over the batch, and which way."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.adversarial import pulls
from trainwreck.code.rehearsal.questions.axes import along
from trainwreck.code.rehearsal.questions.roles import STRUCTURE
from trainwreck.code.rehearsal.questions.terms import Term, losses_of
from trainwreck.code.rehearsal.questions.views import attraction, embeddings

SPREADS = frozenset(["std", "var"])
HINGES = frozenset(["relu", "clamp", "clamp_min", "softplus", "maximum", "hinge"])


def _hinges(run: Rehearsing) -> Iterator[tuple[Term, Node, int]]:
    """Beside a term that pulls two views together: hinges on the spread of one, and which way each pulls it."""
    for _, found in losses_of(run):
        pairs = [pair for t in found if (pair := attraction(t)) is not None]
        pulled = {id(e) for pair in pairs for side in pair for e in embeddings(side)}
        for term in found if pulled else ():
            if term.node.op not in HINGES or not term.sign:
                continue
            for direction, leaf in pulls(term.node, term.sign):
                spread = _spread(leaf)
                if spread is not None and any(id(e) in pulled for e in embeddings(spread.inputs[0])):
                    yield term, spread, direction


def _spread(value: Value) -> Node | None:
    """The deviation or variance that a value is the root of, or raised by a small number."""
    for _ in range(8):
        if not isinstance(value, Node) or value.op in SPREADS:
            return value if isinstance(value, Node) else None
        grows = value.op in ("sqrt", "add", "pow", "clamp", "clamp_min", "part") or value.op in STRUCTURE
        inner = [i for i in value.inputs[:2] if isinstance(i, Node)]
        if not grows or len(inner) != 1:
            return None
        value = inner[0]
    return None


def narrowed(run: Rehearsing) -> Iterator[Answer]:
    """A hinge that punishes a large spread, beside a term that pulls the views together: all samples become one."""
    for term, spread, direction in _hinges(run):
        if direction > 0 and term.node.place is not None:
            text = "this hinge punishes a large spread of the embeddings; only a small one is to be kept from"
            yield Answer(term.node.place, text, (spread.place,) if spread.place is not None else ())
            return


def within_samples(run: Rehearsing) -> Iterator[Answer]:
    """A hinge on the spread of the features of each sample, where that of each feature over the batch is meant."""
    for term, spread, direction in _hinges(run):
        inner = spread.inputs[0]
        if direction >= 0 or not isinstance(inner, Node) or spread.place is None or inner.shape.open:
            continue
        made = embeddings(inner)
        rows = len(inner.shape.dims) == 2 and len(made) == 1 and made[0].op in ("linear", "batch_norm", "layer_norm")
        if rows and along(spread) in (1, -1):
            text = "the spread is taken over the features of each sample: it keeps no two samples apart"
            yield Answer(spread.place, text, (term.node.place,) if term.node.place is not None else ())
            return
