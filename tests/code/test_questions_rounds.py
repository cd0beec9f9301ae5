"""Schedules that are made anew in each fold, callbacks, loaders over the wrong data, scores under their names.

``# here`` marks the line; without one all is well."""

from __future__ import annotations

import pytest

from marked import answered, marked
from trainwreck.code.rehearsal.questions import Question
from trainwreck.code.rehearsal.questions.retained import retained
from trainwreck.code.rehearsal.questions.schedules import granularity
from trainwreck.code.rehearsal.questions.shares import misdivided
from trainwreck.code.rehearsal.questions.spans import misfit
from trainwreck.code.rehearsal.questions.splits import same_data

FOLDS = """
import torch, torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
x, y = torch.randn(640, 4), torch.randn(640, 1)
for fold in range(5):
    loader = DataLoader(TensorDataset(x, y), 32, shuffle=True)
    net = nn.Linear(4, 1)
    opt = torch.optim.SGD(net.parameters(), 0.1)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=LENGTH)MADE
    for epoch in range(6):
        for a, b in loader:
            loss = (net(a) - b).pow(2).mean()
            opt.zero_grad(); loss.backward(); opt.step()
            BATCH
        EPOCH
"""
CALLBACKS = """
import torch, torch.nn as nn
class Keep:
    def __init__(self):
        self.losses = []
    def step(self, loss):
        self.losses.append(KEPT)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), 0.1)
callbacks = [Keep()]
for i in range(100):
    loss = net(torch.randn(8, 4)).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    for callback in callbacks:
        callback.step(loss)
"""
LOADERS = """
import torch, torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
def data(n): return TensorDataset(torch.randn(n, 4), torch.randint(2, (n,)))
fit, other = data(640), data(320)
loader = DataLoader(fit, 32, shuffle=True)
NAME = DataLoader(GIVEN, 100)
net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), 0.1)
for a, b in loader:
    loss = nn.functional.cross_entropy(net(a), b)
    opt.zero_grad(); loss.backward(); opt.step()
with torch.no_grad():
    wrong = sum((net(a).argmax(1) != b).sum().item() for a, b in NAME)
    print(wrong / SIZE)
"""


def folds(length: str, made: str = "", batch: str = "pass", epoch: str = "pass") -> str:
    text = FOLDS.replace("LENGTH", length).replace("MADE", made)
    return text.replace("BATCH", batch).replace("EPOCH", epoch)


def loaders(name: str, given: str, size: str = "len(other)") -> str:
    return LOADERS.replace("NAME", name).replace("GIVEN", given).replace("SIZE", size)


CASES: list[tuple[Question, str]] = [
    (granularity, folds("6", batch="sched.step()  # here")),
    (granularity, folds("6", epoch="sched.step()")),
    (granularity, folds("6 * len(loader)", batch="sched.step()")),
    (misfit, folds("6 * len(loader)", batch="sched.step()")),
    (misfit, folds("6", epoch="sched.step()")),
    (misfit, folds("60", "  # here", epoch="sched.step()")),
    (retained, CALLBACKS.replace("KEPT", "loss").replace("loss)\nnet", "loss)  # here\nnet")),
    (retained, CALLBACKS.replace("KEPT", "loss.item()")),
    (same_data, loaders("val", "fit").replace("100)", "100)  # here")),
    (same_data, loaders("val", "other")),
    (same_data, loaders("train_eval", "fit")),
    (misdivided, loaders("val", "other", "len(val)").replace("len(val))", "len(val))  # here")),
    (misdivided, loaders("val", "other")),
]


@pytest.mark.parametrize(("question", "text"), CASES)
def test_round(question: Question, text: str) -> None:
    assert answered(question, text) == marked(text)
