"""The logarithm of something that can be zero or negative.

What: ``log`` of raw data or of probabilities without ``log1p``, ``clamp`` or an epsilon.
Why it matters: -inf for zero, NaN below; one such value makes the loss NaN.
When it is fine: with ``log1p``, ``log(x + eps)``, ``log_softmax``, or data known to be positive.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.project import Project
from trainwreck.code.rule import guess
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

SURFACES = (r"(invalid value|divide by zero) encountered in log",)
ERROR = "RuntimeWarning: divide by zero encountered in log"
BAD = """
import numpy as np
def target(demand):
    return np.log(demand)  # expect # place
"""
GOOD = """
import numpy as np
def target(demand):
    return np.log1p(demand) + np.log(demand + 1e-6)
"""
SAFE = re.compile(r"eps|1e-\d|clamp|clip|maximum|\+ 1\b|\+ 1\.0|softmax|sigmoid")


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    for call in surface.calls(project) if surface is not None else ():
        if call.name in ("log", "log2", "log10"):
            yield guess(__name__, call, "the logarithm is taken here")
            return
    for call in _logs(project):
        if not SAFE.search(written(call.node)):
            yield guess(__name__, call, "nothing keeps what the logarithm is taken of from being zero")
            return


def _logs(project: Project) -> Iterator[Call]:
    for call in project.calls("log", "log2", "log10"):
        named = project.called(call)
        printed = any(isinstance(a, ast.JoinedStr) for a in project.ancestors(call.node, call.scope))
        constant = bool(call.node.args) and isinstance(call.node.args[0], ast.Constant)
        if not named.startswith(("math.", "logging", "wandb", "logger", "self.log")) and not printed and not constant:
            yield call
