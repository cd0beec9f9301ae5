"""Calls whose class stands a step away: a subclass of the project, a method of an object that a library made.

``class MyTrainer(Trainer)`` takes what ``Trainer`` takes, and ``trainer = Trainer(...)`` has its methods. Only what is
bound once is followed, and only classes that add nothing to how they are made.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from trainwreck.catalogue.releases import TABLES, Bracket, History, Table, table
from trainwreck.code.calls import Call
from trainwreck.code.project import Project
from trainwreck.code.scopes import Scope

MAX_BASES = 8
"""Steps up a chain of classes; real ones are far shorter."""
MAKERS = ("__init__", "__new__", "__call__", "__getattr__")
"""Methods with which a class says itself how it is made, or what it has."""


def inherited(project: Project, call: Call) -> tuple[str, str] | None:
    """(package, class) of the library's class whose constructor answers for a subclass of the project."""
    func = call.node.func
    if not isinstance(func, ast.Name):
        return None
    own = project.resolve(func, call.scope)
    for _ in range(MAX_BASES):
        base = _only_base(own) if own is not None and own.kind == "class" else None
        if own is None or base is None:
            return None
        where = own.parent or own
        above = project.resolve(base, where)
        if above is None:
            return _imported(project, base, where)
        own = above
    return None


def _only_base(own: Scope) -> ast.expr | None:
    """The base of a class that has one, and that neither makes itself anew, adds fields nor is decorated."""
    node = own.node
    if not isinstance(node, ast.ClassDef) or node.decorator_list or node.keywords or len(node.bases) != 1:
        return None
    if any(name in own.bindings for name in MAKERS) or any(isinstance(row, ast.AnnAssign) for row in node.body):
        return None
    return node.bases[0]


def _imported(project: Project, node: ast.expr, scope: Scope) -> tuple[str, str] | None:
    parts = project.dotted(node, scope).split(".")
    first = node
    while isinstance(first, ast.Attribute):
        first = first.value
    if len(parts) < 2 or parts[0] not in TABLES or not isinstance(first, ast.Name):
        return None
    bindings = project.lookup(first.id, scope)
    if not bindings or any(b.kind != "import" or b.target.split(".")[0] != parts[0] for b in bindings):
        return None
    return TABLES[parts[0]], parts[-1]


def method(project: Project, call: Call) -> tuple[str, str, str] | None:
    """(package, class, method) of a call on an object that the program made itself, once, of a library's class."""
    func = call.node.func
    if not isinstance(func, ast.Attribute) or not isinstance(func.value, ast.Name):
        return None
    bindings = project.lookup(func.value.id, call.scope)
    if len(bindings) != 1 or bindings[0].kind != "assign" or bindings[0].path:
        return None
    made, scope = bindings[0].value, bindings[0].scope
    if not isinstance(made, ast.Call) or not isinstance(made.func, ast.Name | ast.Attribute):
        return None
    own = project.resolve(made.func, scope)
    if own is not None and any(func.attr in c.bindings or "__getattr__" in c.bindings for c in project.bases(own)):
        return None
    found = _imported(project, made.func, scope) or inherited(project, Call(made, scope))
    if found is None or not found[1][:1].isupper():
        return None
    return (*found, func.attr)


def gone_method(home: Table, owner: str, name: str, at: Bracket) -> History | None:
    """When class ``owner`` had the method ``name``, where it has it no longer and no base of it may have it either."""
    row = home.signature(f"{owner}.{name}")
    if row is None:
        return None
    history = History(home, owner, row["ranges"])
    if history.state(at) != "gone" or any(_may_have(home, owner, name, index) for index in at):
        return None
    return history


def _may_have(home: Table, owner: str, name: str, index: int, depth: int = 0) -> bool:
    row = home.signature(owner)
    if row is None or depth > MAX_BASES:
        # A base of another package: transformers answers for trl, nobody for the rest.
        other = table("transformers") if home.package == "trl" else None
        if depth > MAX_BASES or other is None or other.signature(owner) is None:
            return True
        return _may_have(other, owner, name, other.newest[0], depth + 1)
    if depth and (own := home.signature(f"{owner}.{name}")) is not None and _covers(own["ranges"], index):
        return True
    bases = [base for first, last, found in _ranges(row["bases"], index) if first <= index <= last for base in found]
    known = [base.split("[", 1)[0] for base in bases]
    return any(_may_have(home, base, name, index, depth + 1) for base in known if base not in ("object", "ABC"))


def _ranges(bases: Sequence[Any], index: int) -> Sequence[Any]:
    return [[index, index, bases]] if bases and isinstance(bases[0], str) else bases


def _covers(ranges: Sequence[Sequence[Any]], index: int) -> bool:
    return any(first <= index <= last for first, last, *_ in ranges)


def within(home: Table, owner: str, at: Bracket) -> Bracket:
    """``at``, or the last release that has ``owner`` where that has gone meanwhile: what it had lost by then is news
    as well, for whoever follows it to its new place."""
    row = home.signature(owner)
    if row is None or not row["ranges"]:
        return at
    last = row["ranges"][-1][1]
    return (min(at[0], last), min(at[1], last))
