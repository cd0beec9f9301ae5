"""Images that are cut into squares for a row of tokens: is each square cut out, or a run of pixels in a row?"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from trainwreck.code.flow import back
from trainwreck.code.project import Project
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Node, Obj
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.factors import arguments
from trainwreck.code.scopes import Scope

MOVES = frozenset("part batch to cuda float half mul div sub add normalize element".split())
"""What leaves each number of a batch at its place."""
DEEP = 6
"""Names are followed so far back to what they stand for."""


def rows_as_squares(run: Rehearsing) -> Iterator[Answer]:
    """``(h // p) * (w // p)`` squares are asked of an image whose rows are not split yet: ``reshape`` reads on along
    the rows, so each token holds pixels of a few rows that go across several squares."""
    told: set[int] = set()
    for node in run.nodes:
        if node.op not in ("view", "reshape") or node.place is None or id(node.place[0]) in told:
            continue
        base = node.inputs[0] if node.inputs else None
        call, scope = node.place
        if not isinstance(base, Node) or not isinstance(call, ast.Call):
            continue
        if _of_its_sizes(node, base):
            told.add(id(call))
            text = "squares are counted and read off along the rows: each holds pixels of several, none is cut out"
            yield Answer(node.place, text, tuple(p for p in (base.place,) if p is not None))
            continue
        whole = _as_loaded(base)
        if (base.shape.open and not whole) or node.shape.open:
            continue
        image = (None,) * len("NCHW") if base.shape.open else base.shape.dims
        made = node.shape.dims
        given = call.args
        if len(given) == 1 and isinstance(given[0], ast.Tuple | ast.List):
            given = given[0].elts
        if len(image) not in (len("NHW"), len("NCHW")) or len(given) != len(made):
            continue
        if not _row_by_row(node, base):
            continue  # what is put together again from squares has other rows
        for start, end in _grids(run.project, given, scope):
            count = _product(made[start:end])
            unread = whole and end == start + 1 and all(size is None for size in image[1:])
            cut = count is not None and made[start] != image[start] and _across(image, made[:start], count)
            if count is not None and (cut or (unread and count > 1 and start == 1)):
                told.add(id(call))
                text = f"{count} squares are read off along the rows: each holds pixels of several, none is cut out"
                yield Answer(node.place, text, tuple(p for p in (base.place,) if p is not None))
                break


def _row_by_row(node: Node, base: Node) -> bool:
    """True where the first axis stays what it is: one image after the other."""
    rest = arguments(node)
    asked = rest[0] if len(rest) == 1 and isinstance(rest[0], tuple) else rest
    first = asked[0] if asked else None
    if isinstance(first, Node):
        return first.op in ("size", "len") and first.inputs[0] is base and first.inputs[1:] in ((), (0,))
    if first == -1:
        own, made = _product(base.shape.dims[1:]), _product(node.shape.dims[1:])
        return own is not None and own == made
    return isinstance(first, int) and not base.shape.open and first == base.shape.dims[0]


def _as_loaded(base: Node) -> bool:
    """True for a batch of torchvision's pictures to which nothing was done but to move and scale it."""
    at: Node | None = base
    while at is not None and at.op in MOVES and at.op != "batch" and at.inputs:
        at = at.inputs[0] if isinstance(at.inputs[0], Node) else None
    loader = at.owner if at is not None and at.op == "batch" else None
    data = loader.get("dataset", 0) if loader is not None else None
    return isinstance(data, Obj) and data.kind.startswith("torchvision.datasets.")


def _of_its_sizes(node: Node, base: Node) -> bool:
    """True where two axes of the very value, that follow each other, are divided and multiplied, or stand together."""
    rest = arguments(node)
    asked = rest[0] if len(rest) == 1 and isinstance(rest[0], tuple) else rest
    pairs = [v.inputs[:2] for v in asked if isinstance(v, Node) and v.op == "mul"] + list(pairwise(asked))
    for pair in pairs:
        parts = [v for v in pair if isinstance(v, Node) and v.op == "floor_divide" and len(v.inputs) == 2]
        of = [v.inputs[0] for v in parts if v.inputs[1] != 1]
        axes = [
            s.inputs[1] for s in of if isinstance(s, Node) and s.op == "size" and s.inputs[0] is base and s.inputs[1:]
        ]
        if len(axes) == 2 and all(isinstance(a, int) for a in axes) and axes[0] + 1 == axes[1]:
            return True
    return False


def _across(image: Sequence[int | None], before: Sequence[int | None], count: int) -> bool:
    """True where so many squares fill the image, with more than one beside another.

    An axis of just so many elements, after the same axes as before, may be that of the squares already."""
    for at in range(1, len(image) - 1):
        height, width = image[at : at + 2]
        if height is None or width is None or count < 1 or (height * width) % count:
            continue
        side = math.isqrt(height * width // count)
        fits = side > 1 and side * side * count == height * width and not height % side and not width % side
        if fits and width > side and not (count == height and list(before) == list(image[:at])):
            return True
    return False


def _grids(project: Project, given: list[ast.expr], scope: Scope) -> Iterator[tuple[int, int]]:
    """Which sizes are a number of squares: two quotients multiplied, or in two sizes that follow each other."""
    counts = [_quotients(project, g, scope) for g in given]
    for at, number in enumerate(counts):
        if number == 2:
            yield at, at + 1
        elif number == 1 and counts[at + 1 : at + 2] == [1]:
            yield at, at + 2


def _quotients(project: Project, node: ast.expr, scope: Scope, depth: int = 0) -> int:
    """How many whole quotients (``h // p``) are multiplied in ``node``."""
    if depth > DEEP:
        return 0
    match node:
        case ast.BinOp(op=ast.FloorDiv()):
            return 1
        case ast.BinOp(op=ast.Mult(), left=one, right=other):
            return _quotients(project, one, scope, depth + 1) + _quotients(project, other, scope, depth + 1)
        case ast.BinOp(op=ast.Pow(), left=one, right=ast.Constant(value=2)):
            return 2 * _quotients(project, one, scope, depth + 1)
        case ast.Name() | ast.Attribute():
            found = {_quotients(project, value, at, depth + 1) for value, at in _values(project, node, scope)}
            return found.pop() if len(found) == 1 else 0
    return 0


def _values(project: Project, node: ast.expr, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
    for step in back(project, node, scope):
        if step.node is not node and isinstance(step.node, ast.BinOp):
            yield step.node, step.scope
            return


def _product(sizes: Sequence[int | None]) -> int | None:
    known = [s for s in sizes if s is not None]
    return math.prod(known) if len(known) == len(sizes) else None


__all__ = ["rows_as_squares"]
