"""Parts of data that are to be apart, and are written as the same rows twice, or as a whole and its part."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.scopes import Scope
from trainwreck.core.row import Row

JUDGES = pattern(r"(^|_)(va|val|valid|validation|dev|test|te|holdout|held|eval|query|qry)(_|$)", re.IGNORECASE)
TEACHES = pattern(r"(^|_)(tr|train|training|fit|support|sup|spt)(_|$)|^train", re.IGNORECASE)
WHOLE = pattern(r"all|full|whole|every|total", re.IGNORECASE)


class Twice(Row):
    node: ast.AST
    scope: Scope
    text: str


def given_twice(project: Project, scope: Scope) -> Iterator[Twice]:
    """``(x[:k], y[:k]), (x[:k], y[:k])`` or ``x[:k], x[:k], y[:k], y[:k]``: both parts are the same rows."""
    for node in project.within(scope, ast.Tuple):
        assert isinstance(node, ast.Tuple)
        if not isinstance(node.ctx, ast.Load) or len(node.elts) not in (2, 4):
            continue
        one, other = node.elts[:2]
        if len(node.elts) == 4:
            third, fourth = node.elts[2:]
            alike = written(one) == written(other) and written(third) == written(fourth)
            crossed = written(one) == written(third) and written(other) == written(fourth)
            if (alike or crossed) and _base(one) != _base(third if alike else other) and _cut(one) and _cut(fourth):
                yield Twice(node, scope, "both parts of the data are the same rows")
        elif _tuple_of_parts(one) and written(one) == written(other):
            yield Twice(node, scope, "both parts of the data are the same rows")
    for learns, judges, mine, its in _named(project, scope):
        if written(mine) == written(its) and _cut(mine):
            yield Twice(its, scope, f"{learns} and {judges} are the same rows of the data")


def part_of_the_whole(project: Project, scope: Scope) -> Iterator[Twice]:
    """``train, test = rated, rated[:, -1]``: the last column is held out, and the training keeps it."""
    for name, other, one, two in _named(project, scope):
        if not isinstance(two, ast.Subscript) or not isinstance(two.slice, ast.Tuple) or WHOLE.search(name):
            continue
        if written(two.value) != written(one):
            continue
        rows, *rest = two.slice.elts
        last = len(rest) == 1 and written(rest[0]).startswith("-")  # of several values per row, the latest
        bare = isinstance(rows, ast.Slice) and rows.lower is None and rows.upper is None
        if last and bare and isinstance(one, ast.Name) and len(scope.bindings.get(name, ())) == 1:
            yield Twice(two, scope, f"{other} is a part of {name}, which keeps it")


def _given_together(project: Project, scope: Scope) -> Iterator[tuple[ast.Assign, list[str], list[ast.expr]]]:
    """``a, b = one, other``: the statement, the names (empty for what is no name) and the values."""
    for node in project.within(scope, ast.Assign):
        assert isinstance(node, ast.Assign)
        target = node.targets[0]
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            yield node, [t.id if isinstance(t, ast.Name) else "" for t in target.elts], node.value.elts


def ranges_overlap(project: Project, scope: Scope) -> Iterator[Twice]:
    """``base, val, novel = range(60), range(36, 48), range(48, 60)``: parts of which two have some in common."""
    for node, names, values in _given_together(project, scope):
        ranges = [_range(v) for v in values]
        if len(ranges) != len(names) or None in ranges or not any(map(JUDGES.search, names)):
            continue
        for at, (one, name) in enumerate(zip(ranges, names, strict=True)):
            for other, beside in zip(ranges[at + 1 :], names[at + 1 :], strict=True):
                if (
                    one
                    and other
                    and max(one[0], other[0]) < min(one[-1], other[-1])
                    and not WHOLE.search(name + beside)
                ):
                    yield Twice(node, scope, f"{name} and {beside} have numbers in common")
                    return


def slices_overlap(project: Project, scope: Scope) -> Iterator[Twice]:
    """``train, dev = rows[:1100], rows[1000:1300]``: parts of one list by plain numbers that have rows in common."""
    for node, names, values in _given_together(project, scope):
        cuts = [_slice(v) for v in values]
        if len(cuts) != len(names) or not any(map(JUDGES.search, names)):
            continue
        known = [(name, cut) for name, cut in zip(names, cuts, strict=True) if cut is not None and name]
        for at, (name, (base, low, high)) in enumerate(known):
            for beside, (its, first, end) in known[at + 1 :]:
                apart = min(high, end) <= max(low, first) or (low, high) == (first, end)
                other_part = "" not in (part_of(name), part_of(beside)) and part_of(name) != part_of(beside)
                if base == its and not apart and other_part and not WHOLE.search(name + beside):
                    yield Twice(node, scope, f"{name} and {beside} have rows of {base} in common")
                    return


def part_of(name: str) -> str:
    """Which part of the data a name speaks of; nothing where it is no part."""
    judges = JUDGES.search(name)
    return "train" if TEACHES.search(name) else judges.group(2).lower() if judges is not None else ""


def _slice(node: ast.expr) -> tuple[str, float, float] | None:
    """``x[a:b]`` with plain numbers from the start: what is cut, from where and to where."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Slice) or node.slice.step is not None:
        return None
    ends = [e.value if isinstance(e, ast.Constant) else e for e in (node.slice.lower, node.slice.upper)]
    if not all(e is None or (isinstance(e, int) and e >= 0) for e in ends):
        return None
    low, high = ends
    return written(node.value), low if isinstance(low, int) else 0, high if isinstance(high, int) else math.inf


def _range(node: ast.expr) -> range | None:
    """A range of plain numbers, as it is or as a list."""
    wraps = ("list", "set", "tuple", "sorted")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in wraps and node.args:
        node = node.args[0]
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id != "range":
        return None
    ends = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, int)]
    return range(*ends) if len(ends) == len(node.args) and 0 < len(ends) < 3 else None


def _named(project: Project, scope: Scope) -> Iterator[tuple[str, str, ast.expr, ast.expr]]:
    """Names of a part to learn from and one to judge by, that one statement gives, with their values."""
    for node in project.within(scope, ast.Assign):
        assert isinstance(node, ast.Assign)
        target = node.targets[0]
        if not isinstance(target, ast.Tuple) or not isinstance(node.value, ast.Tuple) or len(target.elts) != 2:
            continue
        if len(node.value.elts) != 2 or not all(isinstance(t, ast.Name) for t in target.elts):
            continue
        name, other = (t.id for t in target.elts if isinstance(t, ast.Name))
        if TEACHES.search(name) and JUDGES.search(other) and not TEACHES.search(other):
            yield name, other, node.value.elts[0], node.value.elts[1]


def _cut(node: ast.expr) -> bool:
    """True for ``x[a:b]``, with an end at least."""
    if not isinstance(node, ast.Subscript):
        return False
    index = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
    return isinstance(index, ast.Slice) and (index.lower is not None or index.upper is not None)


def _tuple_of_parts(node: ast.expr) -> bool:
    return isinstance(node, ast.Tuple) and len(node.elts) > 1 and all(_cut(e) for e in node.elts)


def _base(node: ast.expr) -> str:
    return written(node.value) if isinstance(node, ast.Subscript) else ""


__all__ = ["given_twice", "part_of", "part_of_the_whole", "ranges_overlap", "slices_overlap"]
