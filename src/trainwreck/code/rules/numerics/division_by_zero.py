"""A division whose divisor can be zero.

What: dividing by a standard deviation, a norm, a sum or a range without an epsilon (a constant column has deviation
0).
Why it matters: 0/0 is NaN and spreads through the whole table or batch.
When it is fine: with ``+ eps``, ``clamp(min=…)``, ``np.where`` or where the divisor is known to be positive.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.flow import back
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.degrees import nodes_without_links
from trainwreck.code.rehearsal.questions.empty_counts import divided_by_share, rows_without_any
from trainwreck.code.rehearsal.questions.empty_groups import empty_groups
from trainwreck.code.rehearsal.questions.few_draws import nothing_drawn
from trainwreck.code.rehearsal.questions.surely_zero import by_zero, constant_column, short_relu_rows
from trainwreck.code.rehearsal.questions.unused import divides_by_zero
from trainwreck.code.rule import guess
from trainwreck.code.scopes import Scope
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

SURFACES = (r"(invalid value|divide by zero) encountered in .*divide", r"division by zero|ZeroDivisionError")
ERROR = "RuntimeWarning: invalid value encountered in divide"
BAD = """
def standardise(x):
    mean, std = x.mean(axis=0), x.std(axis=0)
    return (x - mean) / std  # expect # place
"""
GOOD = """
def standardise(x):
    mean, std = x.mean(axis=0), x.std(axis=0)
    return (x - mean) / (std + 1e-6)
"""
RISKY = pattern(r"\.std\(|\.var\(|norm\(|\.sum\(|np\.ptp|\.max\(.*\.min\(|\.count|len\(")
SAFE = pattern(r"eps|1e-\d+|clamp|clip|maximum|max\(1|where|or 1\b|nan_to_num|numel")


def find(project: Project) -> Iterator[Evidence]:
    yield from answers(__name__, project, divides_by_zero)
    yield from answers(__name__, project, empty_groups)
    yield from answers(__name__, project, nothing_drawn)
    yield from answers(__name__, project, divided_by_share)
    yield from answers(__name__, project, rows_without_any)
    yield from answers(__name__, project, constant_column)
    yield from answers(__name__, project, nodes_without_links)
    yield from answers(__name__, project, short_relu_rows)
    yield from answers(__name__, project, by_zero)


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    spots = surface.spots if surface is not None else ()
    for spot in spots:
        if any(isinstance(n, ast.BinOp) and isinstance(n.op, ast.Div) for n in ast.walk(spot.statement)):
            yield guess(__name__, (spot.statement, spot.scope), "the division stands here")
            return
    for scope in project.scopes:
        for node in project.within(scope, ast.BinOp):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and _risky(project, node.right, scope):
                yield guess(__name__, (node, scope), f"nothing keeps {written(node.right)[:40]} from being zero")
                return


def _risky(project: Project, node: ast.expr, scope: Scope) -> bool:
    if SAFE.search(written(node)):
        return False
    for step in back(project, node, scope):
        text = written(step.node)
        if SAFE.search(text):
            return False
        if isinstance(step.node, ast.Call) and last_name(step.node.func) in ("std", "var", "norm", "ptp"):
            return True
        if step.depth > 4:
            break
    return False
