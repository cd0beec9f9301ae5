"""Batches that are cut from samples sorted by length, so that little is padded: are the batches mixed afterwards?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.flow import back
from trainwreck.code.order import training_steps
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import LOADERS
from trainwreck.core.row import Row

SORTS = frozenset(["sort", "sorted", "argsort", "lexsort"])
LENGTH = pattern(r"\blen\(|\blen\b|length|\bsizes?\b|\bn_?(frames|tokens|words)|num_(frames|tokens|words)|__len__")
MIXES = re.compile(r"shuffle|perm|random|sample|choice|rng|curriculum|epoch|seed")
"""What may mix, in any spelling; also a plan that counts epochs (the first one sorted, as Deep Speech 2 does it)."""


class Unmixed(Row):
    node: ast.AST
    scope: Scope
    sort: ast.Call
    sort_scope: Scope
    """The scope that the sort stands in."""


def unmixed_buckets(project: Project) -> Iterator[Unmixed]:
    """Where batches for the training are cut from samples in the order of their length, and come in that order."""
    told: set[int] = set()
    for training in training_steps(project):
        if not isinstance(training.loop, ast.For):
            continue
        above = [a for a in project.ancestors(training.loop, training.scope) if isinstance(a, ast.For | ast.While)]
        epochs = above[-1] if above else training.loop
        if any(MIXES.search(written(n.func)) for n in ast.walk(epochs) if isinstance(n, ast.Call)):
            continue
        for step in back(project, training.loop.iter, training.scope):
            for maker in _makers(project, step.node, step.scope):
                found = _sorted_cut(maker) if id(maker.node) not in told else None
                told.add(id(maker.node))
                if found is not None:
                    yield found


def _makers(project: Project, node: ast.expr, scope: Scope) -> Iterator[Scope]:
    """The class or generator of the program that makes the batches."""
    if not isinstance(node, ast.Call):
        return
    if last_name(node.func) in LOADERS:
        for keyword in node.keywords:
            owner = project.class_of(keyword.value, scope) if keyword.arg in ("batch_sampler", "sampler") else None
            if owner is not None:
                yield owner
        return
    target = project.resolve(node.func, scope)
    if target is not None and (target.kind == "class" or target.yields):
        yield target


def _sorted_cut(maker: Scope) -> Unmixed | None:
    """The sort by length of all samples, and where batches are cut from them, if nothing in between can mix them."""
    functions = [c for c in maker.children if c.kind == "function"] if maker.kind == "class" else [maker]
    if not functions or MIXES.search(_code(maker)):
        return None
    sort, where = next(((n, f) for f in functions for n in _sorts(f)), (None, None))
    cut = next(((n, f) for f in functions for n in _cuts(f)), None)
    if sort is None or where is None or cut is None:
        return None
    return Unmixed(cut[0], cut[1], sort, where)


def _code(maker: Scope) -> str:
    """What is called there, and the names of its methods: a generator that is kept and not used mixes nothing."""
    used = {written(n.func) for n in ast.walk(maker.node) if isinstance(n, ast.Call)}
    return " ".join(sorted(used | {c.name for c in maker.children}))


def _sorts(function: Scope) -> Iterator[ast.Call]:
    """Sorts by length outside of all loops: those of all samples."""
    loops = [n for n in function.nodes if isinstance(n, ast.For | ast.While | ast.comprehension)]
    inside = {id(i) for loop in loops for i in ast.walk(loop) if not isinstance(loop, ast.For) or i is not loop.iter}
    for node in function.nodes:
        sorts = isinstance(node, ast.Call) and last_name(node.func) in SORTS and id(node) not in inside
        if sorts and isinstance(node, ast.Call) and LENGTH.search(written(node)):
            yield node


def _cuts(function: Scope) -> Iterator[ast.AST]:
    """Loops over starts that cut a piece in each turn: ``rows[s : s + size]``."""
    for node in function.nodes:
        if isinstance(node, ast.For):
            names = {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
            inner = [n for s in node.body for n in ast.walk(s)]
            kept = any(isinstance(n, ast.Yield) or _appends(n) for n in inner)
            if kept and any(_piece(n, names) for n in inner):
                yield node
        elif isinstance(node, ast.ListComp | ast.GeneratorExp):
            names = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
            if _piece(node.elt, names):
                yield node


def _appends(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func) == "append"


def _piece(node: ast.AST, names: set[str]) -> bool:
    """True for ``x[s : s + n]``, ``s`` one of these names."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Slice) or node.slice.lower is None:
        return False
    lower = {n.id for n in ast.walk(node.slice.lower) if isinstance(n, ast.Name)}
    return bool(lower & names) and node.slice.upper is not None


__all__ = ["Unmixed", "unmixed_buckets"]
