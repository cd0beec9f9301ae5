"""One mean and one spread for a whole table whose columns are of different sizes: the small ones all but vanish."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node, Obj, Value
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.paths import statistic
from trainwreck.code.rehearsal.questions.roles import JOINS, trained
from trainwreck.code.rehearsal.questions.scale import KEEPS, LAYERS, Size, size
from trainwreck.code.rehearsal.questions.terms import axes
from trainwreck.core.row import Row

SMALL = 0.1
"""Spread of a column after the scaling: its weights' gradients are a tenth of what they would be, and a step of theirs
changes the output by a hundredth."""
SMALL_OF_RANGE = 0.015
"""The same where a range is divided by: of numbers that are equally likely it is 3.5 spreads, of a bell curve six."""
MANY = 30
"""Columns of which nothing else is known, where their number isn't: the more, the less one of them weighs."""
SPREADS = frozenset(["std", "nanstd"])
ENDS = frozenset([("max", "min"), ("amax", "amin")])
KEPT = frozenset(["add", "clamp", "clip", "maximum", "item", "float"])
NUMBERS = frozenset(["array", "asarray", "tensor", "as_tensor", "float32", "astype", "from_numpy", "float", "to"])
ORDER = frozenset(
    "getitem batch element part split index_select take pin_memory cpu cuda contiguous clone copy".split()
)


class Columns(Row):
    """The sizes of some columns of a table, by their numbers, and of each other one."""

    known: dict[int, Size]
    rest: Size | None
    width: int | None


def one_scale(run: Rehearsing) -> Iterator[Answer]:
    """The input of a first layer was divided by the spread of all numbers of its table, of which one column spreads so
    much more than another that it alone decides."""
    memo: dict[int, Size | None] = run.memo.setdefault("sizes", {})
    for layer in trained(run):
        given = layer.inputs[0] if layer.op in LAYERS and layer.inputs else None
        divided = _divided(given) if isinstance(given, Node) and not given.grad else None
        spread = _over_all(divided.inputs[1]) if divided is not None else None
        ends = _range(divided.inputs[1]) if divided is not None and spread is None else None
        figure = spread or ends
        table = figure.inputs[0] if figure is not None and figure.inputs else None
        if figure is None or figure.place is None or not isinstance(table, Node):
            continue
        columns = sizes(table, memo)
        least, whole = _least(columns, ends is not None) if columns is not None else (math.inf, 0.0)
        if whole > 0 and least / whole < (SMALL if spread is not None else SMALL_OF_RANGE):
            name = "spread" if spread is not None else "range"
            text = (
                f"one {name} for all columns (about {whole:.2g}), and the spread of one of them is about {least:.2g}: "
                "what it holds all but vanishes; take the figures of each column (axis 0)"
            )
            yield Answer(figure.place, text, tuple(p for p in (divided and divided.place, layer.place) if p))
            return


def _divided(value: Node) -> Node | None:
    """The last division on the way of data, with which they are scaled."""
    at: Value = value
    for _ in range(40):
        if not isinstance(at, Node) or not at.inputs:
            return None
        if at.op == "div" and len(at.inputs) > 1:
            return at
        if at.op not in KEEPS - JOINS - {"setitem", "either", "attribute"}:
            return None
        at = at.inputs[0]
    return None


def _over_all(value: Value) -> Node | None:
    """The spread of all numbers of a table, behind what keeps it above zero."""
    for _ in range(6):
        if not isinstance(value, Node) or not value.inputs:
            return None
        if value.op in SPREADS:
            return value if _of_columns(value.inputs[0]) and axes(value) is None else None
        value = next((i for i in value.inputs if isinstance(i, Node)), None)
    return None


def _of_columns(table: Value) -> bool:
    """True for a table of rows and columns."""
    for _ in range(8):
        if not isinstance(table, Node) or not table.shape.open or table.op == "column_stack":
            return isinstance(table, Node) and (table.shape.open or len(table.shape.dims) == 2)
        table = table.inputs[0] if table.inputs and table.op in ORDER | NUMBERS else None
    return False


