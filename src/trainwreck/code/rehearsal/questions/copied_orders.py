"""Several answers to each prompt: do the copies of the prompts and of what belongs to them lie in one order?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import last_name
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.scopes import Scope
from trainwreck.core.row import Row

DEEP = 4


class Copied(Row):
    """``name`` holds each element of ``sources`` so many ``times``, side by side (a a b b) or not (a b a b)."""

    name: str
    sources: frozenset[str]
    times: str
    beside: bool
    node: ast.Assign


def copies_apart(run: Rehearsing) -> Iterator[Answer]:
    """Two lists of copies of one list that are gone through together: a a b b of one, a b a b of the other."""
    for walked in run.project.walked.values():
        for scope in walked.scopes:
            made = [c for n in scope.nodes if isinstance(n, ast.Assign) for c in _copied(n)]
            for one in made:
                for other in made:
                    alike = one.times == other.times and one.sources & other.sources
                    if not one.beside or other.beside or not alike or not _met(scope, one.name, other.name):
                        continue
                    text = f"these copies lie in another order than those of {one.name}: what is paired is no pair"
                    yield Answer((other.node, scope), text, ((one.node, scope),))
                    return


def _copied(node: ast.Assign) -> Iterator[Copied]:
    target = node.targets[0]
    found = _order(node.value) if isinstance(target, ast.Name) else None
    if found is not None and isinstance(target, ast.Name):
        source, count, beside = found
        names = frozenset(n.id for n in ast.walk(source) if isinstance(n, ast.Name))
        yield Copied(target.id, names, ast.unparse(count), beside, node)


def _order(value: ast.expr) -> tuple[ast.expr, ast.expr, bool] | None:
    """What is copied, how often, and if the copies of one element lie side by side."""
    if isinstance(value, ast.ListComp) and len(value.generators) == 2:
        outer, inner = value.generators
        for counted, over, beside in ((inner, outer, True), (outer, inner, False)):
            number = _range(counted.iter)
            unused = isinstance(counted.target, ast.Name) and counted.target.id not in _names(value.elt)
            if number is not None and unused and not counted.ifs and not over.ifs and _range(over.iter) is None:
                return over.iter, number, beside
    if not isinstance(value, ast.Call):
        return None
    name, args = last_name(value.func), list(value.args)
    if name in ("repeat_interleave", "repeat", "tile") and isinstance(value.func, ast.Attribute):
        library = isinstance(value.func.value, ast.Name) and value.func.value.id in ("torch", "np", "numpy")
        of = args.pop(0) if library and args else value.func.value
        first = (
            args[0].elts[0] if args and isinstance(args[0], ast.Tuple) and args[0].elts else args[0] if args else None
        )
        beside = name == "repeat_interleave" or (
            name == "repeat" and library and ast.unparse(value.func.value) != "torch"
        )
        return (of, first, beside) if first is not None else None
    return None


def _range(node: ast.expr) -> ast.expr | None:
    asked = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"
    return node.args[0] if asked and isinstance(node, ast.Call) and len(node.args) == 1 else None


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _met(scope: Scope, one: str, other: str) -> bool:
    """True where one loop goes through both, or through what was made of them."""
    behind = {name: _behind(scope, name) for name in (one, other)}
    for node in scope.nodes:
        if isinstance(node, ast.Call) and last_name(node.func) == "zip":
            given = [_names(a) for a in node.args]
            first = [g & behind[one] for g in given]
            second = [g & behind[other] for g in given]
            if any(f and not s for f, s in zip(first, second, strict=True)) and any(
                s and not f for f, s in zip(first, second, strict=True)
            ):
                return True
    return False


def _behind(scope: Scope, name: str) -> set[str]:
    """The names of what is made of a name, in this function."""
    found = {name}
    for _ in range(DEEP):
        for node in scope.nodes:
            if isinstance(node, ast.Assign) and _names(node.value) & found:
                found |= {n for t in node.targets for n in _names(t)}
    return found
