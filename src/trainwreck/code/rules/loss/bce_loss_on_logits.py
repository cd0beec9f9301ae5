"""Raw logits go into a loss that expects probabilities.

What: the last operation before ``BCELoss`` is a linear or convolutional layer; no sigmoid is on the way.
Why it matters: values outside 0..1 raise on the CPU and trip an assertion on the GPU.
When it is fine: with ``BCEWithLogitsLoss``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.facts import (
    linear,
)
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers, further
from trainwreck.code.rehearsal.questions.losses import bce_on_logits
from trainwreck.code.rehearsal.questions.own_losses import squashed_logits
from trainwreck.code.rehearsal.questions.shared_area import overlap_of_scores
from trainwreck.code.rule import sighting
from trainwreck.code.seek import loss_kind, losses
from trainwreck.code.spine import call_ends, ends
from trainwreck.core.evidence import Evidence

BAD = (
    """
from torch import nn
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
criterion = nn.BCELoss()  # expect
def train(loader):
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
""",
    """
import torch.nn.functional as F
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 1)
    def forward(self, x):
        return self.fc(x).squeeze(-1)
def step(x, y):
    net = Net()
    return F.binary_cross_entropy(net(x), y)  # expect
""",
)
GOOD = """
import torch
from torch import nn
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1), nn.Sigmoid())
plain = nn.Linear(4, 1)
criterion = nn.BCELoss()
def train(loader, other):
    for x, y in loader:
        criterion(model(x), y).backward()
        criterion(torch.sigmoid(plain(x)), y).backward()
        criterion(other(x), y).backward()
        nn.BCEWithLogitsLoss()(plain(x), y).backward()
"""
BCE = {"bce", "binarycrossentropy"}


def find(project: Project) -> Iterator[Evidence]:
    found = list(
        further(__name__, project, answers(__name__, project, bce_on_logits), squashed_logits, overlap_of_scores)
    )
    yield from found
    if not found:
        yield from _written(project)


def _written(project: Project) -> Iterator[Evidence]:
    for loss in losses(project):
        value = loss.argument("input", 0)
        if value is None or not loss_kind(project, loss) <= {
            *BCE,
            loss.name.lower().replace("_", "").removesuffix("loss"),
        }:
            continue
        if not loss_kind(project, loss) & BCE:
            continue
        found = call_ends(project, value, loss.scope)
        if found and len(found) == len(ends(project, value, loss.scope)) and all(linear(project, c) for c in found):
            text = "raw outputs of a linear layer reach a loss that takes probabilities"
            yield sighting(__name__, loss, text, proof=found[:1])
