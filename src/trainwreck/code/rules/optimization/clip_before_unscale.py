"""Gradients are clipped while they are still multiplied by the loss scale.

What: ``scaler.scale(loss).backward()`` and ``clip_grad_norm_`` before ``scaler.step`` with no ``scaler.unscale_``
between.
Why it matters: the norm is that of gradients times 65536: clipping cuts nearly every update to nothing.
When it is fine: with ``scaler.unscale_(optimizer)`` before.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import last_name
from trainwreck.code.facts import (
    later,
    made_names,
    text_of,
)
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.own_updates import changed_scaled
from trainwreck.code.rehearsal.questions.scaling import clipped_scaled
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
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # expect
        scaler.step(optimizer)
        scaler.update()
""",
    """
from torch.cuda.amp import GradScaler
from torch.nn.utils import clip_grad_value_
class Trainer:
    def __init__(self):
        self.scaler = GradScaler()
    def step(self, loss):
        self.scaler.scale(loss).backward()
        clip_grad_value_(self.model.parameters(), 0.5)  # expect
        self.scaler.step(self.opt)
        self.scaler.update()
""",
)
GOOD = """
import torch
def train(model, loader, optimizer, criterion, amp):
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        loss = criterion(model(x), y)
        if amp:
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), clipped_scaled, changed_scaled)


def _seen(project: Project) -> Iterator[Evidence]:
    for clip in project.calls("clip_grad_norm_", "clip_grad_value_"):
        scope = clip.scope
        calls = project.calls_by_scope.get(scope, [])
        scaled = [
            c
            for c in calls
            if c.name == "backward" and isinstance(c.receiver, ast.Call) and last_name(c.receiver) == "scale"
        ]
        steps = [
            c
            for c in calls
            if c.name == "step" and c.receiver is not None and "GradScaler" in made_names(project, c.receiver, scope)
        ]
        before = [c for c in scaled if later(clip.node, c.node)]
        after = [c for c in steps if later(c.node, clip.node)]
        if not before or not after or "unscale" in text_of(project, scope):
            continue
        yield sighting(
            __name__, clip, "the gradients still carry the loss scale: unscale_ is missing before", proof=before[:1]
        )
