"""Series: how far the features of an element reach ahead, against the element that is to be predicted."""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Value, candidates
from trainwreck.code.rehearsal.graph import ancestors, near, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import meets, statistic
from trainwreck.code.rehearsal.questions.roles import JOINS, backwards

NOWHERE = -math.inf
"""It does not hold the series at all."""
ELEMENTWISE = frozenset(
    """add sub mul div neg abs sqrt log log1p exp square pow tanh sin cos clip clamp maximum minimum astype float
    double copy asarray array tensor as_tensor from_numpy ascontiguousarray numpy to nan_to_num fillna where
    Series to_numpy bfill ffill""".split()
)
RUNNING = frozenset(["cumsum", "cumprod", "nancumsum", "cummax", "lfilter", "ewm", "accumulate"])
"""What gathers all elements up to each."""
NUMBERS = frozenset(["mean", "sum", "std", "var", "min", "max", "median"])


def reaching_the_target(run: Rehearsing) -> Iterator[Answer]:
    """A running mean or sum of the predicted series, of which the last element is the target itself.

    Asked only where other features stop before the target: then it is a forecast."""
    for event in backwards(run):
        for _, inside, outside in meets(event.subject):
            targets = [t for node in outside for t in _indexed(node)]
            features = [f for node in inside for f in _indexed(node)] if targets else []
            for series, base, ahead, _ in targets:
                mine = [(f, reach) for f in features if f[1] == base and (reach := _reach(f, series)) > NOWHERE]
                before = any(reach < ahead for _, reach in mine)
                late = [f for f, reach in mine if reach >= ahead and _gathers(f[0], series)]
                last = _first_late(late, [f for f, _ in mine])
                if before and last is not None and last.place is not None:
                    text = "this running value of the series already holds the element that is to be predicted"
                    yield Answer(last.place, text, tuple(p for p in [event.place] if p is not None))
                    return


def plain(series: Node) -> Node:
    """The series before it was only shifted and scaled."""
    for _ in range(8):
        data = [n for i in series.inputs for n in parts(i) if not statistic(n)]
        if series.op not in ELEMENTWISE or len(data) != 1:
            break
        series = data[0]
    return series


def column_is_the_target(run: Rehearsing) -> Iterator[Answer]:
    """A table whose rows are the features has the predicted series among its columns, and is cut at the same row.

    The series was moved ahead in one of the two places only in a forecast that is meant."""
    for event in backwards(run):
        for _, inside, outside in meets(event.subject):
            targets = [t for node in outside for t in _indexed(node)]
            tables = [f for node in inside for f in _indexed(node)] if targets else []
            for series, base, ahead, at in targets:
                wanted = plain(series)
                for table, other, row, _ in tables:
                    columns = columns_of(table) if other == base else []
                    same = (isinstance(c, Node) and row + by == ahead and plain(c) is wanted for c, by in columns)
                    if len(columns) > 1 and at.place is not None and any(same):
                        text = "one column of the features is the very element that is to be predicted"
                        yield Answer(at.place, text, tuple(p for p in [event.place] if p is not None))
                        return


def forecasts_itself(run: Rehearsing) -> bool:
    """True where a table with a series among its columns is to tell what that series is some rows later."""
    for event in backwards(run):
        for _, inside, outside in meets(event.subject):
            targets = [t for node in outside for t in _indexed(node) if t[1] == "position"]
            tables = [f for node in inside for f in _indexed(node) if f[1] == "position"] if targets else []
            for series, _, ahead, _ in targets:
                wanted = plain(series)
                for table, _, row, _ in tables:
                    columns = columns_of(table)
                    if len(columns) > 1 and any(
                        isinstance(c, Node) and row + by < ahead and plain(c) is wanted for c, by in columns
                    ):
                        return True
    return False


COLUMNS = frozenset(["column_stack", "hstack", "c_"])


