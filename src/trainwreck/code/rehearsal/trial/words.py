"""What the operators, methods and functions of Python, numpy and torch do to lists, texts, numbers and small arrays
(``steps``). What stands in no table raises ``Unknown``."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping

import numpy as np

from trainwreck.code.rehearsal.trial.bench import Unknown
from trainwreck.code.rehearsal.trial.functions import LIBRARY, axis_of, by_name, ends, library, sort
from trainwreck.code.rehearsal.trial.things import (
    HELD,
    Apply,
    Luck,
    Named,
    Pair,
    Thing,
    array,
    elements,
    plain,
    size,
    truth,
)

BINARY: Mapping[type[ast.operator], Callable[[Thing, Thing], Thing]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.MatMult: operator.matmul,
    ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
}  # fmt: skip
COMPARED: Mapping[type[ast.cmpop], Callable[[Thing, Thing], Thing]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip
LONGEST = 5_000
"""Elements of a list that is written several times over."""
LARGEST_POWER, LARGEST_BITS = 64, 256
"""Numbers that are squared again and again would fill the memory."""


def binary(op: ast.operator, one: Thing, other: Thing, inplace: bool = False) -> Thing:
    made = BINARY.get(type(op))
    if made is None or (isinstance(op, ast.Pow) and max(size(one), size(other), 1) == 1 and abs(other) > LARGEST_POWER):
        raise Unknown
    if inplace and isinstance(one, list) and isinstance(op, ast.Add):
        one.extend(elements(other))
        return one
    if isinstance(op, ast.Mult) and (isinstance(one, HELD) or isinstance(other, HELD)):
        times = other if isinstance(one, HELD) else one
        if not isinstance(times, int) or times * max(size(one), size(other)) > LONGEST:
            raise Unknown
    with np.errstate(all="ignore"):
        found = made(one, other)
    if (isinstance(found, int) and found.bit_length() > LARGEST_BITS) or size(found) > LONGEST:
        raise Unknown
    return found


def unary(op: ast.unaryop, value: Thing) -> Thing:
    if isinstance(op, ast.Not):
        return not truth(value)
    if isinstance(op, ast.USub):
        return -value
    return ~value if isinstance(op, ast.Invert) and not isinstance(value, bool) else +value


def compare(op: ast.cmpop, one: Thing, other: Thing) -> Thing:
    if array(other) and isinstance(op, ast.In | ast.NotIn):
        return bool((other == one).any()) is isinstance(op, ast.In)
    return COMPARED[type(op)](one, other)


def take(base: Thing, index: Thing) -> Thing:
    """``base[index]``."""
    if array(base):
        return base[tuple(_index(i) for i in index) if isinstance(index, tuple) else _index(index)]
    if isinstance(base, dict):
        return base[plain(index)]
    if isinstance(base, list | tuple | str | range):
        return base[index if isinstance(index, slice) else plain(index)]
    raise Unknown


def put(base: Thing, index: Thing, value: Thing) -> None:
    """``base[index] = value``."""
    if array(base):
        base[tuple(_index(i) for i in index) if isinstance(index, tuple) else _index(index)] = value
    elif isinstance(base, dict):
        base[plain(index)] = value
    elif isinstance(base, list):
        base[index if isinstance(index, slice) else plain(index)] = value
    else:
        raise Unknown


def _index(index: Thing) -> Thing:
    if isinstance(index, list):
        return np.asarray(index, dtype=int if not index else None)
    return index


def attribute(base: Thing, name: str) -> Thing:
    if isinstance(base, Pair) and name in ("values", "indices"):
        return base[name == "indices"]
    if array(base) and name in ("shape", "ndim", "T", "size"):
        return getattr(base, name)
    if array(base) and name == "device":
        return "cpu"
    raise Unknown


# ---------------------------------------------------------------------- functions of Python
def _key(named: Named, apply: Apply) -> Callable[[Thing], Thing] | None:
    key = named.pop("key", None)
    return None if key is None else lambda item: apply(key, [item])


def _minmax(which: Callable[..., Thing]) -> Callable[..., Thing]:
    def made(args: list[Thing], named: Named, apply: Apply) -> Thing:
        key = _key(named, apply)
        over = list(elements(args[0])) if len(args) == 1 else list(args)
        if not over and "default" in named:
            return named["default"]
        return which(over, key=key) if key is not None else which(over)

    return made


def _sorted(args: list[Thing], named: Named, apply: Apply) -> Thing:
    key = _key(named, apply)
    return sorted(elements(args[0]), key=key, reverse=bool(named.get("reverse", False)))


SPECIAL: dict[Thing, Callable[[list[Thing], Named, Apply], Thing]] = {
    min: _minmax(min),
    max: _minmax(max),
    sorted: _sorted,
    map: lambda args, named, apply: [apply(args[0], list(row)) for row in zip(*map(elements, args[1:]), strict=False)],
    filter: lambda args, named, apply: [i for i in elements(args[1]) if (truth(apply(args[0], [i])) if args[0] else i)],
    sum: lambda args, named, apply: sum(elements(args[0]), *args[1:]),
    len: lambda args, named, apply: len(args[0]),
    zip: lambda args, named, apply: list(zip(*map(elements, args), strict=False)),
    enumerate: lambda args, named, apply: list(enumerate(elements(args[0]), *args[1:], **named)),
    reversed: lambda args, named, apply: list(elements(args[0]))[::-1],
    any: lambda args, named, apply: any(truth(i) for i in elements(args[0])),
    all: lambda args, named, apply: all(truth(i) for i in elements(args[0])),
    list: lambda args, named, apply: list(elements(args[0])) if args else [],
    tuple: lambda args, named, apply: tuple(elements(args[0])) if args else (),
    set: lambda args, named, apply: set(elements(args[0])) if args else set(),
    print: lambda args, named, apply: None,
    range: lambda args, named, apply: range(*map(operator.index, map(plain, args))),
    dict: lambda args, named, apply: {**(dict(elements(args[0]) if not isinstance(args[0], dict) else args[0])
                                         if args else {}), **named},
    iter: lambda args, named, apply: elements(args[0]),
    next: lambda args, named, apply: next(args[0], *args[1:]),
    isinstance: lambda args, named, apply: _unknown(),
}  # fmt: skip
BUILTINS: dict[str, Thing] = {
    f.__name__: f for f in (*SPECIAL, abs, int, float, bool, str, round, divmod, ord, chr, frozenset)
}


def _unknown() -> Thing:
    raise Unknown


def builtin(function: Thing, args: list[Thing], named: Named, apply: Apply) -> Thing:
    if function in SPECIAL:
        return SPECIAL[function](args, named, apply)
    if function in BUILTINS.values():
        return function(*map(plain, args), **named)
    raise Unknown


# ---------------------------------------------------------------------- methods
OWN: Mapping[type, frozenset[str]] = {
    list: frozenset("append extend insert pop remove index count reverse copy clear".split()),
    str: frozenset("join split strip startswith endswith replace lower upper rstrip lstrip partition find".split()),
    dict: frozenset("get items keys values pop setdefault update copy most_common".split()),
    set: frozenset("add discard remove update copy union intersection difference isdisjoint issubset".split()),
    tuple: frozenset(["index", "count"]),
}
LUCK = frozenset("permutation shuffle sample random integers".split())
AS_IS = frozenset("cpu numpy detach to clone contiguous copy double half tensor".split())
CASTS = {"float": float, "long": int, "int": int, "bool": bool}
BY_NAME = frozenset("cumsum cumprod nonzero unique flip abs log log2 exp sqrt square sign isin clip bincount".split())
COMPARES = {"eq": ast.Eq, "ne": ast.NotEq, "lt": ast.Lt, "le": ast.LtE, "gt": ast.Gt, "ge": ast.GtE}


def method(base: Thing, name: str, args: list[Thing], named: Named, apply: Apply) -> Thing:
    """``base.name(...)``."""
    if isinstance(base, Luck):
        drawn = getattr(base, name, None) if name in LUCK else None
        return base if name == "manual_seed" else drawn(*args, **named) if drawn is not None else _unknown()
    if isinstance(base, np.generic | int | float):
        if name in ("item", *AS_IS):
            return plain(base)
        base = np.asarray(base)
    if not array(base):
        known = next((names for kind, names in OWN.items() if isinstance(base, kind)), frozenset[str]())
        if name == "sort" and isinstance(base, list):
            return base.sort(key=_key(named, apply), reverse=bool(named.get("reverse", False)))
        if name not in known:
            raise Unknown
        found = getattr(base, name)(*map(plain, args), **named)
        if size(base) > LONGEST:
            raise Unknown
        return found
    if name in AS_IS or name in ("type", "astype"):
        kind = next((k for k in args if k in (int, float, bool)), None)
        return base.astype(kind) if kind is not None else base.copy()
    if name in CASTS:
        return base.astype(CASTS[name])
    if name in ("tolist", "item"):
        return getattr(base, name)()
    if name in COMPARES:
        return compare(COMPARES[name](), base, args[0])
    if name in ("max", "min"):
        return ends(name, True)([base, *args], named)
    if name == "sort":
        return sort([base, *args], named, True)
    if name in ("squeeze", "unsqueeze", "flatten", "ravel", "reshape", "view", "dim", "numel", "transpose", "t"):
        return _shaped(base, name, args, named)
    if name == "size":
        return base.shape if not args else base.shape[args[0]]
    if name in LIBRARY or name in BY_NAME:
        return LIBRARY[name]([base, *args], named) if name in LIBRARY else by_name(name)([base, *args], named)
    raise Unknown


def _shaped(base: Thing, name: str, args: list[Thing], named: Named) -> Thing:
    axis = axis_of([base, *args], named)
    if name == "squeeze":
        return base.squeeze(axis) if axis is None or base.shape[axis] == 1 else base
    if name == "unsqueeze":
        return np.expand_dims(base, axis)
    if name in ("dim", "numel"):
        return base.ndim if name == "dim" else base.size
    if name in ("flatten", "ravel"):
        return base.reshape(-1)
    if name == "t":
        return base.T
    if name == "transpose":
        return np.swapaxes(base, *args) if len(args) == 2 else base.T
    sizes = args[0] if len(args) == 1 and isinstance(args[0], tuple | list) else args
    return base.reshape(tuple(int(n) for n in sizes))


__all__ = ["BUILTINS", "array", "elements", "library", "plain", "size", "truth"]
