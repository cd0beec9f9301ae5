"""A moving average whose two weights do not add up to one.

What: ``s.mul_(decay).add_(p, alpha=decay)``: the new value is weighted by the decay itself.
Why it matters: the average grows to decay/(1 - decay) times the weights and is useless.
When it is fine: with ``alpha=1 - decay`` or ``lerp_``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.project import Project
from trainwreck.code.rule import guess, sighting
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

BAD = """
def update(shadow, model, decay):
    for s, p in zip(shadow, model):
        s.mul_(decay).add_(p, alpha=decay)  # expect
"""
GOOD = """
def update(shadow, model, decay):
    for s, p in zip(shadow, model):
        s.mul_(decay).add_(p, alpha=1 - decay)
        s.data = decay * s.data + (1 - decay) * p.data
"""


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("add_"):
        inner = call.receiver
        if not (isinstance(inner, ast.Call) and last_name(inner.func) == "mul_" and inner.args):
            continue
        decay, weight = written(inner.args[0]), written(call.argument("alpha"))
        if not weight and call.node.args and isinstance(call.node.args[0], ast.BinOp):
            weight = next(
                (written(s) for s in (call.node.args[0].left, call.node.args[0].right) if written(s) == decay), ""
            )
        if decay == weight and not isinstance(inner.args[0], ast.Constant | ast.BinOp):
            yield sighting(__name__, call, f"old and new value are both weighted by {decay}")


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    for call in _averages(project):
        yield guess(__name__, call, "the moving average is made here")
        return


def _averages(project: Project) -> Iterator[Call]:
    for call in project.calls("add_", "lerp_", "lerp", "AveragedModel"):
        if "decay" in written(call.node) or "ema" in written(call.node).lower():
            yield call
