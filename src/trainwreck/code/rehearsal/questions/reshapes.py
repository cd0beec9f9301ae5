"""Does a ``view`` or ``reshape`` only split and merge neighbouring axes, or is it used where axes should be swapped?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import permutations

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.contents import Axis, Content
from trainwreck.code.rehearsal.questions.factors import Axes, Memo, arguments, axes, target
from trainwreck.code.rehearsal.questions.roles import users

MOST = 6
"""So many axes are tried in every order: 720 ways."""
ERRORS = frozenset(["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
                    "binary_cross_entropy_with_logits"])  # fmt: skip


def mixed(run: Rehearsing) -> Iterator[Answer]:
    """The sizes asked for are those of the value in another order: the numbers are read in their old order."""
    memo: Memo = run.memo.setdefault("factors", {})
    for node in run.nodes:
        if node.op not in ("view", "reshape") or node.place is None or not node.inputs:
            continue
        base = axes(node.inputs[0], memo) if isinstance(node.inputs[0], Node) else None
        wanted = target(node, memo)
        if wanted is None:
            continue
        base = base if base is not None else _of_itself(node, wanted)
        if base is None or not scrambles(base, wanted) or _order_is_free(run, node):
            continue
        rest = arguments(node)
        asked = rest[0] if len(rest) == 1 and isinstance(rest[0], tuple) else rest
        text = f"{_shown(node.inputs[0])} is read as {_asked(asked)}: this does not swap axes, it mixes the values"
        yield Answer(node.place, text, tuple(p for p in (node.inputs[0].place,) if p is not None))


def _of_itself(node: Node, wanted: Axes) -> Axes | None:
    """The axes of a value of which only that is known that its own sizes are all asked for."""
    flat = [f for axis in wanted for f in axis]
    places = [f[2] for f in flat if isinstance(f, tuple) and f[1] == id(node.inputs[0])]
    if len(places) != len(flat) or sorted(places) != list(range(len(flat))):
        return None
    return tuple((("axis", id(node.inputs[0]), at),) for at in range(len(flat)))


def scrambles(base: Axes, wanted: Axes) -> bool:
    """True where ``wanted`` can be had by splitting and merging neighbours only after the axes are swapped."""
    units: list[Axis] = [(f,) for axis in base for f in axis]
    if len(units) > MOST or len(units) < 2 or Content.of(_flat(base)) != Content.of(_flat(wanted)):
        return False
    asked = [axis for axis in wanted if axis]
    if units != asked and Counter(units) == Counter(asked):
        return True  # the very axes in another order
    tried = list(_split(units, asked))
    if any(neighbours(some, asked) for some in tried):
        return False
    return any(neighbours(list(order), asked) for some in tried for order in permutations(some))


def _split(units: list[Axis], asked: list[Axis]) -> Iterator[list[Axis]]:
    """The axes as they are, and with one of them split by a number that is asked for (the heads of an attention)."""
    yield units
    numbers = {axis[0] for axis in asked if len(axis) == 1 and isinstance(axis[0], int)}
    for place, unit in enumerate(units):
        for number in numbers if len(units) < MOST else ():
            size = unit[0]
            if isinstance(size, int) and isinstance(number, int) and size > number and size % number == 0:
                for pair in ([(number,), (size // number,)], [(size // number,), (number,)]):
                    yield [*units[:place], *pair, *units[place + 1 :]]


def _flat(found: Axes) -> Axis:
    return tuple(f for axis in found for f in axis)


def neighbours(units: list[Axis], asked: list[Axis]) -> bool:
    """True where each axis asked for is some neighbouring axes merged, or several together are one axis split."""
    i = j = 0
    while i < len(units) and j < len(asked):
        have, want = units[i], asked[j]
        i, j = i + 1, j + 1
        grown = ""
        while Content.of(have) != Content.of(want):
            mine, its = Content.of(have), Content.of(want)
            if mine.divides(its) and grown != "asked" and i < len(units):
                have, i, grown = (*have, *units[i]), i + 1, "units"
            elif its.divides(mine) and grown != "units" and j < len(asked):
                want, j, grown = (*want, *asked[j]), j + 1, "asked"
            else:
                return False
    return i == len(units) and j == len(asked)


def _order_is_free(run: Rehearsing, node: Node) -> bool:
    """True where the values only meet others one by one in an average: any order does, if it is the same."""
    after = users(run).get(id(node), ())
    return bool(after) and all(u.op in ERRORS for u in after)


def _shown(node: Node) -> str:
    shape = node.shape
    return str(shape) if shape.dims else "the value"


def _asked(values: object) -> str:
    listed = values if isinstance(values, tuple) else (values,)
    return "(" + ", ".join(str(v) if isinstance(v, int) else "?" for v in listed) + ")"


def columns_as_rows(run: Rehearsing) -> Iterator[Answer]:
    """A few long columns, one below the other, are read as rows: ``tensor([ages, sizes]).view(-1, 2)``."""
    for node in run.nodes:
        if node.op not in ("view", "reshape") or node.place is None or not node.inputs:
            continue
        table = node.inputs[0]
        sizes = node.inputs[1] if len(node.inputs) == 2 and isinstance(node.inputs[1], tuple) else node.inputs[1:]
        if not isinstance(table, Node) or len(sizes) != 2 or not isinstance(sizes[1], int):
            continue
        if sizes[0] == sizes[1] or sizes[1] < 2 or table.op not in LISTED or not table.inputs:
            continue
        if table.op in ("stack", "vstack") and table.get("dim", 1, table.options.get("axis", 0)) != 0:
            continue
        held = table.inputs[0]
        columns = list(held) if isinstance(held, tuple) else list(held.items) if isinstance(held, Items) else []
        if (isinstance(held, Items) and held.more) or len(columns) != sizes[1]:
            continue
        if all(_long(column, sizes[1]) for column in columns):
            yield Answer(node.place, f"{sizes[1]} columns that lie one below the other are read as rows of {sizes[1]}")


LISTED = frozenset(["tensor", "as_tensor", "array", "asarray", "stack", "vstack"])


def _long(column: object, count: int) -> bool:
    """True for a row of numbers that has more elements than there are such rows."""
    if isinstance(column, Items):
        plain = all(not isinstance(i, tuple | Items) for i in column.items)
        scalars = all(not i.shape.dims for i in column.items if isinstance(i, Node))
        return plain and scalars and (column.more or len(column.items) > count)
    if not isinstance(column, Node) or column.shape.open or len(column.shape.dims) != 1:
        return False
    size = column.shape.dims[0]
    return size is None or size > count
