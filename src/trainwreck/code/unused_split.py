"""Data in three parts of which one is never used: is the best result chosen by the part for the last test, or by what
is trained on?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import last_name
from trainwreck.code.project import Project
from trainwreck.code.same_rows import part_of
from trainwreck.code.scopes import Scope
from trainwreck.core.row import Row

PARTS = 3
"""One to learn from, one to choose by, one for the last test."""


LOADERS = frozenset(["DataLoader"])


class Chosen(Row):
    """What a choice in a loop goes by: ``last`` where the same part is used after the loop too."""

    node: ast.AST
    scope: Scope
    text: str
    last: bool


class Part(Row):
    names: frozenset[str]
    maker: str
    line: int
    """Where they are given: what stands before it reads something else of that name."""


def chosen_otherwise(project: Project, scope: Scope) -> Iterator[Chosen]:
    """A part that nothing reads, and a choice (``if score > best``) by another one of the parts made alike."""
    makers: dict[str, list[Part]] = {}
    for part in _parts(project, scope):
        makers.setdefault(part.maker, []).append(part)
    read: dict[str, list[int]] = {}
    for node in ast.walk(scope.node):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            read.setdefault(node.id, []).append(node.lineno)
    for parts in makers.values():
        idle = [p for p in parts if not any(line > p.line for n in p.names for line in read.get(n, ()))]
        if len(parts) < PARTS or len(idle) != 1 or len({n for p in parts for n in p.names}) < len(parts):
            continue
        for loop, statement, names in _choices(project, scope):
            used = [p for p in parts if p.names & names]
            if len(used) != 1:
                continue
            end = loop.end_lineno or loop.lineno
            own = range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
            places = [line for n in used[0].names for line in read.get(n, ())]
            after = [line for line in places if line > end]
            inside = [line for line in places if loop.lineno <= line <= end and line not in own]
            unread, by = sorted(idle[0].names)[0], sorted(used[0].names & names)[0]
            if after and not inside:
                text = f"the best is chosen by {by}, which is used for the last test too; {unread} is never used"
                yield Chosen(statement, scope, text, last=True)
            elif inside and not after:
                text = f"the best is chosen by {by}, which is trained on; {unread} is never used"
                yield Chosen(statement, scope, text, last=False)


def _parts(project: Project, scope: Scope) -> Iterator[Part]:
    """Names that are given parts of the data: by one statement, or by calls of one function."""
    for node in project.within(scope, ast.Assign):
        assert isinstance(node, ast.Assign)
        target = node.targets[0]
        given = [t for t in target.elts if isinstance(t, ast.Name)] if isinstance(target, ast.Tuple) else []
        if isinstance(node.value, ast.Tuple) and len(given) == len(node.value.elts) and len(given) >= PARTS:
            if all(isinstance(v, ast.Subscript | ast.Call) for v in node.value.elts):
                end = node.end_lineno or node.lineno
                yield from (Part(frozenset([t.id]), f"line {node.lineno}", end) for t in given)
        elif isinstance(node.value, ast.Call) and (given or isinstance(target, ast.Name)):
            names = {t.id for t in given} or ({target.id} if isinstance(target, ast.Name) else set())
            names = {n for n in names if n.strip("_")}
            name = last_name(node.value.func)
            own = name in LOADERS or any(f.name == name for f in project.functions)
            kinds = {part_of(n) for n in names}
            if own and len(kinds) == len(names) >= PARTS and "" not in kinds:  # one call gives all parts
                yield from (Part(frozenset([n]), f"line {node.lineno}", node.end_lineno or node.lineno) for n in names)
            elif names and own:
                yield Part(frozenset(names), name, node.end_lineno or node.lineno)


def _choices(project: Project, scope: Scope) -> Iterator[tuple[ast.For | ast.While, ast.Assign, set[str]]]:
    """Loops in which a figure is compared with the best one so far: the statement that works it out, and the names
    that its call is given."""
    for loop in project.within(scope, ast.For, ast.While):
        assert isinstance(loop, ast.For | ast.While)
        tests = [n.test for n in ast.walk(loop) if isinstance(n, ast.If) and isinstance(n.test, ast.Compare)]
        compared = {n.id for t in tests for n in ast.walk(t) if isinstance(n, ast.Name)}
        kept = {t.id for n in ast.walk(loop) if isinstance(n, ast.If) for s in n.body for t in _targets(s)}
        for node in ast.walk(loop):
            given = {t.id for t in _targets(node)} if isinstance(node, ast.Assign) else set()
            if not isinstance(node, ast.Assign) or not given:
                continue
            called = [c for c in ast.walk(node.value) if isinstance(c, ast.Call) and c.args]
            if not given & compared or not called or not compared & kept:
                continue
            names = {n.id for c in called for a in c.args for n in ast.walk(a) if isinstance(n, ast.Name)}
            yield loop, node, names


def _targets(statement: ast.stmt) -> Iterator[ast.Name]:
    """The names that are given a value."""
    for target in getattr(statement, "targets", ()):
        stored = (n for n in ast.walk(target) if isinstance(n, ast.Name))
        yield from (n for n in stored if isinstance(n.ctx, ast.Store))


__all__ = ["chosen_otherwise"]
