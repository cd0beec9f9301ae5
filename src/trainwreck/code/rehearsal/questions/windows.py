"""Windows of a series: does the window that the network is given hold the very element that it is to predict?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Place, Value, candidates
from trainwreck.code.rehearsal.graph import ancestors, parts
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.lags import ELEMENTWISE, columns_of, plain
from trainwreck.code.rehearsal.questions.paths import meets, statistic
from trainwreck.code.rehearsal.questions.roles import backwards
from trainwreck.core.row import Row

PASSES = ELEMENTWISE | frozenset(
    """batch element part unsqueeze squeeze view reshape flatten expand_dims contiguous transpose permute t cuda
    float32 newaxis clone detach stack column_stack either concatenate cat hstack concat""".split()
) - {"where"}
"""What leaves the elements of a window as they are, or puts windows beside each other."""
PICKS = frozenset(["element", "batch", "randint", "randperm", "permutation", "integers", "choice", "getitem"])
"""What an index is made of that chooses the rows of a batch."""
PLACES = frozenset(["arange", "randint", "integers", "randperm", "permutation"])
"""Arrays of numbers that are gone through one by one, or all at once."""
GATHERS = frozenset(["stack", "array", "asarray", "tensor", "as_tensor", "vstack"])


ADDS = frozenset(["add", "mul", "either", "where", "cat", "concat", "lerp", "addcmul"])
"""What makes a prediction of an output and data (the last value and a change), and compares nothing."""


class Linear(Row):
    """A sum of unknown numbers (``id`` of each, once) and a constant."""

    terms: tuple[int, ...]
    constant: int

    def less(self, other: Linear) -> int | None:
        """The difference, where it is a number."""
        return self.constant - other.constant if self.terms == other.terms else None


class Window(Row):
    """Elements ``first`` to ``last`` (included) of ``series``."""

    series: Node
    first: Linear
    last: Linear
    place: Place | None
    columns: frozenset[int] | None = None
    """Of a window of whole rows, by number; None for all of them."""

    @property
    def single(self) -> bool:
        return self.first == self.last


def target_in_the_window(run: Rehearsing) -> Iterator[Answer]:
    """A single element, or what follows from it on, is predicted from a window that reaches to it already.

    Not meant: a window that is to be given back (as it is, or one element on), and windows in which something was
    put out before the network sees them."""
    for event in backwards(run):
        for node, inside, outside in meets(event.subject):
            if node.op in ADDS:
                continue
            targets = [w for node in outside for w in _wanted(node)]
            given = [w for node in inside for w in windows_behind(node, learned=True)] if targets else []
            for target in targets:
                held = next((w for w in given if _holds(w, target)), None)
                if held is not None and target.place is not None:
                    text = "the window that the network is given ends with, or behind, what it is to predict"
                    proof = tuple(p for p in (held.place, event.place) if p is not None)
                    yield Answer(target.place, text, proof)
                    return


def _wanted(value: Node) -> list[Window]:
    """The windows that a target is made of. What is only taken off them (the value before, of a change) is known."""
    found = windows_behind(value, learned=False)
    known: set[int] = set()
    for node in ancestors(value, through=lambda n: n.op in PASSES or picks(n)):
        if node.op in ("sub", "div") and len(node.inputs) > 1:
            new, old = ([w for p in parts(side) for w in windows_behind(p, learned=False)] for side in node.inputs[:2])
            known |= {id(w.place[0]) for w in old if w.place is not None and any(_after(n, w) for n in new)}
    return [w for w in found if w.place is None or id(w.place[0]) not in known]


def _after(new: Window, old: Window) -> bool:
    gap = new.first.less(old.last)
    return gap is not None and gap > 0 and plain(new.series) is plain(old.series)


def _holds(window: Window, target: Window) -> bool:
    wanted = plain(target.series)
    if window.single or not (_same_columns(window, target) or any(plain(c) is wanted for c in _given(window))):
        return False
    start, end = target.first.less(window.first), window.last.less(target.first)
    if start is None or end is None or end < 0:
        return False
    beyond = target.last.less(window.last)
    if target.single:
        return start > 0
    if start == 0 and beyond is not None and beyond < 0:
        return True  # the first part of the window itself
    # of equal length: each element has its own target, some steps ahead, which a causal network does not see
    # (shorter by one: shifted twice, which another rule tells)
    return start > 1 and beyond is not None and beyond >= 0 and beyond not in (start, start - 1)


def _same_columns(window: Window, target: Window) -> bool:
    """True where the target is some columns of the very table that the window is cut from, and it has those."""
    if target.columns is None or plain(window.series) is not plain(target.series):
        return False
    return window.columns is None or target.columns <= window.columns


def _given(window: Window) -> list[Node]:
    """The series that the window holds."""
    found = columns(window.series)
    if window.columns is None:
        return found
    return [found[n] for n in window.columns if n < len(found)] if len(found) > 1 else []


def columns(series: Node) -> list[Node]:
    """The columns (or rows) of a table that windows are cut from along the other axis; a series by itself."""
    found = [column for column, by in columns_of(series) if isinstance(column, Node) and by == 0]
    return found if len(found) > 1 else _rows(series) or [series]


def _rows(value: Node, depth: int = 0) -> list[Node]:
    """The rows of a table that lie one below the other: ``stack([a, b])``, ``concatenate([rows, c[None]])``."""
    if depth > 6 or not value.inputs:
        return []
    if value.op in ELEMENTWISE and isinstance(value.inputs[0], Node):
        data = [n for i in value.inputs for n in parts(i) if not statistic(n)]
        return _rows(data[0], depth + 1) if len(data) == 1 else []
    axis = value.options.get("axis", value.options.get("dim", (*value.inputs, 0)[1] if len(value.inputs) > 1 else 0))
    held = value.inputs[0]
    items = list(held) if isinstance(held, tuple) else held.items if isinstance(held, Items) else []
    if axis != 0 or not items or (isinstance(held, Items) and held.more):
        return []
    if value.op in ("stack", "vstack"):
        return [item for item in items if isinstance(item, Node)]
    if value.op not in ("concatenate", "concat", "cat"):
        return []
    found = []
    for item in items:
        if isinstance(item, Node) and item.op == "getitem" and len(item.inputs) > 1 and item.inputs[1] is None:
            found.append(item.inputs[0])
        elif isinstance(item, Node):
            found += _rows(item, depth + 1)
    return found


def windows_behind(value: Node, *, learned: bool, through: frozenset[str] = PASSES) -> list[Window]:
    """The windows behind a value: the nearest ones, through what leaves their elements as they are.

    ``learned``: and through what a network makes of them."""
    found: list[Window] = []
    queue, seen = [value], {id(value)}
    while queue and len(seen) < 600:
        node = queue.pop()
        if picks(node) or _further_axis(node):
            queue += [n for n in parts(node.inputs[0]) if id(n) not in seen]
            seen |= {id(n) for n in parts(node.inputs[0])}
            continue
        window = window_of(node)
        if window is not None:
            found.append(window)
            continue
        if node.op == "param" or not (node.op in through or (learned and node.grad)):
            continue
        for item in node.inputs:
            for inner in parts(item):
                if id(inner) not in seen:
                    seen.add(id(inner))
                    queue.append(inner)
    return found


def _further_axis(node: Node) -> bool:
    """True for ``x[..., None]`` and ``x[:, None]``."""
    index = node.inputs[1] if node.op == "getitem" and len(node.inputs) > 1 else ()
    return isinstance(index, tuple) and None in index and all(i is None or _whole(i) for i in index)


def picks(node: Node) -> bool:
    """True for rows that are only chosen for a batch, or for one part of the data."""
    index = node.inputs[1] if node.op == "getitem" and len(node.inputs) > 1 else None
    if isinstance(index, Obj) and index.kind == "builtins.slice" and _listed(node.inputs[0]):
        return True
    return isinstance(index, Node) and index.op in PICKS and isinstance(node.inputs[0], Node)


def _listed(value: Value) -> bool:
    """True for windows that were made one by one and put together: their first axis is no time."""
    for _ in range(8):
        if not isinstance(value, Node) or not value.inputs:
            return False
        if value.op in GATHERS and isinstance(value.inputs[0], Items):
            axis = value.options.get("axis", value.options.get("dim", 0))
            return value.inputs[0].more and axis == 0 and not any(isinstance(i, int) for i in value.inputs[1:])
        if value.op not in ELEMENTWISE and not (value.op == "getitem" and picks(value)):
            return False
        value = value.inputs[0]
    return False


def window_of(node: Node, depth: int = 0) -> Window | None:
    """What ``series[i : i + n]``, ``series[i + n]`` and parts of such windows are; None for anything else."""
    if depth > 6 or node.grad:
        return None
    if node.op in GATHERS and node.inputs and isinstance(node.inputs[0], Items) and node.inputs[0].items:
        last = node.inputs[0].items[-1]
        return window_of(last, depth + 1) if isinstance(last, Node) else None
    if node.op == "sliding_window_view" and len(node.inputs) > 1 and isinstance(node.inputs[1], int):
        series = node.inputs[0]
        here = (id(node),)
        return Window(series, Linear(here, 0), Linear(here, node.inputs[1] - 1), node.place)
    if node.op != "getitem" or len(node.inputs) < 2 or not isinstance(node.inputs[0], Node):
        return None
    base, index = node.inputs[0], node.inputs[1]
    inner = window_of(base, depth + 1)
    if (chosen := _of_rows(index)) is not None:
        rows = window_of(Node("getitem", (base, index[0]), place=node.place), depth + 1)
        return rows._replace(columns=chosen) if rows is not None else None
    if inner is not None and inner.columns is None and base.op == "getitem" and _axis(index) != _axis(base.inputs[1]):
        return inner  # some columns of the window
    if isinstance(index, tuple) and len(index) == TABLE and _whole(index[1]) and isinstance(index[0], Obj):
        index = index[0]  # all columns
    row: tuple[int, ...] = ()
    if isinstance(index, tuple) and len(index) == TABLE and _one_row(index[0]) and isinstance(index[1], Obj):
        row, index = (number(index[0]),), index[1]  # where a row begins is one more unknown number
    if isinstance(index, tuple):
        whole = [i for i in index if i is not None and not _whole(i)]
        if len(whole) != 1 or index[-1] is not whole[0]:
            return None
        index = whole[0]
    if inner is not None and not inner.single:
        return part_by_numbers(inner, index, node)
    if isinstance(index, Obj):
        start, stop = index.args[0], index.args[1]
        first, end = linear(start), linear(stop)
        if first is None or end is None or not first.terms or index.args[2] not in (None, 1):
            return None
        first, end = (Linear(tuple(sorted((*side.terms, *row))), side.constant) for side in (first, end))
        return Window(base, first, Linear(end.terms, end.constant - 1), node.place)
    if (ends := _spread(index)) is not None:
        return Window(base, *ends, node.place)
    at = linear(index)
    return Window(base, at, at, node.place) if at is not None and at.terms else None


def _one_row(index: Value) -> TypeGuard[Node]:
    return isinstance(index, Node) and not index.shape.open and index.shape.dims == ()


def _spread(index: Value) -> tuple[Linear, Linear] | None:
    """From where to where ``starts[:, None] + arange(n)`` takes elements, counted from each start."""
    sides = index.inputs if isinstance(index, Node) and index.op == "add" and len(index.inputs) == TABLE else ()
    for one, other in (sides, sides[::-1]) if sides else ():
        steps, start = _without_axis(other), _without_axis(one)
        numbers = steps.inputs if isinstance(steps, Node) and steps.op == "arange" else ()
        if start is one or not 0 < len(numbers) <= TABLE or not all(isinstance(n, int) for n in numbers):
            continue
        low, end = (0, *numbers)[-2:]
        at = linear(start)
        if at is not None and at.terms:
            return Linear(at.terms, at.constant + low), Linear(at.terms, at.constant + end - 1)
    return None


def _without_axis(value: Value) -> Value:
    """What an axis of length one was added to."""
    while isinstance(value, Node) and (_further_axis(value) or value.op in ("unsqueeze", "expand_dims")):
        value = value.inputs[0]
    return value


def _of_rows(index: Value) -> frozenset[int] | None:
    """The columns, by number, of an index that takes a span of rows, or one of them, and some columns of those."""
    if not isinstance(index, tuple) or len(index) != TABLE or index[0] is None or _whole(index[0]):
        return None
    if isinstance(index[1], int) and not isinstance(index[1], bool):
        return frozenset([index[1]])
    columns = index[1].args if isinstance(index[1], Obj) and index[1].kind == "builtins.slice" else ()
    if len(columns) < TABLE or not all(isinstance(c, int) and c >= 0 for c in columns[:2] if c is not None):
        return None
    first, end = columns[0] or 0, columns[1]
    return frozenset(range(first, end)) if isinstance(end, int) and end - first < MOST_COLUMNS else None


TABLE = 2
"""Axes of a table of rows and columns."""
MOST_COLUMNS = 200


def _axis(index: Value) -> int:
    """The axis that the last of the indices picks from: from the left, or -1 where all before it are left out."""
    return (len(index) - 1 if Ellipsis not in index else -1) if isinstance(index, tuple) else 0


def _whole(index: Value) -> bool:
    return index is Ellipsis or (isinstance(index, Obj) and all(a is None for a in index.args))


def part_by_numbers(window: Window, index: Value, node: Node) -> Window | None:
    """A part of a window by numbers, counted from its start or from its end."""

    def at(number: int) -> Linear:
        origin = window.last if number < 0 else window.first
        return Linear(origin.terms, origin.constant + number + (1 if number < 0 else 0))

    if isinstance(index, int):
        return Window(window.series, at(index), at(index), node.place)
    if not isinstance(index, Obj) or index.kind != "builtins.slice" or index.args[2] not in (None, 1):
        return None
    start, stop = index.args[0], index.args[1]
    if not all(e is None or isinstance(e, int) for e in (start, stop)):
        return None
    first = window.first if start is None else at(start)
    end = window.last if stop is None else at(stop)
    last = end if stop is None else Linear(end.terms, end.constant - 1)
    return Window(window.series, first, last, node.place)


def linear(value: Value, depth: int = 0) -> Linear | None:
    known = [c for c in candidates(value) if c is not None]
    if len(known) != 1 or depth > 6:
        return None
    at = known[0]
    if isinstance(at, bool) or not isinstance(at, int | Node):
        return None
    if isinstance(at, int):
        return Linear((), at)
    if at.op in ("add", "sub") and len(at.inputs) == 2:
        one, other = (linear(i, depth + 1) for i in at.inputs)
        if one is None or other is None:
            return None
        if at.op == "add":
            return Linear(tuple(sorted((*one.terms, *other.terms))), one.constant + other.constant)
        return Linear(one.terms, one.constant - other.constant) if not other.terms else None
    return Linear((number(at),), 0)


def number(node: Node) -> int:
    """Stands for an unknown number: the same for the turns of two loops that count alike beside each other, and for an
    array of places and each of its elements (``[x[e] for e in ends]`` beside ``x[ends + 1]``)."""
    whole = node.inputs[0] if node.op == "element" and len(node.inputs) == 1 else None
    if isinstance(whole, Node) and whole.op in PLACES:
        return id(whole)
    if node.op != "counter" or not node.inputs or not all(isinstance(i, int) for i in node.inputs):
        return id(node)
    return hash(("counter", node.inputs, tuple(id(turn) for turn in node.turns)))
