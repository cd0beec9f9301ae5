"""Lion with the learning rate of AdamW.

What: ``Lion(lr=1e-3)`` or more: its updates are signs, all of size one.
Why it matters: the right rate is three to ten times below that of AdamW; with the same rate training is unstable.
When it is fine: for very small models.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.facts import (
    only,
    option,
)
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.own_optimizers import signs
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
from lion_pytorch import Lion
def build(model):
    return Lion(model.parameters(), lr=3e-3)  # expect
""",
    """
import lion_pytorch
LR = 1e-3
def build(model):
    return lion_pytorch.Lion(model.parameters(), LR, weight_decay=0.1)  # expect
""",
)
GOOD = """
from lion_pytorch import Lion
def build(model, lr):
    return Lion(model.parameters(), lr=1e-4), Lion(model.parameters(), lr=lr), Lion(model.parameters())
"""
LARGE = 1e-3
"""The Lion paper (arXiv:2302.06675) takes rates 3 to 10 times below AdamW's usual 1e-3."""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), signs)


def _seen(project: Project) -> Iterator[Evidence]:
    for call in project.calls("Lion", "Lion8bit"):
        value = only(project, option(project, call, "lr", 1))
        if project.resolve(call.node.func, call.scope) is None and isinstance(value, float) and value >= LARGE:
            yield sighting(__name__, call, f"lr={value:g} is a rate for AdamW; the steps of Lion are signs of size one")
