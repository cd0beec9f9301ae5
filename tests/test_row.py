"""``core.row``: named tuples without generated code behave as those of ``typing`` do."""

from __future__ import annotations

import copy
from typing import NamedTuple

import pytest

from trainwreck.core.row import Row


class Pair(Row):
    """A row with a value that may be left out, and a method."""

    left: int
    right: int = 7

    def both(self) -> int:
        return self.left + self.right


class Peer(NamedTuple):
    left: int
    right: int = 7


@pytest.mark.parametrize(("values", "named"), [((1, 2), {}), ((1,), {}), ((), {"left": 1}), ((1,), {"right": 2})])
def test_it_is_the_tuple_that_a_named_tuple_is(values: tuple[int, ...], named: dict[str, int]) -> None:
    mine, theirs = Pair(*values, **named), Peer(*values, **named)
    assert mine == theirs == (mine.left, mine.right)
    assert hash(mine) == hash(theirs)
    assert mine.both() == sum(theirs)
    assert repr(mine) == repr(theirs).replace("Peer", "Pair")


@pytest.mark.parametrize(("values", "named"), [((), {}), ((1, 2, 3), {}), ((1,), {"left": 2}), ((1,), {"middle": 2})])
def test_what_does_not_fit_is_refused_by_both(values: tuple[int, ...], named: dict[str, int]) -> None:
    for made in (Pair, Peer):
        with pytest.raises(TypeError):
            made(*values, **named)


def test_it_is_never_changed_and_can_be_replaced_and_copied() -> None:
    pair = Pair(1)
    with pytest.raises(AttributeError):
        pair.left = 3  # type: ignore[misc]
    assert pair._replace(left=3) == (3, 7)
    assert pair == (1, 7)
    twin = copy.deepcopy(pair)
    assert (type(twin), twin) == (Pair, pair)
