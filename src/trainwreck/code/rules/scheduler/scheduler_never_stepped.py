"""A scheduler is built and never stepped.

What: an ``lr_scheduler`` is assigned to a name that is used nowhere else.
Why it matters: the learning rate stays constant; the schedule is only decoration.
When it is fine: where it is returned or handed on.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.facts import (
    ENGINES,
    bound_to,
    schedulers,
    source,
    trains,
)
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.idle_rates import never_asked, never_counts
from trainwreck.code.rehearsal.questions.schedules import never_moved
from trainwreck.code.rehearsal.questions.unset_rates import unset
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def train(model, loader, criterion, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)  # expect
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
""",
    """
import torch
from torch.optim.lr_scheduler import OneCycleLR
class Trainer:
    def __init__(self, model, steps):
        self.opt = torch.optim.AdamW(model.parameters())
        self.sched = OneCycleLR(self.opt, 0.1, total_steps=steps)  # expect
    def fit(self, loader):
        for batch in loader:
            self.opt.zero_grad()
            self.model(batch).backward()
            self.opt.step()
            print(self.sched.get_last_lr())
""",
)
GOOD = """
import torch
from torch.optim.lr_scheduler import LinearLR, SequentialLR, StepLR
def build(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    first = LinearLR(optimizer)
    second = StepLR(optimizer, 10)
    return optimizer, SequentialLR(optimizer, [first, second], [5])
class Trainer:
    def __init__(self, opt):
        self.scheduler = StepLR(opt, 3)
class Child(Trainer):
    def fit(self, loss):
        loss.backward()
        self.scheduler.step()
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), never_moved, unset, never_counts, never_asked)


def _seen(project: Project) -> Iterator[Evidence]:
    if not trains(project) or ENGINES.search(source(project)):
        return
    for built in schedulers(project):
        name = bound_to(project, built)
        if not name or project.resolve(built.node.func, built.scope) is not None:
            continue
        if not _used(project, built, name.rsplit(".", 1)[-1], attribute="." in name):
            yield sighting(__name__, built, f"{name} is built, and nothing ever steps it")


def _used(project: Project, built: Call, name: str, attribute: bool) -> bool:
    """True if the name is read in any way but ``get_last_lr``, ``state_dict`` and ``load_state_dict``."""
    quiet = ("get_last_lr", "get_lr", "state_dict", "load_state_dict", "last_epoch")
    walked = project.walked if attribute else {built.scope.module.path: project.walked[built.scope.module.path]}
    for path in walked:
        for node in ast.walk(project.walked[path].top.module.tree):
            named = (isinstance(node, ast.Attribute) and node.attr == name) or (
                isinstance(node, ast.Name) and node.id == name
            )
            if not named or isinstance(getattr(node, "ctx", None), ast.Store):
                continue
            parent = project.walked[path].parents.get(node)
            if not (isinstance(parent, ast.Attribute) and parent.attr in quiet):
                return True
    return False
