"""Prediction of shape (N, 1) against targets of shape (N,).

What: the last layer gives one column that is never squeezed, and the targets have no such column (or the other
way).
Why it matters: an element-wise loss broadcasts both to (N, N); the model learns the mean of the targets.
When it is fine: where both have the same shape.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.flow import back
from trainwreck.code.project import Project
from trainwreck.code.rule import guess
from trainwreck.code.seek import loss_kind, losses, modules
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

BAD = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    def forward(self, x):
        return self.net(x)  # expect
def train(loader):
    model, criterion = Net(), nn.MSELoss()
    for x, y in loader:
        criterion(model(x), y).backward()
"""
GOOD = """
from torch import nn
def train(model, loader):
    criterion = nn.MSELoss()
    for x, y in loader:
        criterion(model(x).squeeze(-1), y).backward()
"""
ELEMENTWISE = {
    "mse",
    "l1",
    "smoothl1",
    "huber",
    "bcewithlogits",
    "bce",
    "binarycrossentropywithlogits",
    "binarycrossentropy",
}
SHAPING = ("squeeze", "flatten", "view(-1)", "reshape(-1)", "[:, 0]", "[..., 0]", "ravel")


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    for loss in losses(project):
        if not loss_kind(project, loss) & ELEMENTWISE:
            continue
        target = loss.argument("target", 1)
        if target is not None:
            for step in back(project, target, loss.scope):
                scalar = isinstance(step.node, ast.Call) and last_name(step.node.func) in (
                    "tensor",
                    "as_tensor",
                    "float32",
                )
                if step.scope.name == "__getitem__" and scalar:
                    yield guess(__name__, step, "one target of a sample gets its shape here", [loss])
                    return
    for owner in modules(project):
        forward = owner.method("forward")
        for value in forward.returns if forward is not None else ():
            if value is not None and forward is not None and not any(s in written(value) for s in SHAPING):
                yield guess(__name__, (value, forward), "the prediction gets its shape here")
                return
