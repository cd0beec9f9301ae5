"""The inputs of a batch are sorted by a key (their length), and the labels that belong to them stand as they came."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Place, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.order import COMPARES, PICKS
from trainwreck.code.rehearsal.questions.paths import meets, paths
from trainwreck.code.rehearsal.questions.roles import backwards

FAR = 6
"""Lists that were made of one another."""


def sorted_alone(run: Rehearsing) -> Iterator[Answer]:
    """``xs = sorted(xs, key=len)`` on the way of one side of a loss, whose elements were taken by the same numbers as
    what they meet: that side alone has another order. A list of pairs may be sorted, and an order may be undone."""
    placed = {id(e.subject): e.place for e in run.tape if e.name == "sort" and isinstance(e.subject, Items)}
    for event in backwards(run):
        for meeting, inside, outside in meets(event.subject):
            if meeting.op not in COMPARES and not meeting.op.endswith("_loss"):
                continue
            for here, there in ((inside, outside), (outside, inside)):
                for one in here:
                    found = _arranged(one, placed)
                    if found is None or not any(_apart(run, found[1], other, placed) for other in there):
                        continue
                    text = "this list is put in another order, and what belongs to its elements stays in the old one"
                    proof = tuple(p for p in (found[1].place, meeting.place) if p is not None)
                    yield Answer(found[0], text, proof)
                    return


def _arranged(value: Node, placed: dict[int, Place | None]) -> tuple[Place, Node] | None:
    """Where the elements were sorted that a value is made of, and what put them together; None where something picks
    rows afterwards (it may put them back)."""
    behind = list(ancestors(value))
    for node in behind:
        place = _sorted(node.inputs[0], placed) if node.inputs else None
        if place is None:
            continue
        picked = (n for n in behind if n.serial > node.serial and n.op in PICKS and len(n.inputs) > 1)
        if any(_rows(n.inputs[1]) and any(a is node for a in ancestors(n)) for n in picked):
            return None
        return place, node
    return None


def _rows(index: Value) -> bool:
    """True for numbers of rows, not for a cut along axes or one element."""
    first = index[0] if isinstance(index, tuple) and index else index
    return not (first is None or first is Ellipsis or isinstance(first, int | str | Obj))


def _sorted(items: Value, placed: dict[int, Place | None]) -> Place | None:
    """Where a list of values, or the one that it was made of, was sorted; not a list of pairs."""
    for _ in range(FAR):
        if not isinstance(items, Items) or not items.items or not all(isinstance(i, Node) for i in items.items):
            return None
        if items.kind == "arranged" and items.place is not None:
            return items.place
        if (place := placed.get(id(items))) is not None:
            return place
        items = items.source
    return None


def _apart(run: Rehearsing, joined: Node, other: Node, placed: dict[int, Place | None]) -> bool:
    """True where nothing that ``other`` is made of was sorted, and it was taken by the same numbers."""
    if any(_sorted(i, placed) is not None for n in ancestors(other) for i in n.inputs):
        return False
    held = joined.inputs[0]
    elements = [i for i in held.items if isinstance(i, Node)] if isinstance(held, Items) else []
    mine = {s.key for e in elements for p in paths(run, e) for s in p.steps if s.moving}
    theirs = {s.key for p in paths(run, other) for s in p.steps if s.moving}
    return bool(mine & theirs)


__all__ = ["sorted_alone"]
