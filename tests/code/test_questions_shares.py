"""Figures put together from batches. ``# here`` marks the line; without one all is well."""

from __future__ import annotations

import pytest

from marked import answered, marked
from trainwreck.code.rehearsal.questions import Question
from trainwreck.code.rehearsal.questions.shares import curved, misdivided

HEAD = """
import math
import numpy as np
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
net = nn.Linear(8, 2)
opt = torch.optim.Adam(net.parameters())
data = TensorDataset(torch.randn(500, 8), torch.randint(2, (500,)))
loader = DataLoader(data, 64, shuffle=True)
test = DataLoader(data, SIZE)
for x, y in loader:
    opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step()
"""
LOOP = """
@torch.no_grad()
def judge(loader):
    total, seen, batches, kept = 0.0, 0, 0, []
    for x, y in loader:
        out = net(x)
        said, true = out.argmax(1) == 1, y == 1
        both, either = (said & true).sum().item(), (said | true).sum().item()
        STEP
        seen += len(y)
        batches += 1
    return RESULT
print(judge(test))
"""


def loop(step: str, result: str, size: int = 96) -> str:
    return HEAD.replace("SIZE", str(size)) + LOOP.replace("STEP", step).replace("RESULT", result)


COMPREHENSION = """
def rmse(x, y):
    return F.mse_loss(net(x)[:, 0], y.float()).sqrt().item()
with torch.no_grad():
    print(np.mean([rmse(x, y) for x, y in test]))  # here
    print(math.sqrt(np.mean([F.mse_loss(net(x)[:, 0], y.float()).item() for x, y in test])))
"""
DICE = """
with torch.no_grad():
    scores = []
    for x, y in test:
        said = (net(x) > 0).float()
        each = 2 * (said * x[:, :2]).sum(1) / (said.sum(1) + x[:, :2].sum(1) + 1e-6)
        scores.append(each.mean().item())
    print(sum(scores) / len(scores))
"""
CASES: list[tuple[Question, str]] = [
    (curved, loop("total += both / max(either, 1)  # here", "total / batches")),
    (curved, loop("kept.append(both / (either + 1e-9))  # here", "np.mean(kept)")),
    (curved, loop("kept.append(2 * both / (both + either))  # here", "sum(kept) / len(kept)")),
    (curved, loop("total += F.cross_entropy(out, y).exp().item()  # here", "total / len(loader)")),
    (curved, loop("total += math.sqrt(((out[:, 0] - y) ** 2).mean().item()) * len(y)  # here", "total / seen")),
    (curved, loop("kept.append(torch.sqrt(F.mse_loss(out[:, 0], y.float())))  # here", "torch.stack(kept).mean()")),
    (curved, HEAD.replace("SIZE", "96") + COMPREHENSION),
    (curved, loop("total += both / max(either, 1)", "total / batches", 1)),
    (curved, loop("total += F.cross_entropy(out, y).item()", "math.exp(total / len(loader))")),
    (curved, loop("total += (out[:, 0] - y).pow(2).sum().item()", "math.sqrt(total / seen)")),
    (curved, loop("total += (out - x[:, :2]).pow(2).sum(1).sqrt().mean().item()", "total / len(loader)")),
    (curved, loop("total += (said == true).sum().item() / len(y)", "total / len(loader)")),
    (curved, HEAD.replace("SIZE", "96") + DICE),
    (misdivided, loop("total += F.cross_entropy(out, y).item()  # here", "total / seen")),
    (misdivided, loop("total += F.cross_entropy(out, y).item() / len(y)  # here", "total / len(loader)")),
    (misdivided, loop("total += ((out[:, 0] - y) ** 2).mean().item()", "total / len(loader.dataset)  # here")),
    (misdivided, loop("total += (said == true).sum().item()", "total / len(loader)  # here")),
    (misdivided, loop("total += (said == true).sum().item()", "100.0 * total / batches  # here")),
    (misdivided, loop("total += F.cross_entropy(out, y).item() * len(y)", "total / seen")),
    (misdivided, loop("total += F.cross_entropy(out, y, reduction='sum').item()", "total / len(loader.dataset)")),
    (misdivided, loop("total += F.cross_entropy(out, y).item()", "total / len(loader)")),
    (misdivided, loop("total += (said == true).sum().item()", "total / seen")),
    (misdivided, loop("total += (said == true).float().mean().item()", "total / batches")),
    (misdivided, loop("total += F.cross_entropy(out, y).item()", "total / seen", 1)),
]


@pytest.mark.parametrize(("question", "text"), CASES)
def test_share(question: Question, text: str) -> None:
    assert answered(question, text) == marked(text)
