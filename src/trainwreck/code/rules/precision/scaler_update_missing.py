"""The gradient scaler is never updated.

What: ``scaler.step(optimizer)`` in the loop, and no ``scaler.update()`` anywhere.
Why it matters: the scale never adapts; torch raises at the second step, because a step must be followed by an
update.
When it is fine: where a wrapper updates it.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.calls import last_name
from trainwreck.code.facts import (
    made_names,
)
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.scaling import never_updated
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def train(model, loader, optimizer, criterion):
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)  # expect
""",
    """
from torch.cuda.amp import GradScaler
class Trainer:
    def __init__(self):
        self.grad_scaler = GradScaler()
    def step(self, loss):
        self.grad_scaler.scale(loss).backward()
        self.grad_scaler.step(self.opt)  # expect
        self.opt.zero_grad()
""",
)
GOOD = """
import torch
def train(model, loader, optimizer, criterion):
    scaler = torch.amp.GradScaler("cuda")
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        if i % 2:
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), never_updated)


def _seen(project: Project) -> Iterator[Evidence]:
    for call in project.calls("step"):
        receiver = call.receiver
        if receiver is None or not made_names(project, receiver, call.scope) & {"GradScaler"} or not call.node.args:
            continue
        name = last_name(receiver)
        if any(u.receiver is not None and last_name(u.receiver) == name for u in project.calls("update")):
            continue
        yield sighting(__name__, call, f"{name}.update() is never called after the step")
