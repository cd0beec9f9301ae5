"""Series that are smoothed with what comes later: does a forecast's window hold such values up to its target?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Place, Value
from trainwreck.code.rehearsal.graph import parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.lags import ELEMENTWISE, RUNNING
from trainwreck.code.rehearsal.questions.paths import key_of, meets, statistic
from trainwreck.code.rehearsal.questions.roles import JOINS, backwards
from trainwreck.code.rehearsal.questions.windows import GATHERS, PASSES, Linear, columns, linear, windows_behind
from trainwreck.core.row import Row

THROUGH = PASSES | JOINS
"""What leaves the elements of a window as they are, joined windows among it."""
CENTRED = frozenset(
    """uniform_filter1d gaussian_filter1d savgol_filter medfilt filtfilt median_filter uniform_filter gaussian_filter
    lowess""".split()
)
"""Filters that look as far ahead as back."""
REDUCES = frozenset(["mean", "sum", "median", "average", "nanmean", "max", "min", "dot", "item", "float", "std"])
MAX_CHAIN = 12


class Origin(Row):
    """A series that another one was computed from element by element: how far each element looks ahead in it."""

    root: Node
    cuts: tuple[object, ...]
    ahead: int
    place: Place | None


def looking_ahead(run: Rehearsing) -> Iterator[Answer]:
    """The window of a forecast ends before its target, and holds values that were smoothed over it."""
    told: set[int] = set()
    for event in backwards(run):
        for _, inside, outside in meets(event.subject):
            behind = [w for node in outside for w in windows_behind(node, learned=False, through=THROUGH)]
            targets = [(w, o) for w in behind if (o := _origin(w.series)).ahead == 0]
            if not targets:
                continue
            windows = [w for node in inside for w in windows_behind(node, learned=True, through=THROUGH)]
            series = [(w, column) for w in windows for column in columns(w.series)]
            for given, column in series:
                origin = _origin(column)
                if origin.ahead <= 0 or origin.place is None or id(origin.place[0]) in told:
                    continue
                for target, other in targets:
                    gap = target.first.less(given.last)
                    if origin.root is other.root and origin.cuts == other.cuts and gap and 0 < gap <= origin.ahead:
                        told.add(id(origin.place[0]))
                        text = "this smooths each element with later ones: the last of a window hold what is predicted"
                        yield Answer(origin.place, text, tuple(p for p in (target.place, given.place) if p is not None))
                        break


def _origin(series: Node) -> Origin:
    """Back through what changes a series element by element, cuts it, or smooths it."""
    cuts: list[object] = []
    ahead, place = 0, None
    for _ in range(MAX_CHAIN):
        found = smoothed(series)
        inner: Value = None
        if found is not None:
            inner, more = found
            ahead, place = ahead + more, series.place if more > 0 else place
        elif series.op == "getitem" and len(series.inputs) > 1 and _cut(series.inputs[1]):
            cuts.append(key_of(series.inputs[1]))
            inner = series.inputs[0]
        elif series.op in ELEMENTWISE:
            data = [n for i in series.inputs for n in parts(i) if not statistic(n) and not _counts(n)]
            inner = data[0] if len(data) == 1 else None
        if not isinstance(inner, Node):
            break
        series = inner
    return Origin(series, tuple(cuts), ahead, place)


def _cut(index: Value) -> bool:
    return isinstance(index, Obj) and index.kind == "builtins.slice" and index.args[2] in (None, 1)


def smoothed(series: Node) -> tuple[Node, int] | None:
    """The series behind a smoothed one, and how many elements this looks ahead."""
    first, second = (*series.inputs, None, None)[:2]
    if series.op in CENTRED and isinstance(first, Node):
        return (first, 1) if _along_time(series) else None
    if series.op == "convolve" and isinstance(first, Node):
        mode = series.options.get("mode", series.inputs[2] if len(series.inputs) > 2 else "full")
        size = second.shape.dims[0] if isinstance(second, Node) and len(second.shape.dims) == 1 else None
        width = size if isinstance(size, int) else 0
        if mode == "valid" and width > 2:
            return _padded(first, width - 1)
        return (first, (width - 1) // 2) if mode == "same" and width > 2 else None
    if series.op in REDUCES and isinstance(first, Node) and first.op == "rolling" and first.inputs:
        base = first.inputs[0]
        count = first.options.get("window", first.inputs[1] if len(first.inputs) > 1 else None)
        wide = count if isinstance(count, int) and first.options.get("center") is True else 0
        return (base, wide // 2) if isinstance(base, Node) else None
    if series.op == "setitem" and len(series.inputs) > 2:
        return _element(series.inputs[1], linear(series.inputs[2]))
    if series.op == "sub":
        return _difference_of_sums(first, second)
    if series.op in GATHERS and isinstance(first, Items) and first.items:
        last = first.items[-1]
        counter = _counter(last) if isinstance(last, Node) else None
        return _element(last, linear(counter)) if counter is not None else None
    return None


def _difference_of_sums(one: Value, other: Value) -> tuple[Node, int] | None:
    """``total[t + 3] - total[t - 3]`` of a running sum, which may begin with a zero of its own."""
    if not all(isinstance(side, Node) and side.op == "getitem" and len(side.inputs) > 1 for side in (one, other)):
        return None
    total, ahead = one.inputs[0], _offset(one.inputs[1])
    if total is not other.inputs[0] or ahead is None or _offset(other.inputs[1]) is None:
        return None
    if isinstance(total, Node) and total.op in JOINS and total.inputs:
        held = total.inputs[0]
        items = list(held) if isinstance(held, tuple) else held.items if isinstance(held, Items) else []
        front = items[0] if len(items) == 2 else None
        size = len(front.items) if isinstance(front, Items) else len(front) if isinstance(front, tuple) else None
        size = _length(front) if isinstance(front, Node) else size
        if size is None:
            return None
        total, ahead = items[1], ahead - size
    if not isinstance(total, Node) or total.op not in RUNNING or not isinstance(total.inputs[0], Node):
        return None
    return total.inputs[0], ahead


def _offset(index: Value) -> int | None:
    """How far ahead of its place each number of ``arange(n) + 3`` points."""
    for _ in range(MAX_CHAIN):
        if not isinstance(index, Node) or not index.inputs:
            return None
        if index.op == "arange":
            ends = index.inputs[: len(index.inputs) - len(index.options)]
            start = 0 if len(ends) == 1 else ends[0]
            return start if isinstance(start, int) and len(ends) < 3 else None
        if index.op in ("add", "sub") and len(index.inputs) > 1 and isinstance(index.inputs[1], int):
            inner = _offset(index.inputs[0])
            by = index.inputs[1] if index.op == "add" else -index.inputs[1]
            return inner + by if inner is not None else None
        if index.op not in ("minimum", "maximum", "clip", "clamp", "astype", "long"):
            return None
        index = index.inputs[0]
    return None


def _counts(node: Node, depth: int = 0) -> bool:
    """True for numbers that are made of places alone: how many elements each window has."""
    if node.op in ("arange", "len", "counter", "size"):
        return True
    inner = [n for i in node.inputs for n in parts(i)]
    return depth < 6 and node.op in ELEMENTWISE and bool(inner) and all(_counts(n, depth + 1) for n in inner)


def _padded(given: Node, wide: int) -> tuple[Node, int] | None:
    """The series behind one that is lengthened for a filter, which then reaches ``wide`` minus the front's length."""
    base, ends = (*given.inputs, None, None)[:2]
    ends = given.options.get("pad_width", ends)
    if given.op == "pad" and isinstance(base, Node) and given.full.startswith("numpy"):
        front = ends[0] if isinstance(ends, tuple) and len(ends) == 2 else ends
        return (base, wide - front) if isinstance(front, int) and 0 <= front <= wide else None
    if given.op in JOINS:
        items = list(base.items) if isinstance(base, Items) else list(base) if isinstance(base, tuple) else []
        sizes = [_length(i) for i in items]
        unknown = [n for n, size in enumerate(sizes) if size is None]
        if len(items) < 2 or len(unknown) > 1:
            return None
        at = unknown[0] if unknown else max(range(len(items)), key=lambda n: sizes[n] or 0)
        front, series = sum(size or 0 for size in sizes[:at]), items[at]
        return (series, wide - front) if isinstance(series, Node) and front <= wide else None
    return None


