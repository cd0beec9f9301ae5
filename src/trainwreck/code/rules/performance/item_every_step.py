"""The GPU is waited for in every step.

What: the innermost training loop calls ``.item()`` or prints tensors several times in each pass, unguarded.
Why it matters: each call waits until the GPU is done: it stands idle while Python prepares the next step.
When it is fine: on the CPU, in small loops, once every N steps.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.facts import (
    source,
)
from trainwreck.code.order import (
    inside,
    position,
    training_steps,
)
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
device = torch.device("cuda")
def train(model, loader, optimizer, criterion):
    model.to(device)
    total, hits = 0.0, 0
    for x, y in loader:
        optimizer.zero_grad()
        out = model(x.to(device))
        loss = criterion(out, y.to(device))
        loss.backward()
        optimizer.step()
        total += loss.item()  # expect
        hits += (out.argmax(1) == y).sum().item()
""",
    """
def train(model, loader, optimizer):
    model = model.cuda()
    for x in loader:
        optimizer.zero_grad()
        a, b = model(x.cuda())
        (a + b).backward()
        optimizer.step()
        print(a.item(), b.item())  # expect
""",
)
GOOD = (
    """
def train(model, loader, optimizer):
    model = model.cuda()
    for i, x in enumerate(loader):
        optimizer.zero_grad()
        a, b = model(x.cuda())
        (a + b).backward()
        optimizer.step()
        if i % 100 == 0:
            print(a.item(), b.item())
""",
    """
def small(model, loader, optimizer):
    for x in loader:
        loss = model(x)
        loss.backward()
        optimizer.step()
        print(loss.item(), loss.item())
""",
)


def find(project: Project) -> Iterator[Evidence]:
    if "cuda" not in source(project):
        return
    for step in training_steps(project):
        if step.loop is None or not step.steps:
            continue
        calls = [
            c
            for c in project.calls("item")
            if c.scope is step.scope and not c.node.args and inside(project, c.node, c.scope, step.loop)
        ]
        bare = [
            c
            for c in calls
            if not any(
                isinstance(a, ast.If | ast.While) and inside(project, a, c.scope, step.loop)
                for a in project.ancestors(c.node, c.scope)
            )
        ]
        if len(bare) > 1:
            first = min(bare, key=lambda c: position(c.node))
            yield sighting(__name__, first, f"{len(bare)} calls of item() in every step each wait for the GPU")
