"""The last incomplete window of accumulation never steps.

What: the optimizer steps only where ``(i + 1) % N == 0`` and gradients are reset at the start of an epoch.
Why it matters: the gradients of the last batches of each epoch are thrown away.
When it is fine: where the number of batches is a multiple of N. A remainder of a few batches is a suggestion, a
quarter of all batches and more a warning.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.order import (
    inside,
    kind_of,
    loops,
    training_steps,
)
from trainwreck.code.project import Project
from trainwreck.code.rehearsal import rehearsals
from trainwreck.code.rehearsal.questions.counts import left_over
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
def train(model, loader, criterion, optimizer, epochs):
    for epoch in range(epochs):
        optimizer.zero_grad()
        for i, (x, y) in enumerate(loader):
            loss = criterion(model(x), y) / 4
            loss.backward()
            if (i + 1) % 4 == 0:
                optimizer.step()  # expect
                optimizer.zero_grad()
""",
    """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), 0.1)
loader = DataLoader(TensorDataset(torch.randn(1264, 4), torch.randn(1264, 1)), 16)
for epoch in range(9):
    opt.zero_grad()
    for i, (x, y) in enumerate(loader):
        (nn.functional.mse_loss(net(x), y) / 40).backward()
        if (i + 1) % 40 == 0:  # expect
            opt.step()
            opt.zero_grad()
""",
)
GOOD = (
    """
def train(model, loader, criterion, optimizer, epochs):
    for epoch in range(epochs):
        optimizer.zero_grad()
        for i, (x, y) in enumerate(loader):
            loss = criterion(model(x), y) / 4
            loss.backward()
            if (i + 1) % 4 == 0 or i + 1 == len(loader):
                optimizer.step()
                optimizer.zero_grad()
""",
    """
def train(model, loader, criterion, optimizer, epochs):
    for epoch in range(epochs):
        for i, (x, y) in enumerate(loader):
            loss = criterion(model(x), y) / 4
            loss.backward()
            if (i + 1) % 4 == 0:
                optimizer.step()
                optimizer.zero_grad()
""",
)


HEAVY = 0.25
"""From this share of the batches on it is no remainder: a good part of the data trains nothing."""


def find(project: Project) -> Iterator[Evidence]:
    for step in training_steps(project):
        around = loops(project, step.body, step.scope) if step.loop is not None else []
        steps = [s for s in step.steps if kind_of(project, s) == "optimizer"]
        if not around or len(steps) != 1:
            continue
        guard = next((a for a in project.ancestors(steps[0].node, step.scope) if isinstance(a, ast.If)), None)
        if guard is None or not inside(project, guard, step.scope, step.body):
            continue
        if not isinstance(guard.test, ast.Compare) or not any(isinstance(n, ast.Mod) for n in ast.walk(guard.test)):
            continue
        outer = [
            c
            for c in project.calls("zero_grad", "step")
            if inside(project, c.node, c.scope, around[0]) and c.scope is step.scope
        ]
        resets = [c for c in outer if c.name == "zero_grad" and not inside(project, c.node, c.scope, step.body)]
        tail = [
            c
            for c in outer
            if c.name == "step"
            and not inside(project, c.node, c.scope, step.body)
            and kind_of(project, c) == "optimizer"
        ]
        if not resets or tail:
            continue
        shares = [k for run in rehearsals(project) if (k := left_over(run, steps[0].node)) is not None]
        if shares and not min(shares):
            continue
        text = "the gradients of the last batches of an epoch are cleared before any step uses them"
        heavy = bool(shares) and min(shares) >= HEAVY
        if heavy:
            text = f"{text}: {min(shares):.0%} of them all"
        place = (guard.test, step.scope) if heavy else steps[0]
        yield sighting(__name__, place, text, proof=resets[:1], severity="warning" if heavy else None)
