"""The argument verbose of a scheduler of torch.

What: `verbose=` given to a scheduler of `torch.optim.lr_scheduler`.
Why it matters: gone since torch 2.7: a TypeError when the scheduler is made.
When it is fine: with torch below 2.7, in schedulers of one's own.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.catalogue import specifiers
from trainwreck.code import edits
from trainwreck.code.calls import Call
from trainwreck.code.outdated import grade, guarded
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.targets import pin_for
from trainwreck.core.evidence import Evidence

WORDS = ("verbose",)
BAD = """
import torch
from torch.optim.lr_scheduler import StepLR
def schedules(optimizer):
    torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=3, verbose=True)  # expect
    return StepLR(optimizer, 10, verbose=False)  # expect
"""
GOOD = """
from torch.optim.lr_scheduler import LRScheduler, StepLR
class Mine(LRScheduler):
    def __init__(self, optimizer, verbose=False):
        super().__init__(optimizer)
def schedules(optimizer):
    Mine(optimizer, verbose=True)
    return StepLR(optimizer, 10)
"""


GONE = (2, 7)
"""The release of torch that dropped the argument (pytorch/pytorch pull 147301; absent in 2.13)."""


def find(project: Project) -> Iterator[Evidence]:
    for walked in project.walked.values():
        for node, scope in walked.calls:
            item = next((k for k in node.keywords if k.arg == "verbose"), None)
            call = Call(node, scope)
            if item is None or not project.called(call).startswith("torch.optim.lr_scheduler."):
                continue
            pin = pin_for(project, "torch", scope.module.path)
            if (pin is None and not project.assume_newest) or guarded(project, node, scope):
                continue
            if pin is not None and not specifiers.reaches(pin.specifier, GONE):
                continue
            certain = pin is not None and specifiers.starts_at(pin.specifier, GONE)
            text = f"`verbose` is no argument of {call.name} from torch 2.7 on; log scheduler.get_last_lr()"
            fix = edits.remove_keyword(node, "verbose", scope, "leave verbose out", safe=True)
            yield sighting(__name__, (item, scope), text, fix=fix, severity=grade(certain))
