"""Whose statistics scale the evaluation. ``# here`` marks the line; without one all is well."""

from __future__ import annotations

import pytest

from marked import answered, marked
from trainwreck.code.rehearsal.questions.refits import own_statistics

REST = """
net = nn.Linear(8, 2)
opt = torch.optim.Adam(net.parameters())
for x, y in DataLoader(train, 32, shuffle=True):
    loss = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad(); loss.backward(); opt.step()
net.eval()
with torch.no_grad():
    for x, y in DataLoader(test, 100):
        print((net(x).argmax(1) == y).float().mean())
"""
CLASS = (
    """
import numpy as np
import torch, torch.nn as nn
from torch.utils.data import DataLoader, Dataset
class Rows(Dataset):
    def __init__(self, n, seed, stats=None):
        rng = np.random.default_rng(seed)
        self.x = (3 + 2 * rng.normal(size=(n, 8))).astype(np.float32)
        self.y = (self.x[:, 0] > 3).astype(np.int64)
        self.mean, self.std = STATS
    def __len__(self):
        return len(self.y)
    def __getitem__(self, i):
        return (self.x[i] - self.mean) / self.std, self.y[i]
train = Rows(1000, 0)
test = Rows(200, 1HANDED)
"""
    + REST
)
GIVEN = "stats or (self.x.mean(0), self.x.std(0))"
CHOSEN = "(self.x.mean(0), self.x.std(0)) if stats is None else stats"
FUNCTIONS = (
    """
import numpy as np
import torch, torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
def rows(n, seed):
    rng = np.random.default_rng(seed)
    x = (3 + 2 * rng.normal(size=(n, 8))).astype(np.float32)
    return x, (x[:, 0] > 3).astype(np.int64)
def fit(x):
    return {"mean": x.mean(0), "std": x.std(0) + 1e-6}
def pack(x, y, tools):
    x = (x - tools["mean"]) / tools["std"]
    return TensorDataset(torch.from_numpy(x), torch.from_numpy(y))
def whole(x, y):
    return TensorDataset(torch.from_numpy((x - x.mean(0)) / x.std(0)), torch.from_numpy(y))
x, y = rows(1000, 0)
xt, yt = rows(200, 1)
train, test = MADE
"""
    + REST
)


def of_class(stats: str, handed: str = ")  # here") -> str:
    return CLASS.replace("STATS", stats).replace("HANDED)", handed)


def functions(made: str) -> str:
    return FUNCTIONS.replace("MADE", made)


CASES = [
    of_class(GIVEN),
    of_class(CHOSEN),
    functions("pack(x, y, fit(x)), pack(xt, yt, fit(xt))  # here"),
    of_class(GIVEN, ", (train.mean, train.std))"),
    of_class(CHOSEN, ", (train.mean, train.std))"),
    of_class("3.0, 2.0", ")"),
    of_class("self.x.mean(1).mean(), self.x.std()", ")"),
    functions("pack(x, y, fit(x)), pack(xt, yt, fit(x))"),
    functions("whole(x, y), whole(xt, yt)"),
]


@pytest.mark.parametrize("text", CASES)
def test_statistics(text: str) -> None:
    assert answered(own_statistics, text) == marked(text)
