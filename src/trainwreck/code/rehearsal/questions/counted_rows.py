"""Numbers from zero on, as many as the training rows are, that pick rows of the whole table: the numbers of the
training rows themselves were left out (``x[randperm(len(train_rows))]`` for ``x[train_rows[randperm(...)]]``)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Function, Items, Node, Obj, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, carries, opaque
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import ORDERS, Path
from trainwreck.code.rehearsal.questions.splits import learned_without_targets, sides
from trainwreck.core.row import Row

COUNTS = frozenset(["randperm", "permutation", "randint", "integers", "choice", "arange", "counter", "randrange"])
"""What gives whole numbers below one that it is told."""
PLAIN = frozenset(
    """element split chunk getitem part tolist long int to tensor as_tensor from_numpy list array index key tuple
    array_split tensor_split astype cpu cuda item add shuffle iter next""".split()
)
"""What hands such numbers on."""
CASTS = frozenset(["tensor", "as_tensor", "from_numpy", "long", "array", "asarray", "list", "to", "tolist", "clone"])
SELECTS = frozenset(["nonzero", "flatnonzero", "where", "argwhere"])


class Drawn(Row):
    """Numbers from zero up to ``count``: where they were drawn or counted, and when."""

    count: Value
    place: Place | None
    serial: int


def counted_rows(run: Rehearsing) -> Iterator[Answer]:
    """Training rows are numbered from zero to the length of a part of the table's rows, where other rows of the same
    table, by an order that was drawn or by a test, are held out: the numbers of the part were never looked up."""
    both = sides(run)
    for train in both.train:
        drawn = _picked(train)
        if drawn is None or drawn.place is None:
            continue
        for event, held in both.held:
            if held.root is not train.root or not held.fixed or _follows(train, held):
                continue
            part = _part_of(run, drawn, held)
            if part is not None and not learned_without_targets(run, train):
                text = "these are numbers within the training rows, and they pick rows of the whole table"
                places = (part.place, event.place)
                yield Answer(drawn.place, text, tuple(p for p in places if p is not None))
                return


def _picked(train: Path) -> Drawn | None:
    """What picks the rows of the training from the table: numbers from zero on, by batches or all at once."""
    first = train.steps[0] if train.steps else None
    if first is None or first.place is None or len(train.fixed) > (not first.moving):
        return None
    if first.moving and first.key not in (("element",), ("index",)):
        return _drawn(first.index)
    if not first.moving:
        counted = first.key[:2] in (("slice", None), ("slice", 0)) if isinstance(first.key, tuple) else False
        given = first.index
        end = given.args[1] if isinstance(given, Obj) and len(given.args) > 1 else _end(given)
        return Drawn(end, first.place, _serial(train)) if counted and end is not None else None
    loaders = [n.owner for n in train.nodes if n.op == "batch" and n.owner is not None]
    if first.key == ("index",) and len(loaders) == 1:
        listed = _length_of(loaders[0].get("dataset", 0))
        return Drawn(listed, first.place, _serial(train)) if listed is not None else None
    sampler = loaders[0].options.get("sampler") if loaders else None
    if not isinstance(sampler, Obj) or sampler.name != "SubsetRandomSampler" or sampler.place is None:
        return None
    rows = sampler.get("indices", 0)
    end = _end(rows)
    return Drawn(end, sampler.place, sampler.serial) if end is not None else _drawn(rows)


def _length_of(dataset: Value) -> Node | None:
    """The length that a data set of the program tells: that of something which it holds."""
    size = dataset.cls.find("__len__") if isinstance(dataset, Obj) and dataset.cls is not None else None
    body = size.node.body if isinstance(size, Function) else None
    match body[-1] if isinstance(body, list) else None:
        case ast.Return(value=ast.Call(func=ast.Name(id="len"), args=[ast.Attribute(value=ast.Name(), attr=name)])):
            held = dataset.attributes.get(name)
            return Node("len", (held,)) if isinstance(held, Node) else None
    return None


def _serial(train: Path) -> int:
    return train.nodes[-1].serial


def _end(rows: Value) -> Value:
    """Up to where the numbers of a ``range`` from zero go."""
    last = rows.items[-1] if isinstance(rows, Items) and rows.kind == "range" and rows.items else None
    if not isinstance(last, Node) or last.op != "counter" or not last.inputs:
        return None
    given = last.inputs
    return given[0] if len(given) == 1 else given[1] if given[0] == 0 and len(given) == 2 else None


def _follows(train: Path, held: Path) -> bool:
    """True where the held out rows are cut from what the training sees, after it: another table."""
    return any(n is held.nodes[-1] for n in train.nodes)


def _drawn(index: Value) -> Drawn | None:
    """Where the numbers of a batch were drawn or counted, if they were only handed on since."""
    behind = list(ancestors(index, through=_handed)) if isinstance(index, Node) else []
    found = [n for n in behind if n.op in COUNTS and n.op != "counter"] or [n for n in behind if n.op == "counter"]
    if not found or any(n.op not in PLAIN and n not in found and n.op != "counter" for n in behind):
        return None
    if len({id(n) for n in found}) != 1:
        return None
    return Drawn(_count(found[0]), found[0].place, found[0].serial)


def _handed(node: Node) -> bool:
    return carries(node) and node.op not in COUNTS


def _part_of(run: Rehearsing, drawn: Drawn, held: Path) -> Node | None:
    """The row numbers whose count the drawn numbers go up to, where they are no count of all rows."""
    count = drawn.count
    if isinstance(count, Node):
        rows = _counted(count)
        return rows if rows is not None and _are_rows(run, rows, held) else None
    order = held.fixed[0].index
    if not isinstance(count, int) or not isinstance(order, Node) or order.op not in ORDERS or len(held.fixed) < 2:
        return None
    whole = order.shape.dim(0) if not order.shape.open and len(order.shape.dims) == 1 else None
    if whole is None or count >= whole:
        return None
    for node in run.nodes:
        cut = node.op in ("getitem", "part") and node.inputs and order in ancestors(node.inputs[0], through=carries)
        known = not node.shape.open and len(node.shape.dims) == 1 and node.shape.dim(0) == count
        index = node.inputs[1] if len(node.inputs) > 1 else None
        if cut and known and node.serial < drawn.serial and held.fixed[1].index is not index:
            return node
    return None


def _count(drawn: Node) -> Value:
    """How many numbers there are to draw from."""
    given = [i for i in drawn.inputs if not (isinstance(i, Node) and i.op in ("default_rng", "generator"))]
    given = [i for i in given if not isinstance(i, Obj)]
    if drawn.op in ("randint", "integers", "counter", "arange", "randrange") and len(given) > 1 and given[0] == 0:
        given = given[1:]
    high = drawn.options.get("high", given[0] if given else None)
    return high if isinstance(high, int | Node) and not isinstance(high, bool) else None


def _counted(count: Node) -> Node | None:
    """Of what a number is the length."""
    first = count.inputs[0] if count.inputs else None
    if count.op in ("len", "numel", "size") and isinstance(first, Node):
        return first
    if count.op == "getitem" and isinstance(first, Node) and (first.op, first.name) == ("attribute", "shape"):
        return next((i for i in first.inputs if isinstance(i, Node)), None)
    return None


def _are_rows(run: Rehearsing, rows: Node, held: Path) -> bool:
    """True for row numbers that are a part of an order or passed a test, and of which other ones are held out."""
    while rows.op in CASTS and rows.inputs and isinstance(rows.inputs[0], Node):
        rows = rows.inputs[0]
    behind = list(ancestors(rows, through=carries))
    if opaque(rows) or (any(n is held.root for n in behind) and not _tested(behind)):
        return False
    order = held.fixed[0].index
    same = isinstance(order, Node) and any(n is order for n in behind) and rows is not order
    beside = isinstance(order, Node) and order.op == rows.op == "split" and order.name != rows.name
    if beside and isinstance(order, Node) and order.place is not None and rows.place is not None:
        return order.place[0] is rows.place[0]  # two of the parts that one call gives
    return (same and any(n.op in ("getitem", "part") for n in behind)) or _tested(behind)


def _tested(behind: list[Node]) -> bool:
    return any(n.op in SELECTS for n in behind[:6])


__all__ = ["counted_rows"]
