"""Rewards that an environment of the program can never give. ``# here`` marks the line to be told."""

from __future__ import annotations

import pytest

from marked import marked, told

T = """
import torch, torch.nn as nn
from torch.distributions import Categorical
class Grid:
    def __init__(self, n, size=8):
        self.n, self.size = n, size
        self.x = torch.zeros(n, dtype=torch.long)
        self.age = torch.zeros(n, dtype=torch.long)
    def look(self):
        return nn.functional.one_hot(self.x, self.size + 1).float()
    def step(self, a):
        self.x = (self.x + 2 * a - 1).clamp(0, self.size)
        self.age += 1
        REWARD
        over = (self.x == self.size) | (self.age > 50)
        RESET
        AFTER
        return reward, over.float()
env = Grid(32)
pi = nn.Sequential(nn.Linear(9, 32), nn.Tanh(), nn.Linear(32, 2))
opt = torch.optim.Adam(pi.parameters(), 1e-3)
for it in range(200):
    lps, rs, ds = [], [], []
    for t in range(32):
        d = Categorical(logits=pi(env.look()))
        a = d.sample()
        r, over = env.step(a)
        lps.append(d.log_prob(a))
        rs.append(r)
        ds.append(over)
    ret, acc = [], torch.zeros(32)
    for r, d in zip(rs[::-1], ds[::-1]):
        acc = RETURN
        ret.insert(0, acc)
    ret = torch.stack(ret)
    loss = -(torch.stack(lps) * (ret - ret.mean())).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
S = """
import random, torch, torch.nn as nn
from torch.distributions import Categorical
class Walk:
    def __init__(self):
        self.reset()
    def reset(self):
        self.pos, self.t = 0, 0
        return torch.tensor([0.0])
    def step(self, a):
        self.pos += 1 if a else -1
        self.t += 1
        BODY
        return torch.tensor([self.pos / 5]), reward, done
env = Walk()
pi = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 2))
opt = torch.optim.Adam(pi.parameters(), 1e-3)
for ep in range(200):
    s, done, lps, rs = env.reset(), False, [], []
    while not done:
        d = Categorical(logits=pi(s))
        a = d.sample()
        s, r, done = env.step(a.item())
        lps.append(d.log_prob(a))
        rs.append(r)
    g, gs = 0.0, []
    for r in reversed(rs):
        g = r + 0.99 * g
        gs.insert(0, g)
    gs = torch.tensor(gs)
    loss = -(torch.stack(lps) * (gs - gs.mean())).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
R = "reward = (self.x == self.size).float()"
BACK = "self.x[over] = 0\n        self.age[over] = 0"
LATE = R + "  # here"
GOING = "r + 0.99 * acc * (1 - d)"


def mk(reward: str, reset: str, after: str = "pass", ret: str = GOING) -> str:
    made = T.replace("REWARD", reward).replace("RESET", reset)
    return made.replace("AFTER", after).replace("RETURN", ret)


BAD = {
    "setitem": mk("pass", BACK, LATE),
    "where": mk("pass", "self.x = torch.where(over, torch.zeros_like(self.x), self.x)", LATE),
    "masked": mk(
        "pass", "self.x = self.x.masked_fill(over, 0)", "reward = torch.where(self.x == self.size, 1.0, -0.01)  # here"
    ),
    "masked_": mk("pass", "self.x.masked_fill_(over, 0)", LATE),
    "nonzero": mk("pass", "idx = over.nonzero().squeeze(-1)\n        self.x[idx] = 0", LATE),
    "scalar": S.replace(
        "BODY",
        "done = self.pos == 5 or self.t >= 40\n        if done:\n"
        "            self.pos = 0\n        reward = 1.0 if self.pos == 5 else 0.0  # here",
    ),
    "scalar reset": S.replace(
        "BODY",
        "done = self.pos >= 5 or self.t >= 40\n        if done:\n"
        "            self.reset()\n        reward = float(self.pos >= 5)  # here",
    ),
    "scalar3": S.replace(
        "BODY",
        "reward = 0.0\n        done = abs(self.pos) == 5\n        if done:\n"
        "            self.pos = 0\n        if abs(self.pos) == 5:  # here\n            reward = 1.0",
    ),
    "1-done": mk(R, BACK, ret="(r + 0.99 * acc) * (1 - d)  # here"),
    "1-done2": mk(R, BACK, ret="r * (1 - d) + 0.99 * acc * (1 - d)  # here"),
}
GOOD = {
    "ok": mk(R, BACK),
    "ok2": mk("reward = torch.where(self.x == self.size, 1.0, -0.01)", BACK),
    "step cost": mk("reward = (self.x == self.size).float() - 0.01", BACK, ret="(r + 0.99 * acc * (1 - d))"),
    "ok3": S.replace(
        "BODY",
        "done = self.pos == 5 or self.t >= 40\n        reward = 1.0 if self.pos == 5 else 0.0\n"
        "        if done:\n            self.pos = 0",
    ),
    "ok4": mk(R, "self.x = torch.where(over, torch.zeros_like(self.x), self.x)"),
}


@pytest.mark.parametrize("text", [*BAD.values(), *GOOD.values()], ids=[*BAD, *(f"good {n}" for n in GOOD)])
def test_rewards_that_cannot_be_earned(text: str) -> None:
    assert told("code-reward-function-broken", text) == marked(text)
