"""Tables of numbers that a program computes from constants, worked out: noise levels, their products and roots."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate

from trainwreck.code.rehearsal.domain import Items, Node, Obj, Value
from trainwreck.code.rehearsal.questions.roles import STRUCTURE

MOST = 5_000
"""Elements of a table that are worked out; schedules have up to 4,000 levels."""
FINE = 101
"""Values that stand for a number drawn evenly from 0 to 1."""
MAX_DEPTH = 60
Row = float | list[float]
KEEPS = (STRUCTURE - {"getitem", "element", "index_select", "gather", "flip", "narrow", "select", "roll", "split",
                      "chunk", "masked_select", "take_along_dim", "repeat", "diag"}) | {"buffer", "array", "asarray",
                                                                                       "astype", "copy"}  # fmt: skip
UNARY: Mapping[str, Callable[[float], float]] = {
    "sqrt": math.sqrt,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "square": lambda x: x * x,
    "exp": math.exp,
    "log": math.log,
    "cos": math.cos,
    "sin": math.sin,
    "tan": math.tan,
    "atan": math.atan,
    "arctan": math.atan,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "expit": lambda x: 1 / (1 + math.exp(-x)),
    "logsigmoid": lambda x: -math.log1p(math.exp(-x)),
    "log1p": math.log1p,
    "expm1": math.expm1,
    "abs": abs,
    "neg": lambda x: -x,
    "reciprocal": lambda x: 1 / x,
}
BINARY: Mapping[str, Callable[[float, float], float]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "true_divide": lambda a, b: a / b,
    "pow": lambda a, b: a**b,
    "maximum": max,
    "minimum": min,
}


class Unknown(Exception):
    """A value that is not known."""


def row(value: Value, index: Node | None = None) -> Row | None:
    """The numbers of a table (or one number); None where they aren't known.

    ``index``: a drawn time; what is taken out of a table by it stands for the whole table, and the time itself for
    all that it may be."""
    try:
        found = _row(value, index, 0, {})
    except (Unknown, ArithmeticError, ValueError, RecursionError, IndexError, TypeError):
        return None
    flat = found if isinstance(found, list) else [found]
    return found if all(isinstance(x, int | float) and math.isfinite(x) for x in flat) else None


def times(index: Node) -> list[float] | None:
    """All values that a drawn time may have: whole numbers of ``randint``, or an even grid of ``rand``."""
    if index.op in ("rand", "rand_like", "random"):
        return [i / (FINE - 1) for i in range(FINE)]
    if index.op in ("uniform", "uniform_"):
        ends = [i for i in index.inputs if isinstance(i, int | float)][:2]
        start, end = ends if len(ends) == 2 else (0.0, 1.0)
        return [start + (end - start) * i / (FINE - 1) for i in range(FINE)]
    if index.op in ("randint", "integers"):
        first = [i for i in index.inputs[:3] if not (isinstance(i, Node) and i.op in ("default_rng", "RandomState"))]
        numbers = []
        for item in first:
            if not isinstance(item, int) or isinstance(item, bool):
                break
            numbers.append(item)
        numbers = numbers[:2]
        low = index.options.get("low", numbers[0] if len(numbers) == 2 else 0)
        high = index.options.get("high", numbers[-1] if numbers else None)
        if isinstance(low, int) and isinstance(high, int) and 0 < high - low <= MOST:
            return [float(i) for i in range(low, high)]
    return None


def _row(value: Value, index: Node | None, depth: int, memo: dict[int, Row]) -> Row:
    if isinstance(value, bool) or depth > MAX_DEPTH:
        raise Unknown
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, tuple | Items):
        return _listed(value, index, depth, memo)
    if not isinstance(value, Node):
        raise Unknown
    if id(value) not in memo:
        memo[id(value)] = _computed(value, index, depth + 1, memo)
    return memo[id(value)]


def _listed(value: tuple[Value, ...] | Items, index: Node | None, depth: int, memo: dict[int, Row]) -> Row:
    items: Sequence[Value] = value if isinstance(value, tuple) else value.items
    if isinstance(value, Items) and (value.more or value.length not in (None, len(items))):
        raise Unknown
    found = [_row(i, index, depth + 1, memo) for i in items]
    if any(isinstance(f, list) for f in found):
        raise Unknown
    return [f for f in found if isinstance(f, float)]


def _computed(node: Node, index: Node | None, depth: int, memo: dict[int, Row]) -> Row:
    op = node.op
    if index is not None and node is index:
        found = times(index)
        if found is None:
            raise Unknown
        return found
    if node.turns and any(t.generic for t in node.turns) and node.options.get("inplace"):
        raise Unknown
    args = list(node.inputs[: max(len(node.inputs) - sum(k != "inplace" for k in node.options), 1)])

    def of(position: int) -> Row:
        return _row(args[position], index, depth, memo)

    if op in ("linspace", "arange", "full", "ones", "zeros"):
        return _made(op, node, args)
    if op in UNARY and args:
        return _each(UNARY[op], of(0))
    if op in BINARY and len(args) >= 2 and set(node.options) <= {"inplace"}:
        return _both(BINARY[op], of(0), of(1))
    if op in ("cumprod", "cumsum"):
        base = of(0)
        if not isinstance(base, list):
            raise Unknown
        return list(accumulate(base, BINARY["mul" if op == "cumprod" else "add"]))
    if op in ("clamp", "clip"):
        low = node.options.get("min", node.options.get("a_min", args[1] if len(args) > 1 else None))
        high = node.options.get("max", node.options.get("a_max", args[2] if len(args) > 2 else None))
        bounds = (-math.inf if low is None else low, math.inf if high is None else high)
        if not all(isinstance(b, int | float) for b in bounds):
            raise Unknown
        return _each(lambda x: min(max(x, bounds[0]), bounds[1]), of(0))
    if op == "flip":
        base = of(0)
        return base[::-1] if isinstance(base, list) else base
    if op in ("cat", "concat", "concatenate"):
        items = args[0] if isinstance(args[0], tuple) else args[0].items
        rows = [_row(i, index, depth, memo) for i in items]
        return [x for r in rows for x in (r if isinstance(r, list) else [r])]
    if op in ("getitem", "gather", "index_select", "take", "embedding"):
        return _taken(node, args, index, depth, memo)
    if op in KEEPS and args:
        return of(0)
    raise Unknown


def _made(op: str, node: Node, args: list[Value]) -> Row:
    names = {"linspace": ("start", "end", "steps"), "arange": (), "full": (), "ones": (), "zeros": ()}[op]
    numbers = [a for a in args if isinstance(a, int | float) and not isinstance(a, bool)]
    numbers += [node.options[n] for n in (*names, "stop", "num") if isinstance(node.options.get(n), int | float)]
    if op == "linspace":
        if len(numbers) < 3 or not 2 <= int(numbers[2]) <= MOST:
            raise Unknown
        start, end, count = float(numbers[0]), float(numbers[1]), int(numbers[2])
        return [start + (end - start) * i / (count - 1) for i in range(count)]
    if op == "arange":
        start, end, step = {1: (0, *numbers, 1), 2: (*numbers, 1), 3: tuple(numbers)}.get(len(numbers), (0, 0, 1))
        count = math.ceil((end - start) / step) if step else 0
        if not 0 < count <= MOST:
            raise Unknown
        return [float(start + step * i) for i in range(count)]
    if op == "full":
        filled = node.options.get("fill_value", args[1] if len(args) > 1 else None)
        size = args[0] if isinstance(args[0], int) else args[0][0] if isinstance(args[0], tuple) else None
        if isinstance(filled, int | float) and isinstance(size, int) and 0 < size <= MOST:
            return [float(filled)] * size
        raise Unknown
    size = args[0] if isinstance(args[0], int) else None
    if size is None or not 0 < size <= MOST:
        raise Unknown
    return [1.0 if op == "ones" else 0.0] * size


def _each(function: Callable[[float], float], value: Row) -> Row:
    return [function(x) for x in value] if isinstance(value, list) else function(value)


def _both(function: Callable[[float, float], float], one: Row, other: Row) -> Row:
    if isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            raise Unknown
        return [function(a, b) for a, b in zip(one, other, strict=True)]
    if isinstance(one, list):
        assert isinstance(other, float)
        return [function(a, other) for a in one]
    if isinstance(other, list):
        return [function(one, b) for b in other]
    return function(one, other)


def _taken(node: Node, args: list[Value], index: Node | None, depth: int, memo: dict[int, Row]) -> Row:
    """One element, a part of a table, or the whole of it where a drawn time picks."""
    base = _row(args[0], index, depth, memo)
    picks = list(args[1:])
    if node.op in ("gather", "index_select") and len(picks) > 1:
        picks = picks[1:]
    pick = node.options.get("index", picks[0] if picks else None)
    if isinstance(pick, tuple) and any(p is None for p in pick):
        rest = [p for p in pick if p is not None]
        pick = rest[0] if len(rest) == 1 else pick
    if not isinstance(base, list):
        if pick is None or pick is Ellipsis or isinstance(pick, tuple | Obj):
            return base
        raise Unknown
    if isinstance(pick, int) and not isinstance(pick, bool):
        return base[pick]
    if isinstance(pick, Obj) and all(a is None or isinstance(a, int) for a in pick.args):
        return base[slice(*(pick.args or (None,)))]
    if pick is None or pick is Ellipsis or isinstance(pick, tuple):
        several = pick if isinstance(pick, tuple) else ()
        if all(p is None or p is Ellipsis or isinstance(p, Obj) for p in several):
            return base
        raise Unknown
    if index is not None and isinstance(pick, Node):
        chosen = _row(pick, index, depth, memo)
        if isinstance(chosen, list) and all(x == int(x) and -len(base) <= x < len(base) for x in chosen):
            return [base[int(x)] for x in chosen]
    raise Unknown
