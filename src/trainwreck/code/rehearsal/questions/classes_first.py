"""Masks of classes as zeros and ones: the axis of classes is put in front, and rows and columns change places."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Items, Node
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import backwards

PLANES = 4
"""Samples, rows, columns, classes."""
KEEPS = frozenset("float long to double int type_as mul".split())
TURNS = frozenset(["transpose", "permute", "swapaxes", "movedim", "t", "T", "mT", "rot90"])


def rows_for_columns(run: Rehearsing) -> Iterator[Answer]:
    """``one_hot(mask).permute(0, 3, 2, 1)``, compared with maps that nothing turned: each mask is its transpose."""
    for event in backwards(run):
        found = list(ancestors(event.subject))
        if any(n.grad and n.op in TURNS for n in found):
            continue
        for node in found:
            if node.op != "permute" or node.grad or node.place is None or not node.inputs:
                continue
            order = _order(node)
            if len(order) == PLANES and order[1] == PLANES - 1 and order != (0, 3, 1, 2) and _hot(node.inputs[0]):
                text = f"rows and columns change places as the classes come first: {order}, where (0, 3, 1, 2) is meant"
                yield Answer(node.place, text, (event.place,) if event.place is not None else ())
                return


def _order(node: Node) -> tuple[int, ...]:
    given = node.inputs[1:]
    if len(given) == 1 and isinstance(given[0], tuple | Items):
        given = tuple(given[0]) if isinstance(given[0], tuple) else tuple(given[0].items)
    numbers = [i % PLANES for i in given if isinstance(i, int)]
    return tuple(numbers) if len(numbers) == len(given) else ()


def _hot(value: object) -> bool:
    for _ in range(6):
        if not isinstance(value, Node) or not value.inputs:
            return False
        if value.op == "one_hot":
            inner = value.inputs[0]
            return isinstance(inner, Node) and not inner.shape.open and len(inner.shape.dims) == PLANES - 1
        if value.op not in KEEPS:
            return False
        value = value.inputs[0]
    return False


__all__ = ["rows_for_columns"]
