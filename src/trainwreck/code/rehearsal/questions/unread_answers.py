"""Functions that score what a policy wrote: do they look at the right answer that they are given?"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Place
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.policy import surrogates
from trainwreck.code.scopes import Scope

MOST = 4_000


def answer_unread(run: Rehearsing) -> Iterator[Answer]:
    """A reward is computed by a function that never reads one of its arguments, and what it is given there was made
    for this call alone: the right answer has no part in the reward."""
    told: set[int] = set()
    for event, found in surrogates(run):
        for number, node in enumerate(ancestors(found.advantage)):
            if number > MOST:
                break
            if node.place is None or id(node.place[0]) in told:
                continue
            told.add(id(node.place[0]))
            for call, scope in _asked(run, node.place):
                unread = _unread(scope)
                given = _given(call, scope, unread[0]) if len(unread) == 1 else None
                last = next((r for r in reversed(scope.returns) if r is not None), None)
                if given is not None and last is not None and _made_for_it(given, call, node.place[1]):
                    text = f"{scope.name} never reads {unread[0]}: the right answer has no part in the reward"
                    proof = ((call, node.place[1]), event.place)
                    yield Answer((last, scope), text, tuple(p for p in proof if p is not None))
                    return


def _asked(run: Rehearsing, place: Place) -> Iterator[tuple[ast.Call, Scope]]:
    """The functions of the program that a statement calls."""
    for call in ast.walk(run.project.statement(*place)):
        if isinstance(call, ast.Call):
            functions = [f for f in run.project.functions if _calls(call, f)]
            if len(functions) == 1:
                yield call, functions[0]


def _unread(scope: Scope) -> list[str]:
    read = {n.id for n in ast.walk(scope.node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    called = {n.id for n in ast.walk(scope.node) if isinstance(n, ast.Name)}
    names = [p for p in scope.params if p not in ("self", "cls") and not p.startswith("_")]
    return [] if "locals" in called or len(names) < 2 else [p for p in names if p not in read]


def _calls(node: ast.AST, scope: Scope) -> bool:
    function = node.func if isinstance(node, ast.Call) else None
    return getattr(function, "id", getattr(function, "attr", "")) == scope.name


def _given(call: ast.Call, scope: Scope, name: str) -> str | None:
    """The name that the call gives for a parameter."""
    keyword = next((k.value for k in call.keywords if k.arg == name), None)
    places = [p for p in scope.params if p not in ("self", "cls")]
    at = places.index(name)
    value = keyword if keyword is not None else call.args[at] if at < len(call.args) else None
    return value.id if isinstance(value, ast.Name) else None


def _made_for_it(name: str, call: ast.Call, scope: Scope) -> bool:
    """True where nothing else reads the name, or the list that it walks over."""
    for node in scope.nodes:
        for one in node.generators if isinstance(node, ast.ListComp | ast.GeneratorExp) else [node]:
            target, over = getattr(one, "target", None), getattr(one, "iter", None)
            if not isinstance(target, ast.Tuple) or not isinstance(over, ast.Call):
                continue
            names = [getattr(t, "id", "") for t in target.elts]
            zipped = isinstance(over.func, ast.Name) and over.func.id == "zip" and len(over.args) == len(names)
            if zipped and name in names and any(n is call for n in ast.walk(node)):
                source = over.args[names.index(name)]
                return (
                    isinstance(source, ast.Name)
                    and _reads(scope.nodes, source.id) == 1
                    and _reads(ast.walk(node), name) == 1
                )
    return False


def _reads(nodes: Iterable[ast.AST], name: str) -> int:
    return sum(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) for n in nodes)
