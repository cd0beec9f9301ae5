"""A scheduler counted in epochs is stepped once per batch.

What: ``scheduler.step()`` stands in the loop over batches, while its horizon (``step_size``, ``T_max``, milestones)
is as small as the number of epochs.
Why it matters: the learning rate is gone within the first epoch.
When it is fine: with horizons in steps (``OneCycleLR``, warm-up schedules, ``T_max=epochs * len(loader)``).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.order import constructors, loops, training_steps
from trainwreck.code.project import Project
from trainwreck.code.rule import guess, sighting
from trainwreck.code.surface import Surface
from trainwreck.code.values import values
from trainwreck.core.evidence import Evidence

BAD = """
import torch
def train(model, loader, criterion):
    opt = torch.optim.Adam(model.parameters())
    sched = torch.optim.lr_scheduler.StepLR(opt, step_size=3, gamma=0.1)
    for epoch in range(10):
        for x, y in loader:
            loss = criterion(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()  # expect
"""
GOOD = """
import torch
def train(model, loader, criterion):
    opt = torch.optim.Adam(model.parameters())
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=10 * len(loader))
    other = torch.optim.lr_scheduler.StepLR(opt, step_size=3)
    for epoch in range(10):
        for x, y in loader:
            loss = criterion(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
        other.step()
"""
HORIZON = {
    "StepLR": ("step_size", 1),
    "CosineAnnealingLR": ("T_max", 1),
    "MultiStepLR": ("milestones", 1),
    "CosineAnnealingWarmRestarts": ("T_0", 1),
    "PolynomialLR": ("total_iters", 1),
    "LinearLR": ("total_iters", 3),
}


def find(project: Project) -> Iterator[Evidence]:
    for training in training_steps(project):
        for step in training.schedulers:
            around = loops(project, step.node, step.scope)
            if len(around) < 2 or step.receiver is None or _rare(project, step, around[0]):
                continue
            epochs = _rounds(project, around[-1], step)
            for made in constructors(project, step.receiver, step.scope):
                if _in_epochs(project, made, epochs):
                    text = f"{made.name} counts in epochs and is stepped in every batch here"
                    yield sighting(__name__, step, text, proof=[made])
                    break


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    for training in training_steps(project):
        for step in training.schedulers:
            yield guess(__name__, step, "the scheduler is stepped here")
            return


def _rare(project: Project, step: Call, loop: ast.AST) -> bool:
    for above in project.ancestors(step.node, step.scope):
        if above is loop:
            return False
        if isinstance(above, ast.If):
            return True
    return False


def _rounds(project: Project, loop: ast.AST, step: Call) -> list[float]:
    """How many rounds the outer loop makes, where it is a ``range``."""
    over = loop.iter if isinstance(loop, ast.For) else None
    if isinstance(over, ast.Call) and last_name(over.func) in ("range", "trange") and over.args:
        known = values(project, over.args[-1] if len(over.args) < 3 else over.args[1], step.scope)
        return [k.value for k in known if isinstance(k.value, int | float)]
    return []


def _in_epochs(project: Project, made: Call, epochs: list[float]) -> bool:
    name, place = HORIZON.get(made.name, ("", 0))
    horizon = made.argument(name, place) if name else None
    if horizon is None:
        return False
    text = written(horizon)
    if "epoch" in text.lower() and "len(" not in text and "*" not in text and "step" not in text.lower():
        return True
    for known in values(project, horizon, made.scope):
        size = max(known.value) if isinstance(known.value, tuple) and known.value else known.value
        if isinstance(size, int | float) and epochs and size <= max(epochs):
            return True
    return False
