"""The scheduler steps before the optimizer.

What: ``scheduler.step()`` comes before ``optimizer.step()`` in the same pass of the loop, or opens the epoch.
Why it matters: the first learning rate is skipped and the whole schedule is one step early; torch warns once.
When it is fine: with schedulers that take the epoch as an argument.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.facts import (
    later,
    made,
)
from trainwreck.code.order import (
    kind_of,
    loops,
    repeated,
    training_steps,
)
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.schedules import before_optimizer
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def train(model, loader, criterion):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        scheduler.step()  # expect
        optimizer.step()
""",
    """
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR
def train(model, loader, criterion, epochs):
    opt = torch.optim.Adam(model.parameters())
    sched = CosineAnnealingLR(opt, epochs)
    for epoch in range(epochs):
        sched.step()  # expect
        for x, y in loader:
            opt.zero_grad()
            criterion(model(x), y).backward()
            opt.step()
""",
    """
import torch
def train(net, batches, updates, accum):
    optim = torch.optim.AdamW(net.parameters())
    ramp = torch.optim.lr_scheduler.LambdaLR(optim, lambda s: min(1.0, (s + 1) / 50))
    for it in range(updates):
        optim.zero_grad()
        for _ in range(accum):
            (net(next(batches)).mean() / accum).backward()
        ramp.step()  # expect
        optim.step()
""",
    """
import torch
class Learner:
    def __init__(self, net):
        self.net = net
        self.optim = torch.optim.Adam(net.parameters())
        self.anneal = torch.optim.lr_scheduler.ExponentialLR(self.optim, 0.99)
    def update(self, x):
        self.optim.zero_grad()
        self.net(x).mean().backward()
        self.anneal.step()  # expect
        self.optim.step()
    def fit(self, loader):
        for x in loader:
            self.update(x)
""",
)
GOOD = """
import torch
def train(model, loader, criterion, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
        scheduler.step()
    for epoch in range(epochs):
        if epoch > 0:
            scheduler.step()
        for x, y in loader:
            criterion(model(x), y).backward()
            optimizer.step()
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), before_optimizer)


def _seen(project: Project) -> Iterator[Evidence]:
    for step in training_steps(project):
        if step.loop is None and not repeated(project, step.scope, step.backward[0].node):
            continue
        steps = [s for s in step.steps if kind_of(project, s) in ("optimizer", "scaler")]
        outer = loops(project, step.body, step.scope) if step.loop is not None else []
        if len(steps) != 1:
            continue
        for call in project.calls("step"):
            if call.scope is not step.scope or call.node.args or kind_of(project, call) != "scheduler":
                continue
            parent = project.parent(project.statement(call.node, call.scope), call.scope)
            beside = project.parent(project.statement(steps[0].node, step.scope), step.scope)
            same = parent in (step.body, beside) and later(steps[0].node, call.node)
            opens = bool(outer) and parent is outer[0] and later(step.body, call.node)
            if not (same or opens):
                continue
            if all(c.receiver is not None and _is_torch_scheduler(project, c) for c in [call]):
                yield sighting(__name__, call, "the scheduler steps before the optimizer has", proof=steps)


def _is_torch_scheduler(project: Project, call: Call) -> bool:
    assert call.receiver is not None
    return any("lr_scheduler" in project.called(c) for c in made(project, call.receiver, call.scope))
