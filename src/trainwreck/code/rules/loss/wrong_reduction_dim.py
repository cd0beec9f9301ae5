"""The softmax runs over the batch.

What: the log-probabilities of a classifier are made by a softmax over axis 0.
Why it matters: probabilities sum to one over the samples, not over the classes: the model learns to compare
samples.
When it is fine: for a contrastive loss over the batch.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.facts import (
    made,
    only,
    option,
)
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.seek import loss_kind, losses
from trainwreck.code.spine import call_ends
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch.nn.functional as F
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)
    def forward(self, x):
        return F.log_softmax(self.fc(x), dim=0)  # expect
def train(loader):
    model = Net()
    for x, y in loader:
        F.nll_loss(model(x), y).backward()
""",
    """
from torch import nn
model = nn.Sequential(nn.Linear(4, 3), nn.LogSoftmax(dim=0))  # expect
criterion = nn.NLLLoss()
def train(loader):
    for x, y in loader:
        criterion(model(x), y).backward()
""",
)
GOOD = """
import torch
import torch.nn.functional as F
def clip_loss(a, b, model, x, y):
    logits = a @ b.T
    over = F.log_softmax(logits, dim=0)
    return -over.diagonal().mean() + F.nll_loss(F.log_softmax(model(x), dim=1), y)
"""


def find(project: Project) -> Iterator[Evidence]:
    for loss in losses(project):
        value = loss.argument("input", 0)
        if value is None or not loss_kind(project, loss) & {"nll"}:
            continue
        for call in call_ends(project, value, loss.scope):
            layer = call.name in ("LogSoftmax", "Softmax")
            makers = [call] if call.name == "log_softmax" or layer else made(project, call.node.func, call.scope)
            for maker in makers:
                if maker.name not in ("log_softmax", "LogSoftmax"):
                    continue
                place = (
                    0
                    if maker.name == "LogSoftmax" or project.dotted(maker.node.func, maker.scope).count(".") == 1
                    else 1
                )
                if only(project, option(project, maker, "dim", place)) == 0 and project.called(maker).startswith(
                    "torch"
                ):
                    yield sighting(__name__, maker, "the softmax runs over axis 0, the batch", proof=[loss])
