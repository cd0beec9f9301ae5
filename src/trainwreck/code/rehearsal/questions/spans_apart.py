"""Two selections of the same rows by written bounds: do they have rows in common?

Bounds are those of slices (``order[:80]``, ``order[60:]``), or of masks over one array of numbers (``year < 2019``,
``(site >= 3) & (site < 9)``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from trainwreck.code.rehearsal.domain import Obj, Value
from trainwreck.code.rehearsal.graph import ancestors

SLICE = 4
"""Parts of the key of a slice: its name, start, end and step."""
Span = tuple[float, float]
"""From (included) to (excluded)."""
LIMITS = {"ge": (True, 0), "gt": (True, 1), "lt": (False, 0), "le": (False, 1)}
"""Of a comparison with a whole number: whether it is the lower bound, and what has to be added to it."""
MIRRORED = {"ge": "le", "gt": "lt", "lt": "gt", "le": "ge"}


def share_rows(one: Sequence[object], other: Sequence[object]) -> bool:
    """True where two ways of indexing (keys of steps, outermost first) agree up to one, and these two overlap in part.

    Only what is sure: bounds are numbers, and counted from the same end."""
    for a, b in zip(one, other, strict=False):
        if a == b:
            continue
        if share_masked((a,), (b,)):
            return True
        mine, theirs = bounds(a), bounds(b)
        return mine is not None and theirs is not None and _meet(mine, theirs)
    return False


def share_masked(one: Sequence[object], other: Sequence[object]) -> bool:
    """``share_rows`` for masks alone."""
    for a, b in zip(one, other, strict=False):
        if a != b:
            first, second = _mask(a), _mask(b)
            same = first is not None and second is not None and first[0] == second[0]
            return same and first is not None and second is not None and _meet(first[1], second[1])
    return False


FAR_IN = 50
"""Rows that a look back or a shifted target leaves out are fewer."""


def cut_off(key: object) -> bool:
    """True for ``x[n:]`` that leaves out many rows, or a share of all, and takes all that follow."""
    if not isinstance(key, tuple) or len(key) != SLICE or key[0] != "slice" or key[2:] != (None, None):
        return False
    start = key[1]
    if isinstance(start, int):
        return start >= FAR_IN
    return isinstance(start, tuple) and _share_of_length(start)


def drawn_up_to(moving: Sequence[Value], fixed: Sequence[Value]) -> bool:
    """True where rows are drawn below the number from which on ``x[n:]`` takes them: ``x[randint(0, n, (16,))]``."""
    starts = [i.args[0] for i in fixed if isinstance(i, Obj) and i.kind == "builtins.slice" and i.args]
    slices = [a for i in moving if isinstance(i, Obj) and i.kind == "builtins.slice" for a in i.args]
    for node in ancestors((*moving, *slices)):
        for given in (*node.inputs, *node.options.values()):
            ends = given.args if isinstance(given, Obj) and given.kind == "builtins.slice" else (given,)
            for end in ends:
                if any(end is s or (isinstance(s, int) and type(end) is int and end == s != 0) for s in starts):
                    return True
    return False


def _share_of_length(key: tuple[object, ...]) -> bool:
    """True for what is a written number times a length."""
    inner = [k for k in key if isinstance(k, tuple)]
    scaled = key[0] in ("mul", "floordiv", "sub") and any(isinstance(k, float | int) for k in key)
    return (scaled and any(k[:1] == ("len",) for k in inner)) or any(_share_of_length(k) for k in inner)


def _meet(one: Span, other: Span) -> bool:
    return max(one[0], other[0]) < min(one[1], other[1])


def bounds(key: object) -> Span | None:
    """Of a slice with written bounds, from the front."""
    if not isinstance(key, tuple) or len(key) != SLICE or key[0] != "slice" or key[3] not in (None, 1):
        return None
    start, end = 0 if key[1] is None else key[1], math.inf if key[2] is None else key[2]
    if not isinstance(start, int | float) or not isinstance(end, int | float) or start < 0 or end < 0:
        return None
    return (start, end) if start < end else None


def _mask(key: object) -> tuple[object, Span] | None:
    """What a mask compares (its key), and between which numbers it is true; whole numbers are assumed."""
    if not isinstance(key, tuple) or not key:
        return None
    if key[0] == "mask" and len(key) == 2:
        return _mask(key[1])
    if key[0] in ("and", "mul", "logical_and", "bitwise_and") and len(key) == SLICE:
        sides = [_mask(k) for k in key[2:]]
        if sides[0] is None or sides[1] is None or sides[0][0] != sides[1][0]:
            return None
        (base, one), (_, other) = sides[0], sides[1]
        return base, (max(one[0], other[0]), min(one[1], other[1]))
    if key[0] not in LIMITS or len(key) != SLICE:
        return None
    what, number, kind = key[2], key[3], str(key[0])
    if not _number(number):
        what, number, kind = number, what, MIRRORED[kind]
    if not _number(number) or _number(what):
        return None
    assert isinstance(number, int | float)
    lower, more = LIMITS[kind]
    return what, ((number + more, math.inf) if lower else (-math.inf, number + more))


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def from_one_end(one: object, other: object) -> bool:
    """True for two slices that begin at the start, or run to the end, of different lengths that may be unknown."""
    if not (isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other) == SLICE):
        return False
    if one[0] != "slice" or other[0] != "slice" or one == other or {one[3], other[3]} - {None, 1}:
        return False
    starts, ends = (one[1], other[1]), (one[2], other[2])
    if starts == (None, None):
        return None not in ends
    return ends == (None, None) and None not in starts
