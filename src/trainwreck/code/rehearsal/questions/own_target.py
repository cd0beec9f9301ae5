"""Tables whose rows a network is given: is one of their columns the target itself, or worked out from it?

A way from a value back to where it was made: through what leaves each element where it is, and selections of rows.
Two ways lead to the same elements where their selections are the same and they end in one array."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Place, Value
from trainwreck.code.rehearsal.graph import ancestors, graph, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import key_of, meets, statistic
from trainwreck.code.rehearsal.questions.roles import backwards
from trainwreck.code.rehearsal.questions.windows import ADDS

CONVERTS = frozenset(
    """batch element astype float double float32 float64 to tensor as_tensor from_numpy asarray array numpy to_numpy
    clone copy contiguous detach cpu cuda pin_memory ascontiguousarray long unsqueeze squeeze reset_index""".split()
)
SCALES = frozenset(["add", "sub", "mul", "div", "neg"])
DETERMINED = SCALES | frozenset("pow sqrt square log log1p exp abs reciprocal astype float tanh".split())
"""What works out a number from others, element by element."""
TABLES = frozenset("column_stack c_ genfromtxt loadtxt DataFrame read_csv".split())
"""What is sure to have rows and columns, and no more axes."""
DRAWN = frozenset("randn rand normal uniform standard_normal random randint integers".split())
FRAMES = frozenset(["setitem", "dropna", "copy", "reset_index", "fillna"])
"""What leaves the rows of a frame beside each other as they are."""
MAX_CHAIN = 60
MAX_LEAVES = 60


class Way(NamedTuple):
    """From a value back to an array: the selections of rows (last one first), and that of columns (None: all)."""

    root: Node
    rows: tuple[object, ...]
    columns: Value
    picked: Node | None
    """The selection of one column."""


def target_is_given(run: Rehearsing) -> Iterator[Answer]:
    """A layer is given whole rows of a table, and one of their columns is to be told."""
    for event in backwards(run):
        tables = list(_given(event.subject))
        for node, _, outside in meets(event.subject) if tables else ():
            if node.op in ADDS:
                continue
            targets = [w for n in outside for w in [_way(n)] if w is not None]
            for target in targets:
                for layer, table in tables:
                    place = None
                    if target.picked is not None and _same_rows(table, target) and _among(table, target):
                        place = _chosen(table, target.columns) or target.picked.place
                    elif target.picked is None and (column := _worked_out(table, target)) is not None:
                        place = column.place
                    if place is not None:
                        text = "the features of a row hold what is to be told about it"
                        yield Answer(place, text, tuple(p for p in (layer.place, event.place) if p is not None))
                        return


def _chosen(table: Way, wanted: Value) -> Place | None:
    """Where the columns are chosen: the list of their names, or the selection."""
    if isinstance(table.columns, Items):
        texts = [i for i in table.columns.items if isinstance(i, str)]
        written = next((c for n in texts if n != wanted and (c := _copied(table.root, n, wanted)) is not None), None)
        if written is not None and wanted not in texts:
            return written.place
    names = table.columns.place if isinstance(table.columns, Node | Items) else None
    return names or (table.picked.place if table.picked is not None else None)


def _given(loss: Value) -> Iterator[tuple[Node, Way]]:
    """The layers that see data as they are, each with the way to those."""
    for node in graph(loss):
        first = node.inputs[0] if node.inputs else None
        if node.op == "linear" and isinstance(first, Node) and not first.grad and (way := _way(first)) is not None:
            yield node, way


def _way(value: Node) -> Way | None:
    """None where anything happens on the way but scaling and the selection of rows and columns."""
    at, rows, columns, picked = value, list[object](), None, None
    for _ in range(MAX_CHAIN):
        if at.op == "getitem" and len(at.inputs) > 1 and isinstance(at.inputs[0], Node):
            index = at.inputs[1]
            row, column = (None, index) if _within_row(at) else _split(index)
            if column is not None and columns is not None:
                return None
            if column is not None:
                columns, picked = column, at
            if row is not None:
                rows.append(key_of(row))
            at = at.inputs[0]
            continue
        if at.op == "attribute" and at.name == "values" and isinstance(at.inputs[0], Node):
            at = at.inputs[0]
            continue
        if at.op == "element":
            at = at.inputs[0] if at.inputs and isinstance(at.inputs[0], Node) else at
            continue
        data = [n for i in at.inputs for n in parts(i) if not statistic(n)]
        if at.op not in CONVERTS and not (at.op in SCALES and len(data) == 1):
            break
        if len(data) != 1:
            break
        at = data[0]
    return Way(at, tuple(rows), columns, picked) if not at.unknown else None


def _split(index: Value) -> tuple[Value, Value]:
    """(rows, columns) of an index; None for all of them."""
    if isinstance(index, tuple):
        if len(index) != 2 or any(i is None or i is Ellipsis for i in index):
            return index, None
        return (None if _all(index[0]) else index[0]), (None if _all(index[1]) else index[1])
    if isinstance(index, str) or _names(index):
        return None, index
    return index, None


def _within_row(node: Node) -> bool:
    """True for ``table[i][3]``: the row is chosen already."""
    base, index = node.inputs[:2]
    row = base.inputs[1] if isinstance(base, Node) and base.op == "getitem" and len(base.inputs) > 1 else None
    return isinstance(index, int | Obj) and isinstance(row, Node) and row.op in ("index", "counter")


def _all(index: Value) -> bool:
    return isinstance(index, Obj) and index.kind == "builtins.slice" and set(index.args) <= {None}


def _names(index: Value) -> bool:
    """True for columns that are named: a list of texts, or all that the table has."""
    if isinstance(index, Items):
        return bool(index.items) and all(isinstance(i, str) or getattr(i, "op", "") == "text" for i in index.items)
    held = index.inputs[0] if isinstance(index, Node) and index.op in ("list", "attribute") and index.inputs else None
    return (isinstance(held, Node) and held.name == "columns") or getattr(index, "name", "") == "columns"


def _same_rows(table: Way, target: Way) -> bool:
    mine, theirs = list(target.rows), list(table.rows)
    if target.root.op in DRAWN:
        return False  # a task that is made up: one of the numbers that were drawn is what is to be found
    return target.root is table.root and mine == theirs and (_flat(target.root) or isinstance(target.columns, str))


def _flat(root: Node) -> bool:
    """True for an array of rows and columns, with no further axes."""
    return root.op in TABLES or (not root.shape.open and len(root.shape.dims) == 2)


def _among(table: Way, target: Way) -> bool:
    """True where the column of the target is one of those that are given."""
    wanted, chosen = target.columns, table.columns
    if chosen is None or (isinstance(chosen, Node) and _names(chosen)):
        return isinstance(wanted, int | str) and not isinstance(wanted, bool)
    if isinstance(chosen, Items):
        names = [i for i in chosen.items if isinstance(i, str)]
        return not chosen.more and any(n == wanted or _copied(table.root, n, wanted) is not None for n in names)
    if not (isinstance(chosen, Obj) and chosen.kind == "builtins.slice" and isinstance(wanted, int)):
        return False
    start, end, step = chosen.args
    if not all(e is None or isinstance(e, int) for e in (start, end)) or step is not None:
        return False
    width = table.root.shape.dims[-1] if not table.root.shape.open and table.root.shape.dims else None
    if wanted == -1:
        return end is None and (start is None or (start < 0) or (width is not None and start < width))
    return wanted >= 0 and 0 <= (start or 0) <= wanted and (end is None or 0 <= wanted < end)


def _copied(frame: Node, name: str, wanted: Value) -> Node | None:
    """Where a column was written into the frame as that of the target is, scaled at most: a lag without a shift."""
    at: Value = frame
    for _ in range(MAX_CHAIN):
        if not isinstance(at, Node) or not at.inputs:
            return None
        if at.op == "setitem" and len(at.inputs) > 2 and at.inputs[2] == name:
            way = _way(at.inputs[1]) if isinstance(at.inputs[1], Node) else None
            return at if way is not None and way.columns == wanted and not way.rows else None
        if at.op not in FRAMES:
            return None
        at = at.inputs[0]
    return None


def _worked_out(table: Way, target: Way) -> Node | None:
    """A column that is the target, scaled, or follows from it and other columns, of a table that the target was worked
    out from."""
    if table.columns is not None:
        return None
    columns = _columns(table.root)
    roots = {id(w.root): w for c in columns if (w := _way(c)) is not None}
    behind = {id(n) for n in ancestors(target.root)}
    if len(columns) < 2 or not any(key in behind for key, w in roots.items() if w.root is not target.root):
        return None
    for column in columns:
        way = _way(column)
        if way is None:
            continue
        if way.root is target.root and (*table.rows, *way.rows) == target.rows:
            return column
        others = {id(c) for c in columns if c is not column} | {k for k in roots if k != id(column)}
        if table.rows == target.rows and not way.rows and _follows(way.root, target.root, others):
            return column
    return None


def _follows(column: Node, target: Node, others: set[int]) -> bool:
    """True where nothing but the target and other columns goes into a column."""
    queue, found = [column], False
    for _ in range(MAX_LEAVES):
        if not queue:
            return found
        node = queue.pop()
        if node is target:
            found = True
        elif id(node) not in others or node is column:
            data = [n for i in node.inputs for n in parts(i) if not statistic(n)]
            if node.op not in DETERMINED or not data:
                return False
            queue += data
    return False


def _columns(root: Node) -> list[Node]:
    """The columns that a table is put together from, or that were written into it one by one."""
    held = root.inputs[0] if root.inputs else None
    items = list(held) if isinstance(held, tuple) else held.items if isinstance(held, Items) and not held.more else []
    axis = root.options.get("dim", root.options.get("axis", root.inputs[1] if len(root.inputs) > 1 else 0))
    if root.op in ("column_stack", "c_") or (root.op == "stack" and axis in (1, -1)):
        return [i for i in items if isinstance(i, Node)]
    found: list[Node] = []
    at: Value = root
    while isinstance(at, Node) and at.op == "setitem" and len(at.inputs) > 2 and len(found) < MAX_CHAIN:
        _, column = _split(at.inputs[2])
        value = at.inputs[1]
        if not isinstance(column, int) or not isinstance(value, Node):
            return []
        found.append(value)
        at = at.inputs[0]
    made = isinstance(at, Node) and at.op in ("zeros", "empty")
    return found if made else []


__all__ = ["target_is_given"]
