"""Where in the program something was decided: the literal behind a number, the list behind an optimizer."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence

from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.domain import Event, Items, Node, Obj, Place, Table, Turn, Value, candidates
from trainwreck.code.scopes import FunctionNode, Scope


def literal(run: Rehearsing, value: Value, words: Sequence[str], fallback: Place) -> Place:
    """Where the number ``value`` is written down under a name that holds one of ``words``; else ``fallback``.

    A setting travels through dictionaries, dataclasses and command lines as its value only; its literal is found by
    value and name. The one that is nearest to the use by its name (in the order of ``words``) counts."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return fallback
    found: list[tuple[int, Place]] = []
    for walked in run.project.walked.values():
        for scope in walked.scopes:
            for node in scope.nodes:
                for name, number in named(node):
                    lowered = name.lower().replace("-", "_")
                    rank = next((n for n, w in enumerate(words) if w in lowered), None)
                    if rank is not None and written_number(number) == value:
                        found.append((rank, (number, scope)))
    places = [place for rank, place in found if rank == min(r for r, _ in found)]
    return places[0] if len(places) == 1 else fallback


def asked(node: Node) -> Place | None:
    """Where the program asks for a value: the innermost call that led to it, else its own place."""
    return node.stack[-1] if node.stack else node.place


def once(run: Rehearsing, value: float) -> Place | None:
    """Where a number is written that stands in the program a single time; None for numbers that many things have."""
    if value in (0, 1, -1, 2, 0.5, 10):
        return None
    found: list[Place] = []
    for walked in run.project.walked.values():
        for scope in walked.scopes:
            nodes = (*scope.nodes, *(n for d in _defaults(scope) for n in ast.walk(d)))
            literals = (n for n in nodes if isinstance(n, ast.UnaryOp if value < 0 else ast.Constant))
            found += [(n, scope) for n in literals if isinstance(n, ast.expr) and written_number(n) == value]
    return found[0] if len(found) == 1 else None


def about(run: Rehearsing, value: float) -> Place | None:
    """As ``once``, for a number that was computed: what is written is as large but for rounding."""
    found: list[Place] = []
    for walked in run.project.walked.values():
        for scope in walked.scopes:
            for node in (*scope.nodes, *(n for d in _defaults(scope) for n in ast.walk(d))):
                number = written_number(node) if isinstance(node, ast.Constant) else None
                if number is not None and math.isclose(number, value, rel_tol=1e-4):
                    found.append((node, scope))
    return found[0] if len(found) == 1 else None


def _defaults(scope: Scope) -> list[ast.expr]:
    """The defaults of a function's parameters, which stand in no scope's nodes."""
    node = scope.node
    if not isinstance(node, FunctionNode):
        return []
    return [d for d in (*node.args.defaults, *node.args.kw_defaults) if d is not None]


