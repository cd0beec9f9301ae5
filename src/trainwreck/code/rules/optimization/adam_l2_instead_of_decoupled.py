"""A decoupled weight decay is given to Adam.

What: ``Adam(weight_decay=0.01)`` or more: values that belong to AdamW.
Why it matters: in Adam the decay is added to the gradient and divided by its size: large weights of steep
directions are hardly decayed, and the rate means something else.
When it is fine: for small L2 penalties (1e-4) that were tuned for Adam.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.facts import (
    is_torch,
    only,
    optimizers,
    option,
)
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.rates import coupled
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def build(model):
    return torch.optim.Adam(model.parameters(), lr=3e-4, weight_decay=0.1)  # expect
""",
    """
from torch.optim import Adam
def build(model):
    options = dict(lr=1e-3, weight_decay=0.01)
    return Adam(model.parameters(), **options)  # expect
""",
)
GOOD = """
import torch
def build(model, wd):
    a = torch.optim.Adam(model.parameters(), lr=3e-4, weight_decay=1e-4)
    b = torch.optim.AdamW(model.parameters(), weight_decay=0.1)
    c = torch.optim.Adam(model.parameters(), weight_decay=0.01, decoupled_weight_decay=True)
    return a, b, c, torch.optim.Adam(model.parameters(), weight_decay=wd)
"""
LARGE = 0.01
"""The default of AdamW; L2 penalties of Adam are usually 1e-3 or less (a judgement)."""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), coupled)


def _seen(project: Project) -> Iterator[Evidence]:
    for built in optimizers(project):
        if (
            built.name != "Adam"
            or option(project, built, "decoupled_weight_decay") is not None
            or not is_torch(project, built)
        ):
            continue
        value = only(project, option(project, built, "weight_decay", 4))
        if isinstance(value, int | float) and not isinstance(value, bool) and value >= LARGE:
            yield sighting(
                __name__, built, f"weight_decay={value:g} in Adam is an L2 penalty inside the adaptive step, not decay"
            )
