"""Gradients are clipped where it has no effect.

What: ``clip_grad_norm_`` comes after the optimizer's step, or before the backward pass of the same pass of the
loop.
Why it matters: the update has been made (or the gradients are not there yet): nothing is clipped.
When it is fine: for measuring with an infinite bound.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import (
    later,
)
from trainwreck.code.order import (
    TrainingStep,
    inside,
    kind_of,
    training_steps,
)
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.collectives import clipped_before
from trainwreck.code.rehearsal.questions.own_clipping import left_long
from trainwreck.code.rehearsal.questions.own_updates import changed_too_late, clips_values
from trainwreck.code.rehearsal.questions.scaling import clipped_elsewhere
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def train(model, loader, optimizer, criterion):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # expect
""",
    """
from torch.nn.utils import clip_grad_norm_
class Trainer:
    def fit(self):
        for batch in self.loader:
            self.optimizer.zero_grad()
            loss = self.model(batch)
            clip_grad_norm_(self.model.parameters(), 1.0)  # expect
            loss.backward()
            self.optimizer.step()
""",
)
GOOD = """
import torch
def train(model, loader, optimizer, other, criterion):
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), float("inf"))
        optimizer.zero_grad()
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
        other.zero_grad()
        criterion(model(y), x).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        other.step()
"""


def find(project: Project) -> Iterator[Evidence]:
    asked = (clipped_elsewhere, clipped_before, changed_too_late, left_long, clips_values)
    yield from further(__name__, project, _seen(project), *asked)


def _seen(project: Project) -> Iterator[Evidence]:
    for step in training_steps(project):
        calls = [
            c
            for c in project.calls_by_scope.get(step.scope, ())
            if step.loop is None or inside(project, c.node, c.scope, step.body)
        ]
        clips = [c for c in calls if c.name in ("clip_grad_norm_", "clip_grad_value_")]
        steps = [c for c in step.steps if kind_of(project, c) in ("optimizer", "scaler")]
        if len(clips) != 1 or len(steps) != 1 or len(step.backward) != 1:
            continue
        clip, back_, update = clips[0], step.backward[0], steps[0]
        if "inf" in written(clip.node) or any(_nested(project, c, step) for c in (clip, back_, update)):
            continue
        if later(clip.node, update.node) and later(update.node, back_.node):
            yield sighting(__name__, clip, "the step is already made when this clips", proof=[update])
        elif later(back_.node, clip.node) and later(update.node, back_.node):
            yield sighting(__name__, clip, "the gradients that this clips are computed after it", proof=[back_])


def _nested(project: Project, call: Call, step: TrainingStep) -> bool:
    """True if a condition or an inner loop lies between the loop and the call."""
    for above in project.ancestors(call.node, call.scope):
        if above is step.body:
            return False
        if isinstance(above, ast.If | ast.For | ast.While | ast.IfExp):
            return True
    return False
