"""Two parts of the data for evaluations, of which each has some rows of the other."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Place
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.assigned import assigned_names
from trainwreck.code.rehearsal.questions.paths import Path
from trainwreck.code.rehearsal.questions.splits import bounds, keys, rows_before, sides
from trainwreck.code.same_rows import part_of


def held_twice(run: Rehearsing) -> Iterator[Answer]:
    """What is chosen by one part is judged by the other, and they have rows in common.

    Said where each part has rows that the other has not: one that holds all of the other (validation and test
    together) is cut so on purpose. A series that is looked back into from the first row to be judged is one too."""
    both = sides(run)
    seen: set[tuple[object, ...]] = set()
    for (event, one), (_, other) in combinations(both.held, 2):
        pair = (id(one.root), *keys(one), *keys(other))
        if pair in seen or one.root is not other.root or keys(one)[:-1] != keys(other)[:-1] or not one.fixed:
            continue
        seen.add(pair)
        if not _ordered(one) or any(s.moving for s in (one.fixed[-1], other.fixed[-1])):
            continue
        spans = _span(one), _span(other)
        if spans[0] is None or spans[1] is None:
            continue
        (first, first_end), (second, second_end) = sorted(span for span in spans if span is not None)
        if first < second < first_end < second_end:
            late = one if spans[0] == (second, second_end) else other
            early = other if late is one else one
            place, beside = late.fixed[-1].place, early.fixed[-1].place
            if place is not None and beside is not None and _two_parts(run, place, beside):
                text = f"{first_end - second} of these rows are in the other part that is evaluated too"
                yield Answer(place, text, tuple(p for p in (beside, event.place) if p is not None))
                return


def _two_parts(run: Rehearsing, one: Place, other: Place) -> bool:
    """True where the program calls one of them a part for choosing and the other the last test: parts that are only
    evaluated beside each other may well share rows."""
    kinds = {part_of(name) for place in (one, other) for name in assigned_names(run, place).split()} - {""}
    return len(kinds) > 1


def _span(path: Path) -> tuple[int, int] | None:
    """The first place in the order and the one behind the last; None where they aren't known."""
    ends, rows = bounds(path.fixed[-1].key), rows_before(path.fixed)
    if ends is None or rows is None:
        return None
    start, end = (v + rows if v is not None and v < 0 else v for v in ends)
    return max(0, start or 0), rows if end is None else min(end, rows)


def _ordered(path: Path) -> bool:
    """True for parts of an order that was drawn: neighbours in it have nothing to do with each other."""
    return len(path.fixed) > 1


__all__ = ["held_twice"]
