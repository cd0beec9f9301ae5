"""The warm-up rounds the learning rate down to zero.

What: floor division (``lr * step // warmup``) of a value below one.
Why it matters: the learning rate is exactly zero through the whole warm-up.
When it is fine: never for a learning rate; with ``/`` and ``step + 1`` it rises.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.byhand import zero_for_long
from trainwreck.code.rehearsal.questions.schedules import starts_at_zero
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence

BAD = """
def rate(step, lr, warmup):
    if step < warmup:
        return lr * step // warmup  # expect
    return lr
"""
GOOD = """
def rate(step, lr, warmup, total, workers):
    if step < warmup:
        return lr * (step + 1) / warmup
    each = total // workers
    return lr * (1 - step / total) * each
"""
RATE = pattern(r"(^|[._])(lr|learning_rate|base_lr|max_lr|peak_lr|init_lr)$")


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), starts_at_zero, zero_for_long)


def _seen(project: Project) -> Iterator[Evidence]:
    yield from _floored(project)
    for scope in project.scopes:
        for node in project.within(scope, ast.BinOp):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv):
                left = [n for n in ast.walk(node.left) if isinstance(n, ast.Name | ast.Attribute)]
                if any(RATE.search(written(n)) for n in left):
                    yield sighting(
                        __name__, (node, scope), "floor division of a learning rate gives zero until it reaches one"
                    )


def _floored(project: Project) -> Iterator[Evidence]:
    """``rate * (step // warmup)`` where ``step < warmup`` was asked: the share of the warm-up is zero all along."""
    for scope in project.scopes:
        for node in project.within(scope, ast.BinOp):
            if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.FloorDiv):
                continue
            count, length = written(node.left), written(node.right)
            above: ast.AST = node
            for around in project.ancestors(node, scope):
                if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                    break
                test = around.test if isinstance(around, ast.If | ast.IfExp) else None
                body = around.body if isinstance(around, ast.If | ast.IfExp) else None
                inside = above is body or (isinstance(body, list) and any(above is b for b in body))
                asked = inside and isinstance(test, ast.Compare) and _below(test, count, length)
                if asked and _scales(project, node, scope):
                    text = f"{count} is less than {length} here: the quotient is zero through the whole warm-up"
                    yield sighting(__name__, (node, scope), text)
                above = around


def _below(test: ast.Compare, count: str, length: str) -> bool:
    """True for ``count < length``, also where one is added to the count in the quotient."""
    one, other = written(test.left), written(test.comparators[0])
    plain = len(test.ops) == 1 and isinstance(test.ops[0], ast.Lt) and other == length
    return plain and count in (one, f"{one} + 1")


def _scales(project: Project, node: ast.BinOp, scope: Scope) -> bool:
    """True if the quotient is a factor, or is what a function gives back: a share, no number of a group."""
    above = project.parent(node, scope)
    product = isinstance(above, ast.BinOp) and isinstance(above.op, ast.Mult)
    named = bool(re.search("warm|ramp", written(node).lower()))
    return named and (product or isinstance(above, ast.Return | ast.IfExp))
