"""A float64 array of numpy becomes a float64 tensor and meets float32 weights.

What: ``torch.from_numpy(x)`` or ``torch.tensor(x)`` of an array that numpy made in double precision, without a
conversion.
Why it matters: the first layer refuses the type.
When it is fine: where the array is float32 already, or the model is ``.double()``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.flow import Step, back
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rule import guess
from trainwreck.code.seek import inputs, targets
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

SURFACES = (r"\b[Dd]ouble\b", r"float64")
ERROR = "RuntimeError: mat1 and mat2 must have the same dtype, but got Double and Float"
BAD = """
import numpy as np
import torch
from torch import nn
def main():
    table = np.random.default_rng(0).normal(size=(100, 8))
    x = torch.from_numpy(table)  # expect
    model = nn.Linear(8, 1)
    for batch in x.split(10):
        model(batch)  # fails
"""
GOOD = """
import numpy as np
import torch
from torch import nn
def main():
    x = torch.from_numpy(np.zeros((100, 8), dtype=np.float32))
    model = nn.Linear(8, 1)
    model(x)  # fails
"""
SINGLE = pattern(r"float32|\.float\(|\bfloat16|\.half\(|bfloat16|FloatTensor|dtype=torch\.float\b|\.to\(torch\.float\b")
DOUBLE = pattern(r"float64|\.double\(|DoubleTensor|torch\.double|set_default_dtype")
KEEPS = ("from_numpy", "tensor", "as_tensor", "asarray")


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    asked = [*inputs(project, surface), *targets(project, surface)]
    for wanted in (_doubled, _kept):
        for node, scope in asked:
            for step in back(project, node, scope):
                if (
                    wanted(step)
                    and not any(SINGLE.search(_own(s)) for s in step.chain())
                    and not _single_below(project, step)
                ):
                    yield guess(__name__, step, "numpy's double precision is kept here", step.chain()[1:4])
                    return


def _own(step: Step) -> str:
    return written(step.node) if isinstance(step.node, ast.Call) else ""


def _doubled(step: Step) -> bool:
    return isinstance(step.node, ast.Call) and bool(DOUBLE.search(_own(step)))


def _kept(step: Step) -> bool:
    return isinstance(step.node, ast.Call) and last_name(step.node.func) in KEEPS


def _single_below(project: Project, step: Step) -> bool:
    """True if everything in sight that the step is made of is single precision."""
    argument = step.node.args[0] if isinstance(step.node, ast.Call) and step.node.args else None
    if argument is None:
        return False
    for count, below in enumerate(back(project, argument, step.scope)):
        if SINGLE.search(written(below.node)):
            return True
        if count > 12:
            break
    return False