def _range(value: Value) -> Node | None:
    """The largest of all numbers of a table, from which their smallest is taken off."""
    for _ in range(4):
        if not isinstance(value, Node) or not value.inputs:
            return None
        if value.op == "sub" and len(value.inputs) > 1:
            high, low = value.inputs[:2]
            both = isinstance(high, Node) and isinstance(low, Node) and (high.op, low.op) in ENDS
            if not both or not isinstance(high, Node) or not isinstance(low, Node) or len(high.inputs) != 1:
                return None
            same = high.inputs[0] is low.inputs[0] and len(low.inputs) == 1
            return high if same and _of_columns(high.inputs[0]) and axes(high) is None else None
        value = next((i for i in value.inputs if isinstance(i, Node)), None) if value.op in KEPT else None
    return None


def _least(columns: Columns, ends: bool) -> tuple[float, float]:
    """(the smallest spread of a column that has any, the spread of all numbers together; ``ends``: their range)"""
    held = list(columns.known.values())
    if columns.rest is not None:
        held += [columns.rest] * max(0, (columns.width or MANY) - len(held))
    if len(held) < 2:
        return math.inf, 0.0
    least = min((s.spread for s in held if s.spread > 0), default=math.inf)
    if ends:
        high, low = max(s.centre + 2 * s.spread for s in held), min(s.centre - 2 * s.spread for s in held)
        return least, high - low
    centre = sum(s.centre for s in held) / len(held)
    square = sum(s.rms**2 for s in held) / len(held) - centre**2
    return least, math.sqrt(max(square, 0.0))


def sizes(table: Value, memo: dict[int, Size | None], depth: int = 0) -> Columns | None:
    """The sizes of the columns as far as the program makes them; None where something on the way isn't known."""
    if not isinstance(table, Node) or depth > 40:
        return None
    width = table.shape.dims[-1] if not table.shape.open and table.shape.dims else None
    inputs = table.inputs
    if table.op == "setitem" and len(inputs) > 2:
        return _written(table, memo, depth)
    if (table.op in JOINS or table.op == "column_stack") and inputs:
        return _joined(table, memo, depth)
    if table.op in ORDER or (table.op in NUMBERS and isinstance(inputs[0] if inputs else None, Node)):
        index = inputs[1] if table.op == "getitem" and len(inputs) > 1 else None
        return None if isinstance(index, tuple | str) or not inputs else sizes(inputs[0], memo, depth + 1)
    if table.op in ("add", "sub", "mul", "div") and len(inputs) > 1:
        if isinstance(inputs[1], Node) and statistic(inputs[1]):
            return None  # scaled by a figure of its own: what is left of the differences isn't known
        return _combined(table, memo, depth)
    if (drawn := _drawn(table)) is not None:
        return drawn
    whole = size(table, memo)
    return Columns({}, whole, width) if whole is not None and not _by_column(table) else None


def _drawn(table: Node) -> Columns | None:
    """``normal([0, 5], [1, 40], size=(n, 2))``: each column has a centre and a spread of its own."""
    if table.op not in ("normal", "uniform"):
        return None
    given = table.inputs if table.full else table.inputs[1:]  # a method: the first is the generator itself
    named = (("loc", "mean"), ("scale", "std")) if table.op == "normal" else (("low",), ("high",))
    ends = []
    for at, names in enumerate(named):
        value = next((table.options[n] for n in names if n in table.options), given[at] if at < len(given) else None)
        ends.append(_numbers(value) or ([float(value)] if isinstance(value, int | float) else []))
    width = max(len(e) for e in ends)
    if width < 2 or any(len(e) not in (1, width) for e in ends):
        return None
    pairs = zip(*(e * width if len(e) == 1 else e for e in ends), strict=True)
    if table.op == "normal":
        return Columns({k: Size(a, abs(b)) for k, (a, b) in enumerate(pairs)}, None, width)
    return Columns({k: Size((a + b) / 2, abs(b - a) / math.sqrt(12)) for k, (a, b) in enumerate(pairs)}, None, width)


def _by_column(table: Node) -> bool:
    """True for draws that are told a list of centres or spreads: each column has its own."""
    return any(isinstance(i, Items | Node) for i in (*table.inputs[1:], *table.options.values()) if not _shape(i))


def _shape(value: Value) -> bool:
    return isinstance(value, tuple) or (isinstance(value, Node) and value.op in ("len", "counter"))


