"""Prediction and target of a loss change places.

What: ``F.cross_entropy(labels, logits)``, ``criterion(y, model(x))`` with a binary cross entropy.
Why it matters: the labels are taken for the prediction; where the shapes fit, the network learns something else.
When it is fine: for losses that treat both alike (``mse_loss``, ``l1_loss``).
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.losses import swapped
from trainwreck.core.evidence import Evidence

_LOOP = """
import torch.nn.functional as F
from torch import nn, optim
net = nn.Linear(4, 1)
criterion = nn.BCEWithLogitsLoss()
opt = optim.Adam(net.parameters())
for x, y in loader:
    out = net(x).squeeze(1)
    loss = LOSS
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
BAD = (
    _LOOP.replace("LOSS", "criterion(y.float(), out)  # expect"),
    _LOOP.replace("LOSS", "F.binary_cross_entropy_with_logits(y.float(), out)  # expect"),
    _LOOP.replace("LOSS", "F.cross_entropy(y, net(x))  # expect"),
)
GOOD = (
    _LOOP.replace("LOSS", "criterion(out, y.float())"),
    _LOOP.replace("LOSS", "F.mse_loss(y.float(), out)"),
    _LOOP.replace("LOSS", "F.binary_cross_entropy_with_logits(target=y.float(), input=out)"),
)


def find(project: Project) -> Iterator[Evidence]:
    yield from answers(__name__, project, swapped)
