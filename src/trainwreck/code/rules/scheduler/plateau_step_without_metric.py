"""The plateau scheduler steps without its metric.

What: ``ReduceLROnPlateau.step()`` without an argument.
Why it matters: the call raises: the metric is required.
When it is fine: never.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.facts import (
    made,
)
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.plateaus import plateau_without_metric
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def train(model, loader, optimizer):
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=2)
    for epoch in range(10):
        run(model, loader, optimizer)
        scheduler.step()  # expect
""",
    """
from torch.optim.lr_scheduler import ReduceLROnPlateau
class Trainer:
    def __init__(self, opt):
        self.sched = ReduceLROnPlateau(opt, "min")
    def end_of_epoch(self):
        self.sched.step()  # expect
""",
)
GOOD = """
import torch
from torch.optim.lr_scheduler import ReduceLROnPlateau, StepLR
def train(model, loader, optimizer, plateau):
    scheduler = ReduceLROnPlateau(optimizer) if plateau else StepLR(optimizer, 3)
    other = ReduceLROnPlateau(optimizer)
    for epoch in range(10):
        loss = run(model, loader, optimizer)
        other.step(loss)
        if plateau:
            scheduler.step(loss)
        else:
            scheduler.step()
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), plateau_without_metric)


def _seen(project: Project) -> Iterator[Evidence]:
    for call in project.calls("step"):
        if call.receiver is None or call.node.args or call.node.keywords:
            continue
        calls = made(project, call.receiver, call.scope)
        if calls and all(c.name == "ReduceLROnPlateau" for c in calls):
            yield sighting(__name__, call, "a plateau scheduler needs the metric that it watches", proof=calls[:1])
