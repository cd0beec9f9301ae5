"""A policy is shown observations whose numbers are large.

What: positions, angles or counts of tens to thousands enter the first layer as they are.
Why it matters: hidden units saturate: nearly all states look alike to the network, and little is learned.
When it is fine: with running statistics, a norm as the first layer, or a division by the range.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.scale import large_observations
from trainwreck.code.topics import REWARDS
from trainwreck.core.evidence import Evidence

_SCRIPT = """
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical
class Track:
    def __init__(self, n):
        self.n = n
        self.place = np.full(n, 500.0)
        self.speed = np.zeros(n)
    def look(self):
        seen = np.stack([self.place / 1000, self.speed], 1)
        return torch.from_numpy(seen).float()
    def step(self, a):
        self.speed = np.clip(self.speed + a - 1, -3, 3)
        self.place = np.clip(self.place + 10 * self.speed, 0, 1000)
        return -np.abs(self.place - 800) / 1000
env = Track(32)
pi = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 3))
opt = torch.optim.Adam(pi.parameters(), 1e-3)
for it in range(100):
    logs, gains = [], []
    for t in range(50):
        d = Categorical(logits=pi(env.look()))
        a = d.sample()
        gains.append(torch.from_numpy(env.step(a.numpy())))
        logs.append(d.log_prob(a))
    g = torch.stack(gains).flip(0).cumsum(0).flip(0)
    loss = -(torch.stack(logs) * (g - g.mean()) / (g.std() + 1e-8)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WORDS = REWARDS
BAD = (
    _SCRIPT.replace("np.stack([self.place / 1000, self.speed], 1)", "np.stack([self.place, self.speed], 1)  # expect"),
    _SCRIPT.replace("np.stack([self.place / 1000, self.speed], 1)", "np.array([self.place, self.speed]).T  # expect"),
)
GOOD = (
    _SCRIPT,
    _SCRIPT.replace("self.place / 1000,", "self.place,").replace("nn.Sequential(", "nn.Sequential(nn.BatchNorm1d(2), "),
)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, (), large_observations)
