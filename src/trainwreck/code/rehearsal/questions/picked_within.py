"""Numbers that count within a selection (a pool without labels) and are taken for numbers of the whole set."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.gradients import backwards
from trainwreck.core.row import Row

MOVED = frozenset(
    """tolist cpu numpy long int item element from_numpy tensor as_tensor array asarray to detach clone data cuda
    astype squeeze view reshape flatten contiguous float""".split()
)
TAKES = frozenset(["getitem", "index_select", "take"])
WHOLE = frozenset(["arange", "range"])
DEEP = 8

Way = tuple[object, ...]
"""By which numbers rows are taken, one selection within another: ``x[pool][pick]`` and ``x[pool[pick]]`` are alike."""


class Taken(Row):
    """Rows that are taken out of an array, and by what."""

    node: Node
    base: Node
    way: Way


def labels_of_others(run: Rehearsing) -> Iterator[Answer]:
    """``x[pool[pick]]`` beside ``y[pick]``: the labels are those of other samples.

    Asked of two arrays that are otherwise taken by the same numbers, where nothing else of the first is taken by
    ``pick`` alone and nothing of the second by ``pool[pick]``."""
    mixed = any(n.op in ("shuffle", "sample") for n in run.nodes)
    taken = [t for n in run.nodes if (t := _taken(n, mixed)) is not None]
    by_way: dict[Way, list[Taken]] = {}
    for one in taken:
        by_way.setdefault(one.way, []).append(one)
    for one in (t for t in taken if len(t.way) > 1):
        last = one.way[-1:]
        beside = by_way.get(last, [])
        if any(t.base is one.base for t in beside):
            continue  # x[pick] is wanted as well: the two are different samples on purpose
        for other in beside:
            right = any(t.base is other.base for t in by_way[one.way])
            if right or other.node.place is None or not _belong(by_way, one.base, other.base, last):
                continue
            if _meet(run, one.node, other.node):
                text = "these numbers count within a selection: what belongs to them is taken by selection[numbers]"
                yield Answer(other.node.place, text, (one.node.place,) if one.node.place is not None else ())
                return


def _taken(node: Value, mixed: bool) -> Taken | None:
    """``mixed``: lists of numbers are not sure to be in their own order."""
    if not isinstance(node, Node) or not _takes(node):
        return None
    base, way = _bare(node.inputs[0]), _way(node.inputs[-1], mixed)
    while isinstance(base, Node) and _takes(base):
        base, way = _bare(base.inputs[0]), (*_way(base.inputs[-1], mixed), *way)
    return Taken(node, base, way) if isinstance(base, Node) and way else None


def _takes(node: Node) -> bool:
    """True for rows that an array of numbers, or one number, takes; ``index_select`` is given the axis before them."""
    index = node.inputs[-1] if node.op in TAKES and len(node.inputs) in (2, 3) else None
    along = node.inputs[1:-1] in ((), (0,))
    listed = isinstance(index, Items) and bool(index.items)
    return along and (listed or (isinstance(index, Node) and not index.shape.dims[1:]))


def _bare(value: Value) -> Value:
    for _ in range(DEEP):
        if not isinstance(value, Node) or value.op not in MOVED or not value.inputs:
            break
        value = value.inputs[0]
    return value


def _way(index: Value, mixed: bool, depth: int = 0) -> Way:
    """The selections that numbers count in, and the numbers; all of them in their own order are no selection."""
    at = _bare(index)
    if isinstance(at, Items) and isinstance(first := at.items[0], Node) and first.op in TAKES:
        at = first  # ``[pool[i] for i in pick]``: one stands for all
    if isinstance(at, Node) and _takes(at) and depth < DEEP:
        return (*_way(at.inputs[0], mixed, depth + 1), *_way(at.inputs[-1], mixed, depth + 1))
    whole = isinstance(at, Node) and (at.op in WHOLE or (at.op == "either" and not mixed and _counts(at)))
    return () if whole else (_key(at),)


def _counts(numbers: Node) -> bool:
    """True for the numbers of a list of all of them that is in its own order."""
    return all(isinstance(i, int) or (isinstance(i, Node) and i.op == "counter") for i in numbers.inputs)


def _key(value: Value, depth: int = 0) -> object:
    """Equal for numbers that are the same ones, also where the same part of an order is cut out a second time."""
    at = _bare(value)
    if isinstance(at, Node) and at.op == "getitem" and isinstance(at.inputs[1], Obj) and depth < DEEP:
        return (_key(at.inputs[0], depth + 1), *(_key(a, depth + 1) for a in at.inputs[1].args))
    return at if isinstance(at, int | str) or at is None else id(at)


def _belong(by_way: dict[Way, list[Taken]], one: Node, other: Node, but: Way) -> bool:
    """True for two arrays whose rows are taken by the same numbers elsewhere."""
    for way, group in by_way.items():
        if way != but and any(t.base is one for t in group) and any(t.base is other for t in group):
            return True
    return False


def _meet(run: Rehearsing, one: Node, other: Node) -> bool:
    """True where both come into one loss."""
    for event in backwards(run)[::-1]:
        behind = {id(n) for n in ancestors(event.subject)}
        if id(one) in behind and id(other) in behind:
            return True
    return False


__all__ = ["labels_of_others"]