def smoothed_to_the_target(run: Rehearsing) -> Iterator[Answer]:
    """A column of the features that is smoothed with later elements, up to the one that is to be predicted.

    Asked only where another column stops before the target: then it is a forecast."""
    for event in backwards(run):
        for _, inside, outside in meets(event.subject):
            targets = [t for node in outside for t in _indexed(node)]
            features = [c for node in inside for f in _indexed(node) for c in _apart(f)] if targets else []
            for series, base, ahead, _ in targets:
                mine = [(f, r) for f in features if f[1] == base and (r := _reach(f, series)) > NOWHERE]
                if not any(reach < ahead for _, reach in mine):
                    continue
                for feature, reach in mine:
                    smooth = _smoothing(feature[0], series) if reach >= ahead else None
                    if smooth is not None and smooth.place is not None:
                        text = "this smooths each element with later ones, up to the one that is to be predicted"
                        yield Answer(smooth.place, text, tuple(p for p in [event.place] if p is not None))
                        return


def _apart(feature: Indexed) -> list[Indexed]:
    """The columns of a table that is indexed by rows, each by itself; the whole where it is no table."""
    columns = columns_of(feature[0], 0)
    return [(c, feature[1], feature[2] + by, feature[3]) for c, by in columns] if len(columns) > 1 else []


def columns_of(value: Value, depth: int = 0) -> list[tuple[Value, int]]:
    """The columns that a table was put together from, each with how many rows it is moved ahead."""
    if not isinstance(value, Node) or depth > 12 or not value.inputs:
        return [(value, 0)]
    held = value.inputs[0]
    items = list(held) if isinstance(held, tuple) else held.items if isinstance(held, Items) else []
    last = value.options.get("dim", value.options.get("axis", (*value.inputs, None)[1]))
    if items and (value.op in COLUMNS or (value.op in JOINS and last in (1, -1))):
        return [column for item in items for column in columns_of(item, depth + 1)]
    if value.op == "getitem":
        at = _along(value.inputs[1])
        return (
            [(c, by + at[1]) for c, by in columns_of(held, depth + 1)] if at is not None and at[0] == "position" else []
        )
    if value.op in ELEMENTWISE:
        data = [i for i in value.inputs if isinstance(i, Node) and not statistic(i)]
        found = columns_of(data[0], depth + 1) if len(data) == 1 else []
        return found if len(found) > 1 else [(value, 0)]
    return [(value, 0)]


def _smoothing(column: Value, series: Node) -> Node | None:
    """What makes each element of a column from several of the series, before and behind."""
    for node in ancestors(column, through=lambda n: n is not series):
        ahead = _window(node) if node.op != "rolling" else None
        if node.op == "sliding_window_view" or (ahead is not None and ahead > 0) or _of_sums(node):
            return node
    return None


def _of_sums(node: Node) -> bool:
    """``total[k:] - total[:-k]`` of a running sum."""
    sides = [i.inputs[0] for i in node.inputs[:2] if isinstance(i, Node) and i.op == "getitem"]
    base = sides[0] if node.op == "sub" and len(sides) == 2 and sides[0] is sides[1] else None
    return isinstance(base, Node) and any(n.op in RUNNING for n in near(base, 4))


def _window(node: Node) -> int | None:
    """How far a smoothing looks ahead of each element of its input; None for what is none that is known."""
    from trainwreck.code.rehearsal.questions.smoothing import smoothed

    second = (*node.inputs, None)[1]
    found = smoothed(node)
    if found is not None and (node.op != "convolve" or found[0] is node.inputs[0]):
        return found[1]
    if node.op == "convolve" and isinstance(second, Node):
        mode = node.options.get("mode", node.inputs[2] if len(node.inputs) > 2 else "full")
        size = second.shape.dims[0] if len(second.shape.dims) == 1 else None
        wide = size if isinstance(size, int) else None
        return {"valid": wide - 1, "full": 0}.get(str(mode)) if wide is not None else None
    if node.op == "rolling":
        return 0 if not {"center", "closed"} & node.options.keys() else None
    if node.op in ("avg_pool1d", "avgpool1d"):
        wide, padding = node.options.get("kernel_size", second), node.options.get("padding", 0)
        stride = node.options.get("stride", (*node.inputs, None, None)[2])
        known = isinstance(wide, int) and isinstance(padding, int) and stride == 1
        return wide - 1 - padding if known else None
    return _around(second) if node.op == "getitem" and isinstance(second, Node) else None


