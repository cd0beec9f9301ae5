"""The learning rate is too low for anything to be learned.

What: the number that the learning rate of the training is written as.
Why it matters: all losses stay where they began.
When it is fine: whether it is too low, only the run can tell.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rule import guess
from trainwreck.code.rules.optimization.lr_too_high import rate_place
from trainwreck.code.rules.support import at_line
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

BAD = """
import torch
def main(model,
         lr=1e-9):  # expect # place
    opt = torch.optim.SGD(model.parameters(), lr=lr)
    return opt
"""
GOOD = """
def main(model):
    return model
"""


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    place = rate_place(project)
    if place is None:
        return
    where, proof = place
    written = at_line(project, proof)
    yield guess(__name__, written or where, "the learning rate is written here", proof=proof)
