"""How often something runs: rounds of the loops around it, over functions."""

from __future__ import annotations

import ast
import math

from trainwreck.code.bounds import ANY, Interval, interval
from trainwreck.code.calls import last_name
from trainwreck.code.order import loops
from trainwreck.code.project import Project
from trainwreck.code.scopes import Scope

MAX_DEPTH = 5


def rounds(project: Project, node: ast.AST, scope: Scope, depth: int = 0) -> Interval:
    """How often ``node`` runs in one run of the program, as an interval; infinite where that is unknown."""
    low, high = 1.0, 1.0
    for loop in loops(project, node, scope):
        a, b = turns(project, loop, scope)
        low, high = low * a, high * b if high and b else 0.0
    if scope.kind == "function" and depth < MAX_DEPTH:
        callers = project.callers(scope)
        if not callers:
            return low, high if scope.name == "main" else math.inf
        counted = [rounds(project, c.node, c.scope, depth + 1) for c in callers]
        low *= min(c[0] for c in counted)
        high *= sum(c[1] for c in counted)
    return low, high


def turns(project: Project, loop: ast.AST, scope: Scope) -> Interval:
    """How often the body of ``loop`` runs for one pass over it."""
    if not isinstance(loop, ast.For | ast.AsyncFor):
        return 0.0, math.inf
    over: ast.expr = loop.iter
    while isinstance(over, ast.Call) and last_name(over.func) in ("tqdm", "enumerate", "list", "iter") and over.args:
        over = over.args[0]
    if isinstance(over, ast.Call) and last_name(over.func) in ("range", "trange") and over.args:
        ends = [interval(project, a, scope) for a in over.args]
        start, stop = (ends[0], ends[1]) if len(ends) > 1 else ((0.0, 0.0), ends[0])
        if ANY in (start, stop):
            return 0.0, math.inf
        step = ends[2] if len(ends) > 2 else (1.0, 1.0)
        if step[0] <= 0:
            return 0.0, math.inf
        return max(0.0, (stop[0] - start[1]) / step[1]), max(0.0, (stop[1] - start[0]) / step[0])
    if isinstance(over, ast.List | ast.Tuple):
        return float(len(over.elts)), float(len(over.elts))
    if isinstance(over, ast.Call) and last_name(over.func) == "zip":
        return 0.0, math.inf
    return 1.0, math.inf
