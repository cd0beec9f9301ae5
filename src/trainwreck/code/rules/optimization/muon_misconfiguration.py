"""Muon gets every parameter.

What: ``Muon(model.parameters())`` without sorting out biases, norms, embeddings and the head.
Why it matters: Muon orthogonalises matrices: torch refuses other parameters, and embeddings and heads learn badly.
When it is fine: for a network of matrices only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name
from trainwreck.code.facts import (
    option,
)
from trainwreck.code.project import Project
from trainwreck.code.rehearsal import rehearsals
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.own_optimizers import unsuited
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def build(model):
    return torch.optim.Muon(model.parameters(), lr=0.02)  # expect
""",
    """
from torch.optim import Muon
class Trainer:
    def __init__(self, net):
        self.opt = Muon(params=net.parameters())  # expect
""",
)
GOOD = """
import torch
def build(model):
    matrices = [p for p in model.parameters() if p.ndim == 2]
    rest = [p for p in model.parameters() if p.ndim != 2]
    return torch.optim.Muon(matrices, lr=0.02), torch.optim.AdamW(rest)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), unsuited)


def _seen(project: Project) -> Iterator[Evidence]:
    for call in project.calls("Muon"):
        value = option(project, call, "params", 0)
        if value is None or project.resolve(call.node.func, call.scope) is not None:
            continue
        if (
            isinstance(value[0], ast.Call)
            and last_name(value[0].func) == "parameters"
            and project.called(call).startswith("torch.")
            and not _matrices(project, call)
        ):
            yield sighting(__name__, call, "Muon is for matrices, and gets every parameter of the model")


def _matrices(project: Project, call: Call) -> bool:
    """True where the rehearsal knows all that this optimizer holds, and each of these is a matrix."""
    for run in rehearsals(project):
        for made in run.objects:
            if made.place is not None and made.place[0] is call.node:
                params, complete = run.optimized(made)
                return complete and all(not p.shape.open and len(p.shape.dims) == 2 for p in params)
    return False
