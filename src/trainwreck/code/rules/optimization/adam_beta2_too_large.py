"""A second moment that forgets too slowly.

What: Adam with a literal second beta of 0.9999 or more.
Why it matters: its memory is ten thousand steps: after a change of the gradients the step size is wrong for long.
When it is fine: for tiny batches and very long runs.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.facts import (
    only,
    optimizers,
    option,
)
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.rates import beta2
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def build(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99999))  # expect
""",
    """
from torch.optim import Adam
BETAS = (0.9, 0.9999)
def build(model):
    return Adam(model.parameters(), betas=BETAS)  # expect
""",
)
GOOD = """
import torch
def build(model, b):
    return torch.optim.AdamW(model.parameters(), betas=(0.9, 0.999)), torch.optim.Adam(model.parameters(), betas=b)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), beta2)


def _seen(project: Project) -> Iterator[Evidence]:
    for built in optimizers(project):
        value = only(project, option(project, built, "betas", 2))
        if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], float) and 0.9999 <= value[1] < 1:
            yield sighting(__name__, built, f"a second beta of {value[1]:g} remembers {1 / (1 - value[1]):,.0f} steps")
