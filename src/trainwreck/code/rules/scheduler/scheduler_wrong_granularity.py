"""A scheduler counted in epochs is stepped once per batch.

What: ``scheduler.step()`` stands in the loop over batches, while its horizon (``step_size``, ``T_max``, milestones)
is as small as the number of epochs.
Why it matters: the learning rate is gone within the first epoch.
When it is fine: with horizons in steps (``OneCycleLR``, warm-up schedules, ``T_max=epochs * len(loader)``).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.order import constructors, kind_of, loops, training_steps
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.plateaus import plateau_in_batches
from trainwreck.code.rehearsal.questions.schedules import granularity
from trainwreck.code.rule import guess, sighting
from trainwreck.code.surface import Surface
from trainwreck.code.values import number, values
from trainwreck.core.evidence import Evidence

BAD = (
    """
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
""",
    """
import torch
class Trainer:
    def __init__(self, net, loader):
        self.net, self.loader = net, loader
        self.opt = torch.optim.SGD(net.parameters(), lr=0.1)
        self.sched = torch.optim.lr_scheduler.ExponentialLR(self.opt, gamma=0.9)
    def fit(self, epochs, ce):
        for epoch in range(epochs):
            for x, y in self.loader:
                self.opt.zero_grad()
                ce(self.net(x), y).backward()
                self.opt.step()
                self.sched.step()  # expect
""",
    """
import torch
EPOCHS = 12
def train(model, loader, criterion):
    opt = torch.optim.AdamW(model.parameters())
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 1e-2, total_steps=EPOCHS * len(loader))
    for epoch in range(EPOCHS):
        for x, y in loader:
            loss = criterion(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        sched.step()  # expect
""",
)
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
def slow(model, loader, criterion, steps):
    opt = torch.optim.Adam(model.parameters())
    decay = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=0.9999)
    rare = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=0.5)
    for epoch in range(10):
        for i, (x, y) in enumerate(loader):
            criterion(model(x), y).backward()
            opt.step()
            decay.step()
            if i % 1000 == 999:
                rare.step()
"""
HORIZON = {
    "StepLR": ("step_size", 1),
    "CosineAnnealingLR": ("T_max", 1),
    "MultiStepLR": ("milestones", 1),
    "CosineAnnealingWarmRestarts": ("T_0", 1),
    "PolynomialLR": ("total_iters", 1),
    "LinearLR": ("total_iters", 3),
}


SHRINKS = 0.985
"""ExponentialLR multiplies at each call: with this factor 1,000 steps leave 3e-7 of the rate. Schedules per step use
0.999 and more."""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), granularity, plateau_in_batches)


def _seen(project: Project) -> Iterator[Evidence]:
    yield from _steps_per_epoch(project)
    for training in training_steps(project):
        for step in training.schedulers:
            around = loops(project, step.node, step.scope)
            if len(around) < 2 or step.receiver is None or _rare(project, step, around[0]) or _placed(step):
                continue
            epochs = _rounds(project, around[-1], step)
            for made in constructors(project, step.receiver, step.scope):
                if _in_epochs(project, made, epochs):
                    text = f"{made.name} counts in epochs and is stepped in every batch here"
                    yield sighting(__name__, step, text, proof=[made])
                    break


def _steps_per_epoch(project: Project) -> Iterator[Evidence]:
    """A schedule whose length is counted in batches and that is stepped once an epoch, beside the loop over batches."""
    for scope in {t.scope for t in training_steps(project)}:
        for call in project.calls_by_scope.get(scope, ()):
            if call.name != "step" or call.receiver is None or kind_of(project, call) != "scheduler":
                continue
            around = loops(project, call.node, scope)
            if len(around) != 1 or not any(_trains(n) for n in around[0].body if isinstance(n, ast.For)):
                continue
            for made in constructors(project, call.receiver, scope):
                horizon = _in_batches(made)
                if horizon:
                    text = f"{made.name} counts {horizon} batches and is stepped once an epoch"
                    yield sighting(__name__, call, text, proof=[made])
                    break


def _trains(loop: ast.For) -> bool:
    return any(isinstance(n, ast.Call) and last_name(n.func) == "backward" for n in ast.walk(loop))


def _in_batches(made: Call) -> str:
    """The horizon of a schedule as written where it multiplies with the length of a loader, else empty."""
    for name, place in (("total_steps", 2), ("T_max", 1), ("total_iters", 1), ("steps_per_epoch", 4)):
        value = made.argument(name, place if made.name != "LinearLR" else None)
        if value is None:
            continue
        if made.name == "OneCycleLR" and name in ("T_max", "total_iters"):
            continue
        text = written(value)
        if re.search(r"len\(\w*(\.\w+)*(load|dl|batches)", text) and "//" not in text:
            return text
    return ""


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


def _placed(step: Call) -> bool:
    """True for ``step(epoch + i / len(loader))``: a part of an epoch."""
    given = [*step.node.args, *(k.value for k in step.node.keywords)]
    return any(isinstance(n, ast.BinOp) and isinstance(n.op, ast.Div) for a in given for n in ast.walk(a))


def _rounds(project: Project, loop: ast.AST, step: Call) -> list[float]:
    """How many rounds the outer loop makes, where it is a ``range``."""
    over = loop.iter if isinstance(loop, ast.For) else None
    if isinstance(over, ast.Call) and last_name(over.func) in ("range", "trange") and over.args:
        known = values(project, over.args[-1] if len(over.args) < 3 else over.args[1], step.scope)
        return [k.value for k in known if isinstance(k.value, int | float)]
    return []


def _in_epochs(project: Project, made: Call, epochs: list[float]) -> bool:
    if made.name == "ExponentialLR":
        factor = number(project, made.argument("gamma", 1), made.scope)
        return factor is not None and factor <= SHRINKS
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