def _behind(node: Node) -> Value:
    """The series that a smoothing reads."""
    from trainwreck.code.rehearsal.questions.smoothing import smoothed

    found = smoothed(node)
    if found is not None and node.op != "convolve":
        return found[0]
    return node.inputs[0] if node.inputs else None


def _around(index: Node) -> int | None:
    """Of ``t[:, None] + arange(-3, 4)``: the last of the numbers that are added to each position."""
    for _ in range(4):
        if index.op in ("clip", "clamp", "maximum", "minimum", "mod") and isinstance(index.inputs[0], Node):
            index = index.inputs[0]
    if index.op != "add" or len(index.inputs) < 2:
        return None
    for rows, offsets in (index.inputs[:2], index.inputs[1::-1]):
        if not isinstance(rows, Node) or not isinstance(offsets, Node):
            continue
        while offsets.op == "getitem" and isinstance(offsets.inputs[0], Node):
            offsets = offsets.inputs[0]
        ends = offsets.inputs[: len(offsets.inputs) - len(offsets.options)]
        if offsets.op == "arange" and len(ends) == 2 and all(isinstance(e, int) for e in ends):
            return int(ends[1]) - 1
    return None


def _first_late(late: list[Indexed], mine: list[Indexed]) -> Node | None:
    """The first indexing that reaches too far and is not moved back by a later one."""
    for *_, node in late:
        if any(n is node for *_, other in mine if other is not node for n in ancestors(other)):
            continue
        behind = {id(n) for n in ancestors(node)}
        return [n for *_, n in late if id(n) in behind][-1]
    return None


Indexed = tuple[Node, object, int, Node]
"""An array, what it is indexed along, how many elements ahead, and the indexing."""


def _indexed(value: Node) -> list[Indexed]:
    found: list[Indexed] = []
    for node in ancestors(value, through=lambda n: n.op != "param" and not _of_everything(n)):
        if node.op == "getitem" and len(node.inputs) > 1 and isinstance(node.inputs[0], Node):
            at = _along(node.inputs[1])
            if at is not None:
                found.append((node.inputs[0], *at, node))
    return found


def _of_everything(node: Node) -> bool:
    """A number or row for the whole series; the mean of each window is none."""
    return statistic(node) and not any(
        n.op in ("rolling", "ewm", "sliding_window_view") for n in ancestors(node, through=_plainly)
    )


def _plainly(node: Node) -> bool:
    return node.op in ELEMENTWISE or node.op in NUMBERS or node.op == "getitem"


def _along(index: Value, depth: int = 0) -> tuple[object, int] | None:
    """(base, offset) of ``t``, ``t - 3``, ``maximum(t - 3, 0)`` and ``5:``."""
    if isinstance(index, Obj) and index.kind == "builtins.slice":
        start, step = index.args[0], index.args[2]
        shift = 0 if start is None else start
        return ("position", shift) if isinstance(shift, int) and shift >= 0 and step is None else None
    if not isinstance(index, Node) or depth > 8 or not index.inputs:
        return None
    if index.op == "arange":
        given = index.inputs[: len(index.inputs) - len(index.options)]
        return ("position", 0) if len(given) == 1 or given[:1] == (0,) else (id(index), 0)
    first, second = (*index.inputs, None)[:2]
    if index.op in ("add", "sub") and isinstance(second, int):
        at = _along(first, depth + 1)
        return (at[0], at[1] + (second if index.op == "add" else -second)) if at is not None else None
    if index.op == "add" and isinstance(first, int):
        at = _along(second, depth + 1)
        return (at[0], at[1] + first) if at is not None else None
    if index.op in ("maximum", "minimum", "clip", "clamp", "long", "int", "astype"):
        return _along(first, depth + 1)
    return None


def position(index: Value) -> int | None:
    """How far ahead the elements that a slice takes are."""
    at = _along(index)
    return at[1] if at is not None and at[0] == "position" else None


