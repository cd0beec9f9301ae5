"""Probabilities go into a loss that takes logits.

What: the model ends in softmax, or softmax is applied before ``cross_entropy``, which applies log-softmax itself.
Why it matters: the gradient is flattened twice; the loss can't fall below ln(1 + (C - 1)/e) and accuracy stays low.
When it is fine: with ``nll_loss`` of a logarithm, or softmax only for what is shown.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.losses import softmax_before_cross_entropy
from trainwreck.code.rule import sighting
from trainwreck.code.seek import loss_kind, losses
from trainwreck.code.spine import ends, made_by
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch.nn.functional as F
from torch import nn
class Net(nn.Module):
    def forward(self, x):
        return self.head(x).softmax(dim=-1)  # expect
def train(loader):
    model, criterion = Net(), nn.CrossEntropyLoss()
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
""",
    """
import torch
import torch.nn.functional as F
def train(model, loader):
    for x, y in loader:
        p = torch.softmax(model(x), 1)  # expect
        F.cross_entropy(p, y).backward()
""",
    """
from torch import nn
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3), nn.Softmax(dim=1))  # expect
loss_fn = nn.CrossEntropyLoss()
def train(loader):
    for x, y in loader:
        loss_fn(model(x), y).backward()
""",
)
GOOD = """
import torch.nn.functional as F
from torch import nn
class Net(nn.Module):
    def forward(self, x):
        if self.training:
            return self.head(x)
        return self.head(x).softmax(-1)
def train(loader):
    model, criterion = Net(), nn.CrossEntropyLoss()
    for x, y in loader:
        out = model(x)
        loss = criterion(out, y) + F.nll_loss(out.log_softmax(-1), y)
        shown = out.softmax(-1)
        loss.backward()
"""


def find(project: Project) -> Iterator[Evidence]:
    found = list(_written(project))
    yield from found
    if not found:
        yield from answers(__name__, project, softmax_before_cross_entropy)


def _written(project: Project) -> Iterator[Evidence]:
    told: set[int] = set()
    for loss in losses(project):
        if "crossentropy" not in loss_kind(project, loss):
            continue
        value = loss.argument("input", 0)
        if value is None:
            continue
        found = ends(project, value, loss.scope)
        soft = [(n, s) for n, s in found if isinstance(n, ast.Call) and _softmax(project, Call(n, s))]
        if soft and len(soft) == len(found):
            for node, scope in soft:
                if id(node) not in told:
                    told.add(id(node))
                    text = "softmax is applied here, and the cross entropy applies it again"
                    yield sighting(__name__, (node, scope), text, proof=[loss])


def _softmax(project: Project, call: Call) -> bool:
    return bool(made_by(project, call) & {"softmax", "Softmax", "Softmax2d"})
