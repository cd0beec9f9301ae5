"""The warm-up rounds the learning rate down to zero.

What: floor division (``lr * step // warmup``) of a value below one.
Why it matters: the learning rate is exactly zero through the whole warm-up.
When it is fine: never for a learning rate; with ``/`` and ``step + 1`` it rises.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.byhand import zero_for_long
from trainwreck.code.rehearsal.questions.schedules import starts_at_zero
from trainwreck.code.rule import sighting
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
    for scope in project.scopes:
        for node in project.within(scope, ast.BinOp):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv):
                left = [n for n in ast.walk(node.left) if isinstance(n, ast.Name | ast.Attribute)]
                if any(RATE.search(written(n)) for n in left):
                    yield sighting(
                        __name__, (node, scope), "floor division of a learning rate gives zero until it reaches one"
                    )