def _reach(feature: Indexed, series: Node) -> float:
    """The last element of the series in the feature, counted from the base; NOWHERE where that is not known."""
    inner = _last(feature[0], series, 0)
    return NOWHERE if inner is None else inner + feature[2]


def _gathers(value: Node, series: Node) -> bool:
    """True where a running operation lies between the two."""
    between = ancestors(value, through=lambda n: n is not series)
    return any(n.op in RUNNING or n.op in ("rolling", "sliding_window_view") for n in between if n is not series)


def _last(value: Value, series: Node, depth: int) -> float | None:
    """How far element p of the value reaches: to element p + that of the series. None where it is not known."""
    if not isinstance(value, Node):
        return NOWHERE
    if value is series:
        return 0
    if depth > 40 or not any(n is series for n in ancestors(value)):
        return None if depth > 40 else NOWHERE
    inputs = value.inputs
    first = inputs[0] if inputs else None
    if (ahead := _window(value)) is not None:
        return _moved(_last(_behind(value), series, depth + 1), ahead)
    if value.op == "attribute" and value.name == "values":
        return _last(first, series, depth + 1)
    if value.op in RUNNING or value.op in ELEMENTWISE:
        sides = [_last(i, series, depth + 1) for i in inputs]
        known = [s for s in sides if s is not None]
        return max(known, default=NOWHERE) if len(known) == len(sides) else None
    if value.op in ("shift", "roll") and isinstance(first, Node):
        count = value.options.get("shift", value.options.get("periods", inputs[1] if len(inputs) > 1 else 1))
        return _moved(_last(first, series, depth + 1), -count) if isinstance(count, int) else None
    if value.op == "sliding_window_view" and isinstance(count := (*inputs, None)[1], int):
        return _moved(_last(first, series, depth + 1), count - 1)
    if value.op in NUMBERS and isinstance(first, Node):
        windows = first.op in ("rolling", "ewm", "sliding_window_view") or _window(first) is not None
        return _last(first, series, depth + 1) if windows else None
    if value.op == "getitem" and len(inputs) > 1:
        at = _along(inputs[1])
        return _moved(_last(first, series, depth + 1), at[1]) if at is not None and at[0] == "position" else None
    if value.op == "pad" and isinstance(first, Node) and len(inputs) > 1:
        ends = [c for c in candidates(inputs[1]) if isinstance(c, tuple) and len(c) == 2]
        before = ends[0][0] if len(ends) == 1 and value.full.startswith("numpy") else None
        return _moved(_last(first, series, depth + 1), -before) if isinstance(before, int) else None
    if value.op == "setitem" and len(inputs) > 2 and isinstance(inputs[2], Obj):
        at = _along(inputs[2])
        sides = [_last(first, series, depth + 1), _last(inputs[1], series, depth + 1)]
        if at is None or at[0] != "position" or None in sides:
            return None
        return max(sides[0] or 0, (sides[1] or 0) - at[1])
    if value.op in JOINS and value.op not in ("stack", "vstack"):
        return _behind_padding(first, series, depth)
    return None


def _moved(reach: float | None, by: int) -> float | None:
    return reach + by if reach is not None else None


def _behind_padding(joined: Value, series: Node, depth: int) -> float | None:
    """``concatenate([padding, values])``: the values are pushed back by the length of the padding."""
    items = list(joined) if isinstance(joined, tuple) else joined.items if isinstance(joined, Items) else []
    if len(items) != 2 or (isinstance(joined, Items) and joined.more):
        return None
    padding, rest = items
    if (front := _last(padding, series, depth + 1)) != NOWHERE:  # the padding stands behind
        edge = isinstance(rest, Node) and rest.op in ("full", "repeat", "tile")
        return front if edge or _last(rest, series, depth + 1) == NOWHERE else None
    if isinstance(padding, Items | tuple):
        count = len(padding.items) if isinstance(padding, Items) else len(padding)
    elif isinstance(padding, Node) and len(padding.shape.dims) == 1 and not padding.shape.open:
        if padding.shape.dims[0] is None:
            return None
        count = padding.shape.dims[0]
    else:
        return None
    return _moved(_last(rest, series, depth + 1), -count)
