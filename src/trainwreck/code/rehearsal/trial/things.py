"""Values of ours that functions of a program are worked out with (``steps``), and what a loop goes through of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from trainwreck.code.rehearsal.trial.bench import Unknown

Thing = Any
"""A number, a text, a list, a dict or a small array of ours."""
Named = dict[str, Thing]
Apply = Callable[..., Thing]
HELD = (list, tuple, dict, set, range, str)
VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))


class Pair(tuple[Thing, Thing]):
    """Values and where they stood (``torch.max`` along an axis)."""

    __slots__ = ()


MOST_DRAWN = 100_000


class Luck:
    """Stands for a generator of random numbers: the same draws each time."""

    def __init__(self, seed: Thing = 0) -> None:
        self.draws = np.random.default_rng(seed if isinstance(seed, int) else 0)

    def permutation(self, of: Thing) -> Thing:
        if isinstance(of, int) and of > MOST_DRAWN:
            raise Unknown
        return self.draws.permutation(of)

    def shuffle(self, items: Thing) -> None:
        """In place."""
        if array(items):
            self.draws.shuffle(items)
        elif isinstance(items, list):
            items[:] = [items[int(n)] for n in self.draws.permutation(len(items))]
        else:
            raise Unknown

    def sample(self, items: Thing, k: int) -> list[Thing]:
        found = list(elements(items))
        return [found[int(n)] for n in self.draws.permutation(len(found))[:k]]

    def random(self, size: Thing = None) -> Thing:
        if np.prod(size or 1) > MOST_DRAWN:
            raise Unknown
        return self.draws.random(size)

    def integers(self, low: int, high: int | None = None, size: Thing = None) -> Thing:
        if np.prod(size or 1) > MOST_DRAWN:
            raise Unknown
        return self.draws.integers(low, high, size=size)


def array(value: Thing) -> bool:
    return isinstance(value, np.ndarray)


def size(value: Thing) -> int:
    """How many elements a value has; 0 for a number."""
    if array(value):
        return int(value.size)
    return len(value) if isinstance(value, HELD) else 0


def plain(value: Thing) -> Thing:
    """A number of an array as Python's own."""
    return value.item() if isinstance(value, np.generic) or (array(value) and value.ndim == 0) else value


def truth(value: Thing) -> bool:
    """What a test makes of a value."""
    if array(value) and value.size != 1:
        raise Unknown
    return bool(value)


def elements(value: Thing) -> Iterator[Thing]:
    """What a loop goes through."""
    if array(value):
        if value.ndim == 0:
            raise Unknown
        return iter([plain(item) if value.ndim == 1 else item for item in value])
    if isinstance(value, Iterator):
        return value
    if not isinstance(value, (*HELD, *VIEWS)):
        raise Unknown
    over: Thing = value
    return iter(list(over))