def _written(table: Node, memo: dict[int, Size | None], depth: int) -> Columns | None:
    """``x[:, k] = ...``"""
    below, index = sizes(table.inputs[0], memo, depth + 1), table.inputs[2]
    if below is None or not isinstance(index, tuple) or len(index) != 2 or not _whole(index[0]):
        return None
    mine = size(table.inputs[1], memo)
    if mine is None or not isinstance(index[1], int) or isinstance(index[1], bool):
        return None
    place = index[1] + (below.width or 0) if index[1] < 0 else index[1]
    return Columns({**below.known, place: mine}, below.rest, below.width)


def _whole(index: Value) -> bool:
    return index is Ellipsis or (
        isinstance(index, Obj) and index.kind == "builtins.slice" and set(index.args) == {None}
    )


def _joined(table: Node, memo: dict[int, Size | None], depth: int) -> Columns | None:
    """Columns, or tables of them, beside each other."""
    held = table.inputs[0]
    items = list(held) if isinstance(held, tuple) else list(held.items) if isinstance(held, Items) else []
    rest = table.inputs[1:2] if table.op not in ("hstack", "column_stack") else ()
    axis = table.options.get("dim", table.options.get("axis", rest[0] if rest else 0))
    if (isinstance(held, Items) and held.more) or table.op == "vstack":
        return None
    if table.op not in ("hstack", "column_stack") and axis not in (1, -1):
        return None
    found: dict[int, Size] = {}
    for item in items:
        flat = isinstance(item, Node) and not item.shape.open and len(item.shape.dims) == 1
        if flat:
            known = size(item, memo)
            if known is None:
                return None
            found[len(found)] = known
            continue
        inner = sizes(item, memo, depth + 1)
        if inner is None or inner.width is None:
            return None
        start = len(found)
        for k in range(inner.width):
            one = inner.known.get(k, inner.rest)
            if one is None:
                return None
            found[start + k] = one
    return Columns(found, None, len(found))


def _combined(table: Node, memo: dict[int, Size | None], depth: int) -> Columns | None:
    """A table and a number for each column, or one number for all."""
    one, other = (_side(i, memo, depth) for i in table.inputs[:2])
    if one is None or other is None:
        return None
    join = JOINED[table.op]
    width = one.width or other.width
    places = {*one.known, *other.known}
    rest = join(one.rest, other.rest) if one.rest is not None and other.rest is not None else None
    found = {}
    for k in places:
        a, b = one.known.get(k, one.rest), other.known.get(k, other.rest)
        joined = join(a, b) if a is not None and b is not None else None
        if joined is None:
            return None
        found[k] = joined
    return Columns(found, rest, width) if found or rest is not None else None


def _side(value: Value, memo: dict[int, Size | None], depth: int) -> Columns | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Columns({}, Size(float(value), 0.0), None)
    numbers = _numbers(value)
    if numbers:
        return Columns({k: Size(n, 0.0) for k, n in enumerate(numbers)}, None, len(numbers))
    return sizes(value, memo, depth + 1)


def _numbers(value: Value) -> list[float]:
    """The numbers of a row that is written out."""
    for _ in range(4):
        if not isinstance(value, Node) or value.op not in NUMBERS or not value.inputs:
            break
        value = value.inputs[0]
    items = value.items if isinstance(value, Items) and not value.more else value if isinstance(value, tuple) else ()
    known = [float(n) for n in items if isinstance(n, int | float) and not isinstance(n, bool)]
    return known if len(known) == len(items) else []


def _times(one: Size, other: Size) -> Size:
    centre = one.centre * other.centre
    return Size(centre, math.sqrt(max(0.0, (one.rms * other.rms) ** 2 - centre**2)))


def _over(one: Size, other: Size) -> Size | None:
    return (
        Size(one.centre / other.centre, one.spread / abs(other.centre)) if other.centre and not other.spread else None
    )


JOINED: dict[str, Callable[[Size, Size], Size | None]] = {
    "add": lambda a, b: Size(a.centre + b.centre, math.hypot(a.spread, b.spread)),
    "sub": lambda a, b: Size(a.centre - b.centre, math.hypot(a.spread, b.spread)),
    "mul": _times,
    "div": _over,
}

__all__ = ["one_scale", "sizes"]
