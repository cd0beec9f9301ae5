"""What the shape reading knows of a value: a shape, a number, a layer, an object of the program, or nothing."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainwreck.code.calls import Call
from trainwreck.code.pattern import pattern
from trainwreck.code.scopes import Scope
from trainwreck.core.row import Row

Dim = int | None
"""The size of one axis; None where it is unknown."""
Place = Call | tuple[ast.AST, Scope]


class Unknown:
    """The value of which nothing is known."""

    def __repr__(self) -> str:
        return "?"


UNKNOWN = Unknown()
ABOUT_SHAPES = pattern(r"shape|size\(|ndim|dim\(|len\(")
"""A test that decides which shapes come to a branch."""
INDEX = Unknown()
"""Some whole number, as a loader hands it to ``__getitem__``."""
MANY = Unknown()
"""Stands in a list of values for any number of them (``*rest``)."""
Value = Any
"""A ``Shape``, ``Layer``, ``Instance``, ``Items``, ``Source``, a tuple of values, a constant, or ``UNKNOWN``."""


@dataclass(frozen=True)
class Shape:
    """The axes of a tensor or array. ``open``: any number of further axes may stand before ``dims``.

    ``by`` is the call that gave the sizes (a layer, a constructor)."""

    dims: tuple[Dim, ...]
    open: bool = False
    by: Call | None = field(default=None, compare=False)

    def __str__(self) -> str:
        inner = ", ".join("?" if d is None else str(d) for d in self.dims)
        return f"(..., {inner})" if self.open else f"({inner}{',' if len(self.dims) == 1 else ''})"

    def axis(self, index: int) -> int | None:
        """The place of an axis in ``dims``; None where it can't be told."""
        if index < 0:
            return len(self.dims) + index if -index <= len(self.dims) else None
        return index if not self.open and index < len(self.dims) else None

    def dim(self, index: int) -> Dim:
        at = self.axis(index)
        return self.dims[at] if at is not None else None

    def replaced(self, index: int, size: Dim, by: Call | None = None) -> Shape:
        """The same with another size of one axis (given from the right where the shape is open)."""
        at = self.axis(index)
        if at is None:
            return Shape((), True, by or self.by)
        return Shape((*self.dims[:at], size, *self.dims[at + 1 :]), self.open, by or self.by)

    @property
    def total(self) -> Dim:
        """The number of elements."""
        return None if self.open else product(self.dims)


ANY = Shape((), True)


@dataclass(frozen=True, eq=False)
class Layer:
    """An object of ``torch.nn``: its name, the call that made it, and what that call was given."""

    name: str
    call: Call
    args: tuple[Value, ...]
    options: Mapping[str, Value]

    def get(self, name: str, place: int | None = None, default: Value = UNKNOWN) -> Value:
        if name in self.options:
            return self.options[name]
        if place is not None and place < len(self.args):
            return self.args[place]
        return default


@dataclass(eq=False)
class Instance:
    """An object of a class of the program, with what its attributes hold."""

    owner: Scope
    call: Call | None
    attributes: dict[str, Value] = field(default_factory=dict)
    executed: set[int] = field(default_factory=set)


@dataclass(eq=False)
class Items:
    """A list that the program builds."""

    items: list[Value]


@dataclass(frozen=True, eq=False)
class Source:
    """A data set or a loader: what one element of it holds (a value, or a tuple of values)."""

    element: Value


class Clash(Row):
    """Two sizes that do not fit: ``kind`` is ``features``, ``channels``, ``channels-last``, ``sum``, ``join``,
    ``product``, ``reshape``, ``pattern``, ``divide``, ``axis``, ``axis-choice`` (a reduction along an axis that another
    one than this would fit), ``loss`` or ``loss-broadcast``."""

    kind: str
    place: Place
    text: str
    by: tuple[Call, ...] = ()


def product(dims: Sequence[Dim]) -> Dim:
    """None where one size is unknown."""
    total = 1
    for dim in dims:
        if dim is None:
            return None
        total *= dim
    return total


def size(value: Value) -> Dim:
    """``value`` as the size of an axis."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def same(one: Value, other: Value) -> bool:
    if isinstance(one, Shape | tuple) or isinstance(other, Shape | tuple):
        return type(one) is type(other) and bool(one == other)
    if isinstance(one, Layer | Instance | Items | Source | Unknown):
        return one is other
    return type(one) is type(other) and bool(one == other)


def joined(one: Value, other: Value) -> Value:
    """What is known of a value that is either."""
    if same(one, other):
        return one
    if isinstance(one, Shape) and isinstance(other, Shape):
        if not one.open and not other.open and len(one.dims) == len(other.dims):
            return Shape(tuple(a if a == b else None for a, b in zip(one.dims, other.dims, strict=True)), False, one.by)
        return ANY
    return UNKNOWN


def uneven(one: Shape, other: Shape) -> bool:
    """True for two feature maps that differ by little in height or width only: a size that strides do not divide."""
    if one.open or other.open or len(one.dims) != len(other.dims) or len(one.dims) < 4 or one.dims[0] != other.dims[0]:
        return False
    pairs = [(a, b) for a, b in zip(one.dims[2:], other.dims[2:], strict=True) if a is not None and b is not None]
    return any(a != b for a, b in pairs) and all(abs(a - b) <= NEAR and min(a, b) > NEAR for a, b in pairs)


NEAR = 8
"""Pixels that three halvings can lose on one side."""


def broadcast(one: Shape, other: Shape) -> tuple[Shape, tuple[int, int] | None]:
    """The shape of an element-wise operation, and the two sizes that do not fit if there are such."""
    dims: list[Dim] = []
    a, b = list(reversed(one.dims)), list(reversed(other.dims))
    for place in range(max(len(a), len(b))):
        x = a[place] if place < len(a) else (None if one.open else 1)
        y = b[place] if place < len(b) else (None if other.open else 1)
        if x is not None and y is not None and x != y and 1 not in (x, y):
            return ANY, (x, y)
        if x == 1 or y == 1:
            dims.append(y if x == 1 else x)
        else:
            dims.append(x if x is not None else y)
    return Shape(tuple(reversed(dims)), one.open or other.open, one.by or other.by), None


def count_of(numbers: range) -> int:
    """``len(numbers)``, for those as well that are too many for it."""
    return (numbers[-1] - numbers[0]) // numbers.step + 1 if numbers else 0


def sliced(dim: Dim, ends: Sequence[object]) -> Dim:
    """The size of ``dim`` elements between ``ends`` (start, stop, step); None where one of them is not known."""
    known = [end for end in ends if end is None or (isinstance(end, int) and not isinstance(end, bool))]
    if dim is None or dim < 0 or len(known) < len(ends) or ends[2] == 0:
        return None
    return count_of(range(*slice(*known).indices(dim)))
