"""Loops over an array chunk by chunk: is each chunk taken where it lies?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.project import Project
from trainwreck.code.scopes import Scope
from trainwreck.core.row import Row


class Again(Row):
    """The first chunk, taken in every turn of a loop that takes the same array chunk by chunk elsewhere."""

    node: ast.Subscript
    scope: Scope
    moved: ast.Subscript
    """Where the same array is taken from the place of the chunk on."""


def first_chunk_again(project: Project, scope: Scope) -> Iterator[Again]:
    """``y[: end - start]`` beside ``y[start:end]``, in a loop that moves both ends on.

    Not meant: a lag, for which the far end stays where it is (``x[lag:n] * x[: n - lag]``), and arrays that the loop
    makes anew."""
    told: set[int] = set()
    for loop in project.within(scope, ast.For, ast.While):
        assert isinstance(loop, ast.For | ast.While)
        taken = [n for s in loop.body for n in ast.walk(s) if isinstance(n, ast.Subscript)]
        slices = [(n, at, part) for n in taken for at, part in _slices(n)]
        bound = {n.id for n in ast.walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        for node, at, part in slices:
            starts = part.lower is None or written(part.lower) == "0"
            ends = part.upper
            if not starts or not isinstance(ends, ast.BinOp) or not isinstance(ends.op, ast.Sub):
                continue
            end, start = written(ends.left), written(ends.right)
            if start not in bound or not _names(ends.left) & bound or not isinstance(node.ctx, ast.Load):
                continue
            if _names(node.value) & (bound - {"self"}):
                continue
            for other, there, its in slices:
                lies = its.lower is not None and its.upper is not None
                if not lies or there != at or (written(its.lower), written(its.upper)) != (start, end):
                    continue
                same = written(other.value) == written(node.value) and isinstance(other.ctx, ast.Load)
                if same and id(node) not in told:
                    told.add(id(node))
                    yield Again(node, scope, other)
                    break


def _slices(node: ast.Subscript) -> Iterator[tuple[int, ast.Slice]]:
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return ((n, p) for n, p in enumerate(parts) if isinstance(p, ast.Slice))


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
