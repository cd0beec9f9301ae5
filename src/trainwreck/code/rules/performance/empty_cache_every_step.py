"""The memory cache is emptied in every step.

What: ``torch.cuda.empty_cache()`` (or ``gc.collect()``) stands unguarded in the innermost training loop.
Why it matters: freed blocks go back to the driver and must be asked for again: each step waits, and no memory is
won.
When it is fine: between phases, or after an out-of-memory error.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.order import (
    training_steps,
)
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def train(model, loader, optimizer):
    for x in loader:
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        torch.cuda.empty_cache()  # expect
""",
    """
import gc
class Trainer:
    def fit(self):
        for batch in self.loader:
            self.optimizer.zero_grad()
            self.model(batch).backward()
            self.optimizer.step()
            gc.collect()  # expect
""",
)
GOOD = """
import gc
import torch
def train(model, loader, optimizer):
    for epoch in range(3):
        for i, x in enumerate(loader):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
            if i % 1000 == 0:
                gc.collect()
        torch.cuda.empty_cache()
"""


def find(project: Project) -> Iterator[Evidence]:
    for step in training_steps(project):
        if step.loop is None or not step.steps:
            continue
        for call in project.calls("empty_cache", "collect"):
            if call.name == "collect" and project.called(call) != "gc.collect":
                continue
            parent = project.parent(project.statement(call.node, call.scope), call.scope)
            if parent is step.loop and any(isinstance(a, ast.For | ast.While) for a in [step.loop]):
                yield sighting(__name__, call, "this runs in every step: it waits, and wins no memory")
                break
