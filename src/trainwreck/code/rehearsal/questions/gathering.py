"""Embeddings gathered over processes: the gathered copies hang in no graph."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items
from trainwreck.code.rehearsal.graph import parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import trained
from trainwreck.code.rehearsal.questions.views import PRODUCTS, embeddings


def without_gradient(run: Rehearsing) -> Iterator[Answer]:
    """Similarities to gathered embeddings of which not even the own ones keep their gradient."""
    gathered = [e for e in run.tape if e.full.endswith("distributed.all_gather") and e.args]
    for event in gathered:
        held = event.args[0]
        if not isinstance(held, Items) or event.place is None or any(n.grad for n in parts(held)):
            continue
        if len(event.args) < 2 or not any(n.grad for n in parts(event.args[1])):
            continue
        mine = {id(n) for n in parts(held)}
        for node in trained(run):
            if node.op not in PRODUCTS:
                continue
            if any(id(e) in mine for i in node.inputs for e in embeddings(i)):
                text = "what is gathered has no gradient, and the own part is not put back in"
                yield Answer(event.place, text, (node.place,) if node.place is not None else ())
                return
