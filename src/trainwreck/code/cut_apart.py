"""Two arrays that are cut at the same place elsewhere, and here apart: ``(x[:k], y[:k])`` and ``(x[k:], y[:k])``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from trainwreck.code.calls import last_name, written
from trainwreck.code.project import Project
from trainwreck.code.scopes import Scope
from trainwreck.core.row import Row

SMALL = 8
"""Numbers below it are lags and look-backs (``x[:-1], y[1:]``), not places at which data are divided."""
TAKES = frozenset(["fit", "score", "evaluate", "partial_fit", "train", "zip"])
"""Methods that are given inputs and labels that belong together."""


class Cut(Row):
    """One part of an array: ``x[start:end]``, also of its rows in ``x[start:end, 1:]``, or ``x[rows]``."""

    node: ast.Subscript
    array: str
    start: str
    end: str
    rows: str

    @property
    def part(self) -> tuple[str, str, str]:
        return self.start, self.end, self.rows

    @property
    def places(self) -> set[str]:
        """The places at which it is cut."""
        return {p for p in (self.start, self.end, self.rows) if p}


class Apart(Row):
    node: ast.AST
    scope: Scope
    text: str


def cut_apart(project: Project, scope: Scope) -> Iterator[Apart]:
    """Pairs of parts that are no pairs of rows, of arrays that are cut alike in another pair of the same function."""
    pairs = list(_pairs(project, scope))
    alike = {(one.array, other.array): set[str]() for one, other in pairs}
    for one, other in pairs:
        if one.part == other.part:
            alike[one.array, other.array] |= one.places
    told: set[int] = set()
    for one, other in pairs:
        shared = alike[one.array, other.array]
        if one.part == other.part or not shared & (one.places | other.places) or _beside(one, other):
            continue
        if bool(one.rows) != bool(other.rows) or (one.rows and not {one.rows, other.rows} <= shared):
            continue
        if id(one.node) not in told:
            told.add(id(one.node))
            text = f"{written(one.node)} and {written(other.node)} are other rows: elsewhere the two are cut alike"
            yield Apart(one.node, scope, text)
    if not told:
        yield from _assigned(project, scope)


def _beside(one: Cut, other: Cut) -> bool:
    """True for a lag: the same part moved by a few elements."""
    return any(_little(p) for p in one.places ^ other.places)


def _little(text: str) -> bool:
    bare = text.lstrip("-")
    return bare.isdigit() and int(bare) < SMALL


def _cut(node: ast.expr) -> Cut | None:
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name | ast.Attribute):
        return None
    index = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
    array = written(node.value)
    if isinstance(index, ast.Slice):
        if index.step is not None or (index.lower is None and index.upper is None):
            return None
        start = "" if index.lower is None or written(index.lower) == "0" else written(index.lower)
        return Cut(node, array, start, "" if index.upper is None else written(index.upper), "")
    return Cut(node, array, "", "", index.id) if isinstance(index, ast.Name) else None


def _pairs(project: Project, scope: Scope) -> Iterator[tuple[Cut, Cut]]:
    """Neighbours in a tuple or in what a data set is made of, parts of two arrays."""
    for node in project.within(scope, ast.Tuple, ast.Call, ast.List):
        if isinstance(node, ast.Call):
            name = last_name(node.func)
            given = list(node.args) if name in TAKES or name[:1].isupper() else []
        else:
            assert isinstance(node, ast.Tuple | ast.List)
            given = list(node.elts) if isinstance(node.ctx, ast.Load) else []
        found = [_cut(e) for e in given]
        for one, other in pairwise(found):
            if one is not None and other is not None and one.array != other.array:
                yield one, other


def _assigned(project: Project, scope: Scope) -> Iterator[Apart]:
    """``a, b = x[:k], x[k:]`` and ``c, d = y[:k], y[:k]``: one array gives both of its parts, the other one twice."""
    made: dict[str, list[tuple[str, Cut]]] = {}
    for node in project.within(scope, ast.Assign):
        assert isinstance(node, ast.Assign)
        target = node.targets[0]
        sides = [(target, node.value)]
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            sides = list(zip(target.elts, node.value.elts, strict=False))
        for name, value in sides:
            cut = _cut(value)
            if cut is not None and not cut.rows and isinstance(name, ast.Name | ast.Attribute):
                made.setdefault(cut.array, []).append((written(name), cut))
    for array, cuts in made.items():
        if len(cuts) != 2 or cuts[0][1].part != cuts[1][1].part or cuts[0][0] == cuts[1][0]:
            continue
        (place,) = cuts[0][1].places if len(cuts[0][1].places) == 1 else ("",)
        for other, its in made.items():
            parts = {c.part for _, c in its}
            halves = {(place, "", ""), ("", place, "")}
            if other != array and place and not _little(place) and parts == halves and len(its) == 2:
                text = f"{array} gives the same rows twice, and {other} its two parts: these labels belong to others"
                yield Apart(cuts[1][1].node, scope, text)
                return


def column_shuffled(project: Project, scope: Scope) -> Iterator[Apart]:
    """``rng.shuffle(table[:, 1])``: a view, so that one column of the table is put in another order than the rest."""
    for call in project.calls("shuffle"):
        first = call.node.args[0] if call.node.args else None
        if call.scope is not scope or not isinstance(first, ast.Subscript) or not isinstance(first.slice, ast.Tuple):
            continue
        rows, *rest = first.slice.elts
        whole = isinstance(rows, ast.Slice) and rows.lower is None and rows.upper is None
        fixed = len(rest) == 1 and isinstance(rest[0], ast.Constant) and isinstance(rest[0].value, int)
        if whole and fixed and isinstance(first.value, ast.Name | ast.Attribute):
            text = f"this puts one column of {written(first.value)} in another order: its rows hold no pairs any more"
            yield Apart(call.node, scope, text)


__all__ = ["column_shuffled", "cut_apart"]
