"""Smoothed series in the windows of a forecast. ``# here`` marks the line; without one all is well."""

from __future__ import annotations

import pytest

from marked import answered, marked
from trainwreck.code.rehearsal.questions.smoothing import looking_ahead

PROGRAM = """
import numpy as np
import torch, torch.nn as nn
from scipy.ndimage import gaussian_filter1d
from torch.utils.data import DataLoader, Dataset
def series(n):
    return np.cumsum(np.random.default_rng(0).normal(size=n)).astype(np.float32)
def smooth(x, k=3):
    BODY
class Windows(Dataset):
    def __init__(self, x, soft, size=16):
        self.x, self.soft, self.size = x, soft, size
    def __len__(self):
        return len(self.x) - self.size - 5
    def __getitem__(self, i):
        past = np.stack([self.x[i : i + self.size], self.soft[i : i + self.size]], 1)
        return torch.from_numpy(past), torch.tensor(TARGET)
values = series(1000)
values = (values - values[:800].mean()) / values[:800].std()
soft = smooth(values)
loader = DataLoader(Windows(values[:800], soft[:800]), 32, shuffle=True)
net = nn.Sequential(nn.Flatten(), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters())
for x, y in loader:
    loss = (net(x).squeeze(1) - y).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
"""
LOOP = """out = np.zeros_like(x)
    for t in range(len(x)):
        out[t] = RIGHT
    return out"""
LISTED = "return np.array([RIGHT for t in range(len(x))])"
NEXT = "self.x[i + self.size]"


# fmt: off
TABLE = PROGRAM.replace("BODY", "return SMOOTH").replace("TARGET", NEXT).replace(
    "np.stack([self.x[i : i + self.size], self.soft[i : i + self.size]], 1)", "self.both[i : i + self.size]"
).replace("self.size = x, soft, size", "self.size = x, soft, size; self.both = np.stack([x, smooth(x)], 1)")
# fmt: on


def program(body: str, target: str = NEXT) -> str:
    return PROGRAM.replace("BODY", body).replace("TARGET", target)


def loop(right: str) -> str:
    return program(LOOP.replace("RIGHT", right))


CASES = [
    loop("x[max(0, t - k):t + k + 1].mean()").replace("+ 1].mean()", "+ 1].mean()  # here"),
    loop("np.median(x[max(t - k, 0):min(len(x), t + 2)])  # here"),
    loop("x[t:t + k].sum() / k").replace("/ k", "/ k  # here").replace("sum() / k", "mean()"),
    program(LISTED.replace("RIGHT", "x[max(0, t - k):t + k + 1].mean()") + "  # here"),
    program("return np.convolve(x, np.ones(5) / 5, mode='same')  # here"),
    program("return gaussian_filter1d(x, 2.0)  # here"),
    program("return np.convolve(np.pad(x, 5 // 2, mode='edge'), np.ones(5) / 5, mode='valid')  # here"),
    program("return np.convolve(np.pad(x, (2, 2)), np.full(5, 1 / 5), mode='valid').astype('float32')  # here"),
    program("return np.convolve(np.concatenate([np.zeros(1), x, np.zeros(1)]), np.ones(3) / 3, mode='valid')  # here"),
    program("return np.convolve(np.pad(x, (4, 0), mode='edge'), np.ones(5) / 5, mode='valid')"),
    program("return np.convolve(np.concatenate([np.full(4, x[0]), x]), np.ones(5) / 5, mode='valid')"),
    program("return np.convolve(np.concatenate([x[:1].repeat(k), x]), np.ones(k + 1) / (k + 1), mode='valid')"),
    program("return np.convolve(np.pad(x, (2, 2)), np.ones(5) / 5, mode='valid')", "self.x[i + self.size + 2]"),
    TABLE.replace("SMOOTH", "np.convolve(np.pad(x, 2), np.ones(5) / 5, mode='valid')  # here"),
    TABLE.replace("SMOOTH", "np.convolve(np.pad(x, (4, 0)), np.ones(5) / 5, mode='valid')"),
    loop("x[max(0, t - k):t + 1].mean()"),
    loop("x[max(0, t - k):t].mean() if t else 0.0"),
    program(LISTED.replace("RIGHT", "x[max(0, t - k):t + 1].mean()")),
    program("return np.convolve(x, np.ones(5) / 5, mode='full')[:len(x)]"),
    program("return np.convolve(x, np.ones(5) / 5, mode='same')", "self.x[i + self.size + 5]"),
    program("return np.convolve(x, np.ones(5) / 5, mode='same')", "self.soft[i + self.size]"),
]


@pytest.mark.parametrize("text", CASES)
def test_smoothed(text: str) -> None:
    assert answered(looking_ahead, text) == marked(text)
