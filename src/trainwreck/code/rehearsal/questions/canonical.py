"""Computations that are alike: whether two values hold the same numbers."""

from __future__ import annotations

from trainwreck.code.rehearsal.domain import Items, Node, Table, Value
from trainwreck.code.rehearsal.questions.roles import JOINS, STRUCTURE

RANDOM = frozenset(
    """randn rand randint randperm normal uniform randn_like rand_like randint_like bernoulli multinomial dropout
    sample choice random shuffle standard_normal permutation integers rsample gauss betavariate beta""".split()
)


def canon(value: Value, depth: int = 0, memo: dict[int, object] | None = None) -> object:
    """A computation without randomness by what it does: two that are alike give the same tensor."""
    memo = {} if memo is None else memo
    if isinstance(value, tuple):
        return tuple(canon(v, depth + 1, memo) for v in value)
    if isinstance(value, Items):
        return ("list", *(canon(v, depth + 1, memo) for v in value.items)) if not value.more else id(value)
    if not isinstance(value, Node):
        return value if isinstance(value, int | float | str | bool | None) else _slice(value)
    if id(value) in memo:
        return memo[id(value)]
    if value.op in ALIKE and len(value.inputs) == 1 and isinstance(value.inputs[0], Node):
        return canon(value.inputs[0], depth + 1, memo)
    plain = value.op not in RANDOM and value.op in _FIXED and depth < 40
    made: object = id(value)
    if plain and value.inputs:
        options = tuple(sorted((k, str(v)) for k, v in value.options.items() if not isinstance(v, Node | Table)))
        inner = tuple(canon(i, depth + 1, memo) for i in value.inputs)
        made = (value.op, options, inner)
    elif value.op == "batch" and value.owner is not None and len(value.inputs) == 1:
        drawn = (id(value.owner), *(id(t) for t in value.turns), *(id(p[0]) for p in value.stack))
        where = id(value.place[0]) if value.place is not None else 0
        made = ("batch", where, drawn, canon(value.inputs[0], depth + 1, memo))
    memo[id(value)] = made
    return made


ALIKE = frozenset(["clone", "copy", "deepcopy", "contiguous", "from_numpy", "numpy", "as_tensor", "detach"])
"""What gives the same numbers in another place."""
_FIXED = (
    STRUCTURE
    | JOINS
    | frozenset(
        """add sub mul div pow neg abs exp log sqrt clamp relu tanh sigmoid mean std sum min max normalize softmax
    permute pad conv1d conv2d interpolate""".split()
    )
) - frozenset(["element", "batch"])


def _slice(value: Value) -> object:
    kind = getattr(value, "kind", "")
    ends = getattr(value, "args", ())
    if kind == "builtins.slice" and all(e is None or isinstance(e, int) for e in ends):
        return ("slice", *ends)
    return id(value)
