"""Pictures that are cut into patches by two reshapes: do the axes change places between them?"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.roles import trained

SHAPES = frozenset(["reshape", "view"])
SPLIT, MERGED = 5, 3
"""(picture, blocks down, rows of one, blocks across, columns of one), and (picture, patches, values of one)."""


def strips_for_patches(run: Rehearsing) -> Iterator[Answer]:
    """``x.reshape(b, h // p, p, w // p, p).reshape(b, patches, p * p)``: these are strips of rows, not squares."""
    told: set[int] = set()
    for node in [*trained(run), *run.nodes]:
        if node.op not in SHAPES or node.place is None or id(node.place[0]) in told or not node.inputs:
            continue
        split = node.inputs[0]
        if not isinstance(split, Node) or split.op not in SHAPES or not split.inputs:
            continue
        before, after, whole = split.shape, node.shape, split.inputs[0]
        if before.open or after.open or len(before.dims) != SPLIT or len(after.dims) != MERGED:
            continue
        _, down, rows, across, columns = before.dims
        known = all(isinstance(d, int) and d > 1 for d in (down, rows, across, columns)) and rows == columns
        squares = known and after.dims[1:] == ((down or 0) * (across or 0), (rows or 0) * (columns or 0))
        picture = isinstance(whole, Node) and not whole.shape.open and len(whole.shape.dims) in (3, 4)
        if squares and picture and isinstance(whole, Node) and whole.shape.dims[-1] == (across or 0) * (columns or 0):
            told.add(id(node.place[0]))
            text = "the axes of rows and of blocks have to change places before: these are strips of rows, not patches"
            yield Answer(node.place, text, (split.place,) if split.place is not None else ())
