"""Computations that are alike: whether two values hold the same numbers."""

from __future__ import annotations

from collections.abc import Callable

from trainwreck.code.rehearsal.domain import External, Items, Node, Table, Value
from trainwreck.code.rehearsal.questions.roles import JOINS, STRUCTURE

RANDOM = frozenset(
    """randn rand randint randperm normal uniform randn_like rand_like randint_like bernoulli multinomial dropout
    sample choice random shuffle standard_normal permutation integers rsample gauss betavariate beta""".split()
)


Drawn = Callable[[Node], object]
"""What names the numbers of a draw whose seed is known; None for one that gives other numbers each time."""


def canon(value: Value, depth: int = 0, memo: dict[int, object] | None = None, drawn: Drawn | None = None) -> object:
    """A computation without randomness by what it does: two that are alike give the same tensor.

    ``drawn``: and with draws of which it knows the numbers."""
    memo = {} if memo is None else memo
    if isinstance(value, tuple):
        return tuple(canon(v, depth + 1, memo, drawn) for v in value)
    if isinstance(value, Items):
        return ("list", *(canon(v, depth + 1, memo, drawn) for v in value.items)) if not value.more else id(value)
    if not isinstance(value, Node):
        return value if isinstance(value, int | float | str | bool | None) else _slice(value)
    if id(value) in memo:
        return memo[id(value)]
    if value.op in ALIKE and len(value.inputs) == 1 and isinstance(value.inputs[0], Node):
        return canon(value.inputs[0], depth + 1, memo, drawn)
    plain = (
        value.op not in RANDOM and depth < 40 and (value.op in _FIXED or (drawn is not None and value.op in COUNTED))
    )
    made: object = id(value)
    if drawn is not None and value.op in RANDOM and (key := drawn(value)) is not None:
        made = ("draw", key)
    elif plain and value.inputs:
        options = tuple(sorted((k, str(v)) for k, v in value.options.items() if not isinstance(v, Node | Table)))
        inner = tuple(canon(i, depth + 1, memo, drawn) for i in value.inputs)
        made = (value.op, options, inner) if value.op != "attribute" else (value.op, value.name, inner)
    elif value.op == "batch" and value.owner is not None and len(value.inputs) == 1:
        taken = (id(value.owner), *(id(t) for t in value.turns), *(id(p[0]) for p in value.stack))
        where = id(value.place[0]) if value.place is not None else 0
        made = ("batch", where, taken, canon(value.inputs[0], depth + 1, memo, drawn))
    memo[id(value)] = made
    return made


ALIKE = frozenset(["clone", "copy", "deepcopy", "contiguous", "from_numpy", "numpy", "as_tensor", "detach"])
"""What gives the same numbers in another place."""
COUNTED = frozenset(
    """arange linspace len size attribute mod remainder floor_divide where lt gt le ge eq ne sin cos round floor long
    zeros ones zeros_like ones_like full full_like meshgrid roll flip affine_grid grid_sample masked_fill setitem and or
    invert""".split()
)
"""What else gives the same of the same: asked only beside draws, which places are counted for."""
_FIXED = (
    STRUCTURE
    | JOINS
    | frozenset(
        """add sub mul div pow neg abs exp log sqrt clamp relu tanh sigmoid mean std sum min max normalize softmax
    permute pad conv1d conv2d interpolate""".split()
    )
) - frozenset(["element", "batch"])


def _slice(value: Value) -> object:
    if isinstance(value, External):
        return ("external", value.dotted)
    kind = getattr(value, "kind", "")
    ends = getattr(value, "args", ())
    if kind == "builtins.slice" and all(e is None or isinstance(e, int) for e in ends):
        return ("slice", *ends)
    return id(value)
