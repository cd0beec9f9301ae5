"""Figures for scaling, and scaled data, that are worked out and never read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.scopes import Scope
from trainwreck.core.row import Row

FIGURES = frozenset("mean std nanmean nanstd median nanmedian min max var".split())
SCALES = frozenset(["transform", "fit_transform"])


class Unread(Row):
    node: ast.AST
    scope: Scope
    text: str
    beside: bool
    """Other data that are scaled alike are read: these ones alone are raw."""


GAINS = pattern(r"adv|return|reward|gae|(^|_)rets?(_|$)", re.IGNORECASE)
"""Names of what actions earned: no inputs of a network."""


def own_figures(project: Project) -> Iterator[Unread]:
    """A class keeps the mean or spread of the data it is fitted to, nothing reads it, and the method that scales takes
    those of whatever it is given."""
    nodes = [n for walked in project.walked.values() for n in ast.walk(walked.top.module.tree)]
    called = {id(n.func) for n in nodes if isinstance(n, ast.Call)}  # ``x.mean()`` is no look at ``self.mean``
    read = {
        n.attr for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load) and id(n) not in called
    }
    for owner in (s for s in project.scopes if s.kind == "class"):
        methods = [s for s in owner.children if s.kind == "function"]
        kept = [(m, a) for m in methods for a in _kept(m) if a not in read]
        for method in methods:
            if not kept or any(m is method for m, _ in kept):
                continue
            for node in project.within(method, ast.BinOp):
                assert isinstance(node, ast.BinOp)
                figure = node.right if isinstance(node.op, ast.Sub | ast.Div) else None
                if isinstance(figure, ast.Call) and last_name(figure.func) in FIGURES and _of_argument(method, figure):
                    text = f"this scales by the figures of what it is given; self.{kept[0][1]} is kept and never read"
                    yield Unread(node, method, text, beside=True)
                    return


def _kept(method: Scope) -> list[str]:
    """Attributes that a method sets to a mean, a spread or the like."""
    found: list[str] = []
    for node in ast.walk(method.node):
        if not isinstance(node, ast.Assign):
            continue
        target = node.targets[0]
        pairs = [(target, node.value)]
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs = list(zip(target.elts, node.value.elts, strict=False))
        for one, value in pairs:
            own = isinstance(one, ast.Attribute) and written(one.value) == "self"
            made = [c for c in ast.walk(value) if isinstance(c, ast.Call) and last_name(c.func) in FIGURES]
            if own and made and isinstance(one, ast.Attribute):
                found.append(one.attr)
    return found


def _of_argument(method: Scope, call: ast.Call) -> bool:
    """True for a figure of something that is no attribute of the object."""
    names = {n.id for n in ast.walk(call) if isinstance(n, ast.Name)}
    return "self" not in names and bool(names - {"np", "numpy", "torch"})


def scaled_in_vain(project: Project, scope: Scope) -> Iterator[Unread]:
    """``z = (x - mean) / std`` that nothing reads, where ``x`` itself is read afterwards."""
    read: dict[str, list[ast.Name]] = {}
    for node in ast.walk(scope.node):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            read.setdefault(node.id, []).append(node)
    made: list[tuple[ast.Assign, str, str, str]] = []
    for node in project.within(scope, ast.Assign):
        assert isinstance(node, ast.Assign)
        target = node.targets[0]
        found = _scaled(node.value)
        if found is not None and isinstance(target, ast.Name) and len(node.targets) == 1:
            made.append((node, target.id, *found))
    for node, name, data, by in made:
        later = [n for n in read.get(data, ()) if n.lineno > (node.end_lineno or node.lineno)]
        if name == data or name in read or not later or len(scope.bindings.get(name, ())) > 1:
            continue
        if GAINS.search(data):
            continue  # the rule on advantages tells it
        if any(isinstance(n, ast.Global | ast.Nonlocal) for n in ast.walk(scope.node)) or scope.kind == "class":
            continue
        beside = any(other != name and its == by and other in read for _, other, _, its in made)
        text = f"{name} holds {data} scaled and is read by nothing: {data} is used as it is"
        yield Unread(project.statement(later[0], scope), scope, text, beside)
        return


def _scaled(value: ast.expr) -> tuple[str, str] | None:
    """The data that are scaled, and by what; None for anything else."""
    match value:
        case ast.BinOp(op=ast.Div(), left=ast.BinOp(op=ast.Sub(), left=ast.Name(id=data)), right=by):
            return data, written(by)
        case ast.Call(func=ast.Attribute(attr=attr, value=by), args=[ast.Name(id=data), *_]) if attr in SCALES:
            return data, written(by)
    return None


__all__ = ["own_figures", "scaled_in_vain"]
