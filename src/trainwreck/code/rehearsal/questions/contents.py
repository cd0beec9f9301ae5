"""Sizes as products of factors: numbers, and symbols for those that are not known."""

from __future__ import annotations

import math
from collections import Counter

from trainwreck.core.row import Row

Factor = int | tuple[str, int, int]
Axis = tuple[Factor, ...]
"""The sizes that the axis is the product of, outermost first; an axis of one element has none."""


class Content(Row):
    """How many elements: symbols with their powers, and a number."""

    symbols: frozenset[tuple[Factor, int]]
    number: int

    @staticmethod
    def of(factors: Axis) -> Content:
        return Content(
            frozenset(Counter(f for f in factors if not isinstance(f, int)).items()),
            math.prod(f for f in factors if isinstance(f, int)),
        )

    def divides(self, other: Content) -> bool:
        mine, its = dict(self.symbols), dict(other.symbols)
        return other.number % self.number == 0 and all(its.get(k, 0) >= n for k, n in mine.items())

    def rest(self, other: Content) -> Axis:
        """``other`` divided by this, which divides it."""
        mine = dict(self.symbols)
        left = [k for k, n in other.symbols for _ in range(n - mine.get(k, 0))]
        number = other.number // self.number
        return (*left, *((number,) if number > 1 else ()))


def in_memory(axis: Axis, flat: Axis) -> Axis:
    """The factors of an axis in the order in which they lie in memory: that of the value it is a view of."""
    if len(axis) < 2:
        return axis
    left, number = Counter(f for f in axis if not isinstance(f, int)), math.prod(f for f in axis if isinstance(f, int))
    found: list[Factor] = []
    for factor in flat:
        if isinstance(factor, int):
            share = math.gcd(factor, number)
            number //= share
            found.extend([share] if share > 1 else [])
        elif left[factor]:
            left[factor] -= 1
            found.append(factor)
    return (*found, *left.elements(), *((number,) if number > 1 else ()))
