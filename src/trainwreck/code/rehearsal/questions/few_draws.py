"""How often is nothing drawn: a count of random marks that divides."""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Value
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import trained

OFTEN = 1e-6
"""A chance that is met in a training of some ten thousand steps of some ten samples."""
SAME = frozenset(["float", "to", "from_numpy", "long", "int", "astype", "tensor", "as_tensor", "bool", "double", "cpu"])


def nothing_drawn(run: Rehearsing) -> Iterator[Answer]:
    """A division by how many of a few elements were marked at random: with this chance there are none."""
    told: set[int] = set()
    for node in trained(run):
        count = node.inputs[1] if node.op in ("div", "true_divide") and len(node.inputs) > 1 else None
        if not isinstance(count, Node) or count.op not in ("sum", "count_nonzero") or not count.inputs:
            continue
        marks, elements = _marks(count.inputs[0]), _elements(count)
        if marks is None or elements is None or node.place is None or id(node.place[0]) in told:
            continue
        none = (1 - marks[1]) ** elements
        if none > OFTEN and not _looked_at(run, marks[0]):
            told.add(id(node.place[0]))
            text = f"{elements} elements, each marked with a chance of {marks[1]:g}: in {none:.2g} of all cases none is"
            yield Answer(node.place, text, (marks[0].place,) if marks[0].place is not None else ())


def _looked_at(run: Rehearsing, marks: Node) -> bool:
    """True where a test of the program depends on what was drawn: it may leave out what has none."""
    asked = (*run.memo.get("tested", ()), *run.memo.get("sifted", ()))
    return any(n is marks for value, _ in asked for n in ancestors(value))


def _marks(value: Value) -> tuple[Node, float] | None:
    """The test that marks elements at random, and the chance of a mark."""
    for _ in range(8):
        if not isinstance(value, Node) or not value.inputs:
            return None
        if value.op in ("lt", "le", "gt", "ge") and len(value.inputs) == 2:
            drawn, rate = value.inputs
            plain = isinstance(drawn, Node) and drawn.op in ("rand", "random", "rand_like", "random_sample")
            if not plain or isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate < 1:
                return None
            return value, float(rate) if value.op in ("lt", "le") else 1 - float(rate)
        if value.op not in SAME:
            return None
        value = value.inputs[0]
    return None


def _elements(count: Node) -> int | None:
    """How many elements are counted into one number; None where that isn't known."""
    held = count.inputs[0]
    if not isinstance(held, Node) or held.shape.open:
        return None
    sizes = held.shape.dims
    if not all(isinstance(s, int) for s in sizes):
        known = count.inputs[1] if len(count.inputs) > 1 else count.options.get("dim", count.options.get("axis"))
        size = sizes[known] if isinstance(known, int) and -len(sizes) <= known < len(sizes) else None
        return size if isinstance(size, int) else None
    total = math.prod(s for s in sizes if isinstance(s, int))
    left = 1 if count.shape.open else math.prod(s for s in count.shape.dims if isinstance(s, int))
    return None if count.shape.open or not left else total // left
