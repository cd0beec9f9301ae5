"""Means over an evaluation and over accumulated batches. ``# here`` marks the line; without one all is well."""

from __future__ import annotations

import pytest

from marked import answered, marked
from trainwreck.code.rehearsal.questions import Question
from trainwreck.code.rehearsal.questions.quotas import turned_round
from trainwreck.code.rehearsal.questions.scaling import undivided

HEAD = """
import torch, torch.nn as nn, torch.nn.functional as F
net = nn.Linear(8, 2)
opt = torch.optim.Adam(net.parameters())
"""
LOOP = """
for x, y in loader:
    opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step()
@torch.no_grad()
def judge(loader):
    right, total, loss, share = 0, 0, 0.0, 0.0
    for x, y in loader:
        out = net(x)
        right += (out.argmax(1) == y).sum().item()
        share += (out.argmax(1) == y).float().mean().item()
        loss += F.cross_entropy(out, y).item() * len(y)
        total += len(y)
    return RESULT
print(judge(test))
"""
RESULTS = (
    "total / right  # here",
    "right * total  # here",
    "total / loss  # here",
    "loss * total  # here",
    "share / total  # here",
    "share / len(loader)",
    "right / total",
    "loss / total, 100 * right / total",
    "100.0 * right / total",
    "1 - right / total",
)
ACCUMULATED = """
accum = 4
for i, (x, y) in enumerate(loader):
    loss = F.cross_entropy(net(x), y)
    BACKWARD
    if (i + 1) % accum == 0:
        opt.step()
        opt.zero_grad()
"""
IN_BAGS = """
from torch.utils.data import DataLoader, TensorDataset
batches = DataLoader(TensorDataset(torch.randn(640, 8), torch.randint(2, (640,))), 16)
def bags(size):
    bag = []
    for batch in batches:
        bag.append(batch)
        if len(bag) == size:
            yield bag
            bag = []
    if bag:
        yield bag
for bag in bags(4):
    opt.zero_grad()
    for x, y in bag:
        BACKWARD
    opt.step()
"""
COMPREHENDED = """
from torch.utils.data import DataLoader, TensorDataset
source = iter(DataLoader(TensorDataset(torch.randn(640, 8), torch.randint(2, (640,))), 16))
for update in range(10):
    opt.zero_grad()
    for x, y in [next(source) for _ in range(4)]:
        BACKWARD
    opt.step()
"""
VIEWS = """
from torch.utils.data import DataLoader, TensorDataset
for x, z, y in DataLoader(TensorDataset(torch.randn(640, 8), torch.randn(640, 8), torch.randint(2, (640,))), 16):
    opt.zero_grad()
    for view in (x, z):
        F.cross_entropy(net(view), y).backward()
    opt.step()
"""
BACKWARDS = (
    "(loss * accum).backward()  # here",
    "loss.backward()  # here",
    "(loss / accum).backward()",
    "(loss * 0.25).backward()",
)
CASES = [
    *(
        (undivided, text.replace("BACKWARD", "F.cross_entropy(net(x), y).backward()  # here"))
        for text in (IN_BAGS, COMPREHENDED)
    ),
    *(
        (undivided, text.replace("BACKWARD", "(F.cross_entropy(net(x), y) / 4).backward()"))
        for text in (IN_BAGS, COMPREHENDED)
    ),
    (undivided, IN_BAGS.replace("BACKWARD", "(F.cross_entropy(net(x), y) * len(x) / 64).backward()")),
    (undivided, VIEWS),
    *((turned_round, LOOP.replace("RESULT", code)) for code in RESULTS),
    *((undivided, ACCUMULATED.replace("BACKWARD", code)) for code in BACKWARDS),
]


@pytest.mark.parametrize(("question", "code"), CASES)
def test_marked_lines_are_answered_and_no_other(question: Question, code: str) -> None:
    assert answered(question, HEAD + code) == marked(HEAD + code)
