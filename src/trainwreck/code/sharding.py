"""Does the number of the loader's worker decide which samples an iterable data set yields?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import last_name
from trainwreck.code.project import Project
from trainwreck.code.scopes import FunctionNode, Scope

SEEDING = frozenset(
    """seed manual_seed default_rng RandomState SeedSequence Random Generator PCG64 Philox print info debug warning log
    get_worker_info int str max min float spawn""".split()
)
"""Calls that a worker's number may go into without a part of the samples being chosen by it."""
NUMBERS = frozenset(["id", "num_workers"])
"""What ``get_worker_info()`` tells of the worker; its ``seed`` decides about no sample."""
DRAWS = frozenset(["integers", "randint", "choice", "choices", "sample", "multinomial", "random_sample", "randrange"])
"""Random picks: workers that pick for themselves repeat nothing on purpose."""
ORDERS = frozenset(["randperm", "permutation", "shuffle"])
OTHER_WORKERS = ("split_by", "shard", "distribute")
"""Parts of names of helpers that share the samples out."""


def whole_walk(project: Project, method: Scope) -> ast.AST | None:
    """The loop in ``__iter__`` that every worker goes through from end to end; None where some worker may take its
    part of it, where the samples are drawn, or where it can't be told."""
    if not isinstance(method.node, ast.FunctionDef):
        return None
    node = method.node
    known = _numbers(node)
    if _decides(node, known):
        return None
    for loop in (n for n in ast.walk(node) if isinstance(n, ast.For | ast.comprehension)):
        if not _used(node, loop) or _drawn(node, loop.iter, known) or _unclear(loop.iter):
            continue
        if _endless(node, loop) or _shares_itself(project, loop.iter, method) or _told(project, loop.iter, method):
            continue
        if isinstance(loop, ast.For) and any(isinstance(n, ast.Yield | ast.YieldFrom) for n in ast.walk(loop)):
            return loop
        if isinstance(loop, ast.comprehension) and not any(isinstance(n, ast.For) for n in ast.walk(node)):
            return loop.iter
    for statement in ast.walk(node):
        given = statement.value if isinstance(statement, ast.YieldFrom | ast.Return) else None
        if given is not None and _rows(given) and not _unclear(given):
            return statement
    return None


def numbered(project: Project, walk: ast.AST, method: Scope) -> tuple[ast.AST, Scope]:
    """Where the numbers of the samples are made: the one ``return`` of a method that the loop asks, or the loop."""
    over = walk.iter if isinstance(walk, ast.For) else walk
    for node in ast.walk(over):
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "self":
            inner = project.find_method(method.owner, called.attr) if method.owner is not None else None
            returns = [n for n in ast.walk(inner.node) if isinstance(n, ast.Return)] if inner is not None else []
            if inner is not None and len(returns) == 1:
                return returns[0], inner
    return walk, method


