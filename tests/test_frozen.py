"""Frozen values: as a frozen dataclass would behave."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import field, fields, is_dataclass, replace
from typing import Any

import pytest

from trainwreck.core.frozen import Frozen


class Point(Frozen):
    """Two coordinates, a remark, and things that say nothing of equality."""

    x: int
    y: int = 2
    tags: list[str] = field(default_factory=list)
    look: Callable[[], int] | None = field(default=None, repr=False, compare=False)


class Pair(Frozen):
    """Hashable."""

    a: int
    b: str = ""


def test_values_by_place_by_name_and_by_default() -> None:
    assert (Point(1).x, Point(1).y, Point(1, 5).y, Point(y=4, x=3).x) == (1, 2, 5, 3)
    assert repr(Point(1, tags=["a"])) == "Point(x=1, y=2, tags=['a'])"


def test_each_has_a_default_of_its_own() -> None:
    one, other = Point(1), Point(1)
    one.tags.append("seen")
    assert other.tags == []


@pytest.mark.parametrize(("values", "named"), [((), {}), ((1, 2, [], None, 5), {}), ((1,), {"x": 2}), ((1,), {"z": 2})])
def test_wrong_values_are_refused(values: tuple[Any, ...], named: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="Point takes x, y, tags, look"):
        Point(*values, **named)


def test_it_does_not_change() -> None:
    point: Any = Point(1)
    with pytest.raises(AttributeError, match="can't be changed"):
        point.x = 2
    with pytest.raises(AttributeError, match="can't be changed"):
        del point.x


def test_equality_and_hash_leave_out_what_is_not_compared() -> None:
    assert Point(1, look=int) == Point(1) != Point(2)
    assert Point(1) != (1, 2, [], None)
    assert len({Pair(1), Pair(1, ""), Pair(2)}) == 2


def test_it_is_a_dataclass_to_the_library() -> None:
    point = replace(Point(1), y=7)
    assert is_dataclass(point)
    assert (point.x, point.y) == (1, 7)
    assert [f.name for f in fields(point)] == ["x", "y", "tags", "look"]
    assert copy.deepcopy(point) == point
