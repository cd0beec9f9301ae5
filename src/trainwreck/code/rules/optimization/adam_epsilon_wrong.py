"""An epsilon as large as the gradients.

What: Adam or AdamW with a literal ``eps`` of 0.1 or more.
Why it matters: epsilon then rules the denominator: the step is that of plain gradient descent with a small rate.
When it is fine: where that is tuned on purpose.
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
from trainwreck.code.rehearsal.questions.rates import epsilon
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def build(model):
    return torch.optim.Adam(model.parameters(), lr=1e-3, eps=1.0)  # expect
""",
    """
from torch.optim import AdamW
EPS = 0.5
def build(model):
    return AdamW(model.parameters(), 1e-3, (0.9, 0.999), EPS)  # expect
""",
)
GOOD = """
import torch
def build(model):
    return torch.optim.Adam(model.parameters(), eps=1e-4), torch.optim.RMSprop(model.parameters(), eps=1.0)
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), epsilon)


def _seen(project: Project) -> Iterator[Evidence]:
    for built in optimizers(project):
        value = only(project, option(project, built, "eps", 3))
        if built.name in ("Adam", "AdamW", "NAdam", "RAdam") and isinstance(value, int | float) and value >= 0.1:
            yield sighting(__name__, built, f"eps={value:g} is far above the size of gradients: Adam no longer adapts")