def _numbers(node: FunctionNode) -> set[str]:
    """Names that hold what depends on the number of the worker, to the end of all assignments."""
    infos, known = set[str](), set[str]()
    for _ in range(4):
        for inner in ast.walk(node):
            if not isinstance(inner, ast.Assign | ast.AugAssign | ast.NamedExpr | ast.AnnAssign) or inner.value is None:
                continue
            targets = inner.targets if isinstance(inner, ast.Assign) else [inner.target]
            names = {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
            called = inner.value.func if isinstance(inner.value, ast.Call) else None
            if called is not None and last_name(called) == "get_worker_info":
                infos |= names
            elif _depends(inner.value, infos, known):
                known |= names
    return known | {f"{name}." for name in infos}


def _depends(value: ast.AST, infos: set[str], known: set[str]) -> bool:
    """True for an expression with a worker's number in it that is no seed and no generator."""
    if isinstance(value, ast.Call) and last_name(value.func) in SEEDING - {"int", "max", "min", "float"}:
        return False
    if isinstance(value, ast.Name):
        return value.id in known
    if isinstance(value, ast.Attribute):
        holder = value.value
        if isinstance(holder, ast.Name) and holder.id in infos:
            return value.attr in NUMBERS
        if isinstance(holder, ast.Call) and last_name(holder.func) == "get_worker_info":
            return value.attr in NUMBERS
        return "worker" in value.attr.lower() or "rank" in value.attr.lower() or _depends(holder, infos, known)
    return any(_depends(inner, infos, known) for inner in ast.iter_child_nodes(value))


def _decides(node: FunctionNode, known: set[str]) -> bool:
    """True where the number reaches a loop, a test, an index, a call or what is yielded."""
    infos = {name[:-1] for name in known if name.endswith(".")}
    for inner in ast.walk(node):
        asked: list[ast.AST] = []
        match inner:
            case ast.For() | ast.comprehension():
                asked = [inner.iter, *getattr(inner, "ifs", [])]
            case ast.If() | ast.While():
                asked = [inner.test]
            case ast.Subscript():
                asked = [inner.slice]
            case ast.Call() if last_name(inner.func) not in SEEDING:
                asked = [*inner.args, *(k.value for k in inner.keywords)]
                if any(isinstance(a, ast.Name) and a.id in infos for a in asked):
                    return True  # the whole information is handed on
            case ast.Yield() | ast.YieldFrom() | ast.Return() if inner.value is not None:
                asked = [inner.value]
            case ast.Attribute() if inner.attr == "dataset" and isinstance(inner.value, ast.Name):
                if inner.value.id in infos:
                    return True
        if any(_depends(a, infos, known) for a in asked):
            return True
    return False


def _used(node: FunctionNode, loop: ast.For | ast.comprehension) -> bool:
    """True where what the loop goes through is what is yielded, or picks it."""
    names = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)} - {"_"}
    inside: Iterator[ast.AST] = (
        iter(n for s in loop.body for n in ast.walk(s)) if isinstance(loop, ast.For) else ast.walk(node)
    )
    for inner in inside:
        if isinstance(inner, ast.Subscript) and _names(inner.slice) & names:
            return True
        if isinstance(inner, ast.Yield) and inner.value is not None and _names(inner.value) & names:
            return True
        if isinstance(inner, ast.Call) and any(isinstance(a, ast.Name) and a.id in names for a in inner.args):
            return True
    return False


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _drawn(node: FunctionNode, over: ast.expr, known: set[str]) -> bool:
    """True for a loop over numbers that were picked at random: ``rng.integers(n, size=k)``, ``randperm(n)[:k]``; a
    whole order is none."""
    looked = [over]
    names = _names(over)
    looked += [a.value for a in ast.walk(node) if isinstance(a, ast.Assign) and _names(a.targets[0]) & names]
    inside = [n for one in looked for n in ast.walk(one)]
    some = [n.value for n in inside if isinstance(n, ast.Subscript) and isinstance(n.slice, ast.Slice)]
    return any(isinstance(n, ast.Call) and last_name(n.func) in DRAWS for n in inside) or any(
        isinstance(n, ast.Call) and last_name(n.func) in ORDERS for n in some
    )


def _endless(node: FunctionNode, loop: ast.AST) -> bool:
    """True in ``while True`` with orders that each worker draws from the seed that torch gives it."""
    around = (n for n in ast.walk(node) if isinstance(n, ast.While) and isinstance(n.test, ast.Constant))
    if not any(inner is loop for n in around for inner in ast.walk(n)):
        return False
    calls = [n for n in ast.walk(node) if isinstance(n, ast.Call) and last_name(n.func) in ORDERS]
    makers = [ast.unparse(c.func.value) if isinstance(c.func, ast.Attribute) else "" for c in calls]
    return any(m in ("torch", "random") and not c.keywords for m, c in zip(makers, calls, strict=True))


def _shares_itself(project: Project, over: ast.expr, method: Scope) -> bool:
    """True for another iterable data set, which is asked by itself which worker goes through it."""
    owner = project.class_of(over, method)
    return owner is not None and project.find_method(owner, "__iter__") is not None


def _told(project: Project, over: ast.expr, method: Scope) -> bool:
    """True for what a function of the program made that asks for the worker's number."""
    names = _names(over)
    looked = [over, *(a.value for a in ast.walk(method.node) if isinstance(a, ast.Assign)
                      and any(_names(t) & names for t in a.targets))]  # fmt: skip
    for call in (n for one in looked for n in ast.walk(one) if isinstance(n, ast.Call)):
        made = project.resolve(call.func, method)
        inside = list(ast.walk(made.node)) if isinstance(made, Scope) and made.kind == "function" else []
        asks = any(isinstance(n, ast.Call) and last_name(n.func) == "get_worker_info" for n in inside)
        if asks and any(isinstance(n, ast.Attribute) and n.attr in NUMBERS for n in inside):
            return True
    return False


def _unclear(over: ast.expr) -> bool:
    """True for a walk that another object or helper may have shared out."""
    text = ast.unparse(over).lower()
    return any(word in text for word in (*OTHER_WORKERS, "worker", "rank", "islice", "self.stream", "count("))


def _rows(value: ast.expr) -> bool:
    """``self.rows`` or ``iter(self.rows)``: what an object holds, from end to end."""
    if isinstance(value, ast.Call) and last_name(value.func) in ("iter", "map", "enumerate", "zip", "reversed"):
        return bool(value.args) and any(_rows(a) for a in value.args)
    return isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name) and value.value.id == "self"
