"""Do the columns of a table stand in one order where it is trained on and where it is evaluated?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Place, Table, Value
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.places import parting
from trainwreck.code.rehearsal.questions.splits import sides
from trainwreck.core.row import Row

MAKES = frozenset(["stack", "column_stack", "hstack", "array", "asarray", "tensor", "as_tensor", "concatenate", "cat"])
ORDERS = frozenset(["sorted", "reversed", "set", "frozenset"])


class Order(Row):
    """How columns follow one another: ``change`` of the order in which ``names`` stand, and where they are picked."""

    change: str
    names: tuple[object, ...] | None
    """The names as far as they are written; None for all columns of some frame."""
    place: Place


def another_order(run: Rehearsing) -> Iterator[Answer]:
    """Columns that are evaluated in another order than they were trained in."""
    both = sides(run)
    trained = [(n, o) for n in both.train_nodes.values() if (o := _order(n)) is not None]
    apart = [n for n in both.held_nodes.values() if id(n) not in both.train_nodes]
    for node, other in [(n, o) for n in apart if (o := _order(n)) is not None]:
        differ = [(n, mine) for n, mine in trained if _differ(mine, other)]
        if differ and not any(_agree(mine, other) for _, mine in trained):
            first, mine = differ[0]
            here, there = other.place, mine.place
            if here[0] is there[0]:  # one function picks for both: what it is given decides
                here, there = parting(node, first) or here, parting(first, node) or there
            text = "the columns stand in another order here than where they are trained on"
            yield Answer(here, text, (there,))
            return


def _order(node: Node) -> Order | None:
    """The order in which ``node`` picks columns by their names."""
    if node.place is None or not node.inputs:
        return None
    if (side_by_side := _columns(node)) is not None:
        return Order("", side_by_side, node.place)
    given = node.inputs[0]
    if node.op in MAKES and isinstance(given, Items) and given.items and isinstance(given.items[0], Items):
        given = given.items[0]  # row by row
    if node.op in MAKES and isinstance(given, Items) and given.place is not None:
        picked = [i for i in given.items if isinstance(i, Node)]
        by_name = [i for i in picked if i.op in ("getitem", "either") or (i.op in ("float", "item"))]
        if given.source is None or not picked or len(by_name) < len(picked):
            return None
        return _of(given.source, given.place)
    if node.op in ("getitem", "reindex") and len(node.inputs) > 1:
        index = node.options.get("columns", node.inputs[1])
        listed = isinstance(index, Items) or (isinstance(index, Node) and index.op in ("list", "sorted", "reversed"))
        return _of(index, node.place) if listed else None
    return None


def _columns(node: Node) -> tuple[object, ...] | None:
    """Of columns that are put side by side by hand: where each is made, in order."""
    held = node.inputs[0] if node.op in ("stack", "column_stack") else None
    items = held if isinstance(held, tuple) else held.items if isinstance(held, Items) and not held.more else ()
    columns = [i for i in items if isinstance(i, Node) and i.place is not None and len(i.shape.dims) == 1]
    flat = not node.shape.open and len(node.shape.dims) == 2 and node.shape.dims[1] == len(items)
    made = tuple(id(c.place[0]) for c in columns if c.place is not None and not c.shape.open)
    return made if flat and len(items) > 1 and len(set(made)) == len(items) else None


def _of(value: Value, place: Place) -> Order | None:
    change = ""
    for _ in range(6):
        match value:
            case Items(kind="arranged"):
                return None
            case tuple() if value and all(isinstance(i, str) for i in value):
                return Order(change, value, place)
            case Items() if value.items and all(isinstance(i, str) for i in value.items) and not value.more:
                return Order(change, tuple(value.items), place)
            case Items(kind=kind, source=inner) if kind in ORDERS and inner is not None:
                change, value = change or kind, inner
            case Items() if value.source is not None:
                value = value.source
            case Items() if value.kind == "keys":
                return Order(change, tuple(value.items), place) if not value.more else Order(change, None, place)
            case Table():
                return Order(change, None if value.more else tuple(value.entries), place)
            case Node() if value.op in ("list", "tuple", "tolist") and value.inputs:
                value = value.inputs[0]
            case Node() if value.op in ORDERS and value.inputs:
                change, value = change or value.op, value.inputs[0]
            case Node() if value.op == "getitem" and len(value.inputs) > 1 and _backwards(value.inputs[1]):
                change, value = change or "reversed", value.inputs[0]
            case Node() if (value.op == "attribute" and value.name == "columns") or value.op == "keys":
                return Order(change, None, place)
            case _:
                return None
    return None


def _backwards(index: Value) -> bool:
    return isinstance(index, Obj) and index.kind == "builtins.slice" and index.args == (None, None, -1)


def _differ(one: Order, other: Order) -> bool:
    if one.change == other.change == "" and one.names is not None and other.names is not None:
        return one.names != other.names and sorted(map(str, one.names)) == sorted(map(str, other.names))
    if one.change == other.change or "set" in (one.change, other.change):
        return False
    if one.names is None or other.names is None:
        written = one.names or other.names
        change = other.change if one.names is not None else one.change
        return written is None or (change == "sorted" and list(written) != sorted(map(str, written)))
    return False


def _agree(one: Order, other: Order) -> bool:
    """The same order, or one of which nothing can be said."""
    return one.change == other.change and (one.names == other.names or None in (one.names, other.names))
