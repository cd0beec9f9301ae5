"""Sigmoid is applied before a loss that applies it itself.

What: the model ends in sigmoid, and ``BCEWithLogitsLoss`` or ``binary_cross_entropy_with_logits`` follows.
Why it matters: predictions can only reach sigmoid(0) to sigmoid(1), 0.5 to 0.73; the loss stays high.
When it is fine: with ``BCELoss``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.losses import sigmoid_before_bce_with_logits
from trainwreck.code.rule import sighting
from trainwreck.code.seek import loss_kind, losses
from trainwreck.code.spine import ends, made_by
from trainwreck.core.evidence import Evidence

BAD = """
import torch
from torch import nn
class Net(nn.Module):
    def forward(self, x):
        return torch.sigmoid(self.head(x)).squeeze(1)  # expect
def train(loader):
    model, criterion = Net(), nn.BCEWithLogitsLoss()
    for x, y in loader:
        criterion(model(x), y).backward()
"""
GOOD = """
import torch
from torch import nn
class Net(nn.Module):
    def forward(self, x):
        return torch.sigmoid(self.head(x))
def train(loader):
    model, criterion = Net(), nn.BCELoss()
    for x, y in loader:
        criterion(model(x), y).backward()
"""


def find(project: Project) -> Iterator[Evidence]:
    found = list(_written(project))
    yield from found
    if not found:
        yield from answers(__name__, project, sigmoid_before_bce_with_logits)


def _written(project: Project) -> Iterator[Evidence]:
    told: set[int] = set()
    for loss in losses(project):
        if not loss_kind(project, loss) & {"bcewithlogits", "binarycrossentropywithlogits"}:
            continue
        value = loss.argument("input", 0)
        found = ends(project, value, loss.scope) if value is not None else []
        soft = [(n, s) for n, s in found if isinstance(n, ast.Call) and _sigmoid(project, Call(n, s))]
        if soft and len(soft) == len(found):
            for node, scope in soft:
                if id(node) not in told:
                    told.add(id(node))
                    text = "sigmoid is applied here, and the loss applies it again"
                    yield sighting(__name__, (node, scope), text, proof=[loss])


def _sigmoid(project: Project, call: Call) -> bool:
    return bool(made_by(project, call) & {"sigmoid", "Sigmoid", "sigmoid_"})
