"""What decides what is kept. ``# here`` marks the line; without one all is well."""

from __future__ import annotations

import pytest

from marked import answered, marked
from trainwreck.code.rehearsal.questions.watching import chosen_on_training

PROGRAM = """
import copy
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
def data(n): return TensorDataset(torch.randn(n, 8), torch.randint(2, (n,)))
net = nn.Linear(8, 2)
opt = torch.optim.Adam(net.parameters())
fit, held = DataLoader(data(640), 32, shuffle=True), DataLoader(data(320), 64)
def train_epoch():
    net.train()
    total = n = 0
    for x, y in fit:
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad(); loss.backward(); opt.step()
        total += loss.item() * len(y)
        n += len(y)
    return total / n
@torch.no_grad()
def judge(loader):
    net.eval()
    return sum(F.cross_entropy(net(x), y, reduction="sum").item() for x, y in loader) / len(loader.dataset)
best, state, wait = float("inf"), None, 0
for epoch in range(50):
    now = train_epoch()
    JUDGED
    if SCORE < best:  MARK
        best, wait = SCORE, 0
        state = copy.deepcopy(net.state_dict())
    else:
        wait += 1
        if wait > 5:
            break
"""


def program(score: str, judged: str = "score = judge(held)", mark: str = "") -> str:
    return PROGRAM.replace("SCORE", score).replace("JUDGED", judged).replace("MARK", mark)


CASES = [
    program("now", mark="# here"),
    program("(now / 2)", mark="# here"),
    program("now", "print(judge(held))", mark="# here"),
    program("score"),
    program("(score + now)"),
    program("now", "pass"),
    program("now", "print(judge(test_loader := held))")
    .replace("judge(test_loader := held)", "judge(test_set)")
    .replace("def train_epoch", "test_set = held\ndef train_epoch"),
]


@pytest.mark.parametrize("text", CASES)
def test_watched(text: str) -> None:
    assert answered(chosen_on_training, text) == marked(text)