def named(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Names with what is written under them: keywords, keys, assignments, defaults, command line options."""
    match node:
        case ast.Call():
            options = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            for keyword in node.keywords:
                if keyword.arg == "default" and options:
                    yield options[-1], keyword.value
                elif keyword.arg:
                    yield keyword.arg, keyword.value
        case ast.Dict():
            for key, item in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield key.value, item
        case ast.Assign():
            for target in node.targets:
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    for one, item in zip(target.elts, node.value.elts, strict=False):
                        yield ast.unparse(one), item
                else:
                    yield ast.unparse(target), node.value
        case ast.AnnAssign() if node.value is not None:
            yield ast.unparse(node.target), node.value
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            named = [*node.args.posonlyargs, *node.args.args]
            for arg, default in zip(named[len(named) - len(node.args.defaults) :], node.args.defaults, strict=True):
                yield arg.arg, default
            for arg, kw_default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
                if kw_default is not None:
                    yield arg.arg, kw_default


def written_number(node: ast.expr) -> float | None:
    match node:
        case ast.Constant(value=int() | float() as found) if not isinstance(found, bool):
            return float(found)
        case ast.UnaryOp(op=ast.USub()):
            inner = written_number(node.operand)
            return -inner if inner is not None else None
    return None


def chosen(run: Rehearsing, optimizer: Obj) -> Place:
    """Where the parameters of an optimizer were chosen: the comprehension, the last ``append``, or its call."""
    assert optimizer.place is not None
    given = next((c for c in candidates(optimizer.get("params", 0)) if c is not None), None)
    lists = [given] if isinstance(given, Items) else []
    for item in given.items if isinstance(given, Items) else ():
        inner = item.entries.get("params") if isinstance(item, Table) else None
        if isinstance(inner, Items):
            lists.append(inner)
    added = [
        e for e in run.tape if e.name in ("append", "extend", "add", "update") and any(e.subject is i for i in lists)
    ]
    added = [e for e in added if e.serial < optimizer.serial or not e.turns]
    if added and added[-1].place is not None:
        return _last_test(run, added) or added[-1].place
    chosen_in = [
        i.place for i in lists[::-1] if i.place is not None and isinstance(i.place[0], ast.ListComp | ast.GeneratorExp)
    ]
    if len(chosen_in) == 1:
        return chosen_in[0]
    place = next((i.place for i in lists if i.place is not None and i.items), optimizer.place)
    written = place[0]
    if isinstance(written, ast.List) and written.elts and written.elts[-1].lineno > written.lineno:
        return written.elts[-1], place[1]  # over several lines: what is missing would follow the last
    return place


def _last_test(run: Rehearsing, added: list[Event]) -> Place | None:
    """The last test of an ``if`` without an ``else`` around all that was added: what fits none of them is left out."""
    places = [e.place for e in added if e.place is not None]
    above = [[a for a in run.project.ancestors(*place) if isinstance(a, ast.If)] for place in places]
    outermost = [chain[-1] for chain in above if chain]
    if len(outermost) < len(places) or any(o is not outermost[0] for o in outermost):
        return None
    last = outermost[0]
    while len(last.orelse) == 1 and isinstance(last.orelse[0], ast.If):
        last = last.orelse[0]
    return (last.test, places[-1][1]) if not last.orelse and last is not outermost[0] else None


def parting(one: Node | Obj | Event, other: Node | Obj | Event) -> Place | None:
    """Where the way to ``one`` leaves the way to ``other``: the statement of the function that leads to both."""
    mine = (*one.stack, *([one.place] if one.place is not None else []))
    theirs = (*other.stack, *([other.place] if other.place is not None else []))
    for number, place in enumerate(mine):
        if number >= len(theirs) or theirs[number][0] is not place[0]:
            return place
    return one.place


def innermost(event: Event | Node) -> Turn | None:
    return event.turns[-1] if event.turns else None


def formula_left_out(run: Rehearsing) -> bool:
    """True where the program has a formula with roots that nothing calls: one that turns what is told into noise."""
    nodes = [n for walked in run.project.walked.values() for scope in walked.scopes for n in scope.nodes]
    asked = {n.id for n in nodes if isinstance(n, ast.Name)} | {n.attr for n in nodes if isinstance(n, ast.Attribute)}
    for function in run.project.functions:
        if function.name.startswith("__") or function.name in asked or function.name == "forward":
            continue
        inner = list(ast.walk(function.node))
        roots = any(isinstance(n, ast.Attribute) and n.attr == "sqrt" for n in inner)
        if roots and any(isinstance(n, ast.BinOp) and isinstance(n.op, ast.Add | ast.Sub) for n in inner):
            return True
    return False


def mixture_left_out(run: Rehearsing, noises: tuple[Node, ...]) -> bool:
    """True where the program has a function that mixes what this noise is called with something else, and nothing calls
    it: ``a * e - s * x``, the target that was meant."""
    scopes = {id(n.place[1]): n.place[1] for n in noises if n.place is not None}
    own = {t.id for n in noises if n.place is not None for t in _names_of(run, n.place)}
    nodes = [n for walked in run.project.walked.values() for scope in walked.scopes for n in scope.nodes]
    asked = {n.id for n in nodes if isinstance(n, ast.Name)} | {n.attr for n in nodes if isinstance(n, ast.Attribute)}
    for function in run.project.functions:
        if id(function) in scopes or function.name in asked or function.name.startswith("__"):
            continue
        given = {a.arg for a in getattr(function.node, "args", ast.arguments([], [], None, [], [], None, [])).args}
        for node in ast.walk(function.node):
            mixed = isinstance(node, ast.Return) and isinstance(node.value, ast.BinOp)
            if mixed and given & own and isinstance(node.value.op, ast.Add | ast.Sub):  # type: ignore[attr-defined]
                return True
    return False


def _names_of(run: Rehearsing, place: Place) -> list[ast.Name]:
    statement = run.project.statement(*place)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return [t for target in targets for t in ast.walk(target) if isinstance(t, ast.Name)]


def apart(made: Obj, others: list[Obj]) -> Place | None:
    """Where an object is made; the call of what makes it, where the others come out of the same function."""
    shared = {id(at[0]) for o in others for at in (*o.stack, o.place) if at is not None}
    ways = [at for at in (*made.stack, made.place) if at is not None]
    return next((at for at in reversed(ways) if id(at[0]) not in shared), made.place)
