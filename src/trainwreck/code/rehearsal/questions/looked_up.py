"""Tables of embeddings: do the numbers that are looked up in them have a row each?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Place
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.classes import shift, span


def beyond_the_table(run: Rehearsing) -> Iterator[Answer]:
    """Numbers that reach the number of rows, or lie below zero, as far as the program draws or counts them itself."""
    for node in run.nodes:
        ids = node.inputs[0] if node.op == "embedding" and node.inputs else None
        table = next((i for i in node.inputs[1:] if isinstance(i, Node) and i.op == "param"), None)
        if not isinstance(ids, Node) or table is None or table.shape.open or len(table.shape.dims) != 2:
            continue
        rows, reach = table.shape.dims[0], span(ids)
        if not isinstance(rows, int) or reach is None or (reach[0] >= 0 and reach[1] < rows):
            continue
        place = shift(ids) or _place(run, node)
        if place is not None:
            text = f"numbers from {reach[0]} to {reach[1]} are looked up in a table of {rows} rows (0 to {rows - 1})"
            yield Answer(place, text, (node.place,) if node.place is not None and node.place != place else ())
            return


def _place(run: Rehearsing, node: Node) -> Place | None:
    """Where the table is made; where other numbers, that have rows, are looked up in it too, this look-up."""
    others = [n for n in run.nodes if n.op == "embedding" and n.owner is node.owner and n.owner is not None]
    apart = {id(n.place[0]) for n in others if n.place is not None}
    if node.owner is None or node.owner.place is None or len(apart) > 1:
        return node.place
    return node.owner.place


__all__ = ["beyond_the_table"]