def _length(item: Value) -> int | None:
    """How many elements a row has; None where that isn't known."""
    if not isinstance(item, Node) or item.shape.open or len(item.shape.dims) != 1:
        return None
    size = item.shape.dims[0]
    return size if isinstance(size, int) else None


def _along_time(filtered: Node) -> bool:
    """False for filters along another axis than the first, or that are shifted back so as to see the past alone."""
    base = filtered.inputs[0]
    axes = len(base.shape.dims) if isinstance(base, Node) and not base.shape.open else None
    axis = filtered.options.get("axis", filtered.options.get("axes"))
    usual = -1 if filtered.op in ("uniform_filter1d", "gaussian_filter1d", "savgol_filter", "filtfilt") else 0
    axis = usual if axis is None else axis
    if filtered.options.get("origin", 0) != 0:
        return False
    return not isinstance(axis, int) or axis == 0 or axes == 1 or (axes is None and axis < 0)


def _element(value: Value, at: Linear | None) -> tuple[Node, int] | None:
    """What one element was reduced from: ``series[t - 2 : t + 3].mean()`` at ``t``."""
    for _ in range(MAX_CHAIN):
        if not isinstance(value, Node) or at is None:
            return None
        if value.op in REDUCES | {"tensor", "as_tensor", "asarray", "array"} and value.inputs:
            value = value.inputs[0]
            continue
        break
    if not isinstance(value, Node) or value.op != "getitem" or len(value.inputs) < 2 or at is None:
        return None
    base, index = value.inputs[:2]
    if not isinstance(base, Node) or not isinstance(index, Obj) or index.kind != "builtins.slice":
        return None
    ends = [e for e in _sides(index.args[1]) if e.terms == at.terms]
    return (base, ends[0].constant - 1 - at.constant) if ends else None


def _sides(value: Value) -> list[Linear]:
    """The end of a slice, also where the length of the series bounds it: ``min(len(series), t + 3)``."""
    given = value.inputs if isinstance(value, Node) and value.op in ("min", "max", "minimum", "maximum") else (value,)
    return [found for item in given if (found := linear(item)) is not None]


def _counter(value: Node) -> Node | None:
    """The number of the turn in which an element was made."""
    for _ in range(MAX_CHAIN):
        if value.op == "getitem" and len(value.inputs) > 1 and isinstance(value.inputs[1], Obj):
            ends = [n for a in value.inputs[1].args for n in _counters(a)]
            return ends[0] if ends else None
        if not value.inputs or not isinstance(value.inputs[0], Node):
            return None
        value = value.inputs[0]
    return None


def _counters(value: Value) -> list[Node]:
    if not isinstance(value, Node):
        return []
    if value.op == "counter":
        return [value] if value.inputs[:1] != (1,) and len(value.inputs) == 1 else []
    return [n for i in value.inputs for n in _counters(i)] if value.op in ("add", "sub", "min", "max") else []
