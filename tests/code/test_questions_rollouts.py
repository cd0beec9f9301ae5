"""Shapes through a rollout: lists that a loop fills, stacked and flattened. ``# here`` marks the line to be told."""

from __future__ import annotations

import pytest

from marked import marked, told

SCRIPT = """
import torch, torch.nn as nn, torch.nn.functional as F
from torch.distributions import Categorical
class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.pi = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
        self.v = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
    def forward(self, s): return Categorical(logits=self.pi(s)), self.v(s)
net = Both()
opt = torch.optim.Adam(net.parameters(), 1e-3)
flat = lambda x: x.reshape(-1, *x.shape[2:])
for it in range(100):
    seen, acts, logs, vals, gains = [], [], [], [], []
    s = torch.randn(16, 4)
    with torch.no_grad():
        for t in range(20):
            d, v = net(s)
            a = d.sample()
            for box, item in zip((seen, acts, logs, vals, gains), (s, a, d.log_prob(a), v, s[:, 0] * a)):
                box.append(item.squeeze(-1) if item is v else item)
            s = s + 0.1 * torch.randn(16, 4)
    S, A, L, V, R = map(torch.stack, (seen, acts, logs, vals, gains))
    ret = R.flip(0).cumsum(0).flip(0)
    adv = ret - V
    S, A, L, ret, adv = (flat(x) for x in (S, A, L, ret, adv))
    for part in torch.randperm(len(S)).split(64):
        d, v = net(S[part])
        ratio = (d.log_prob(A[part]) - L[part]).exp()
        gain = torch.min(ratio * adv[part], ratio.clamp(0.8, 1.2) * adv[part]).mean()
        critic = F.mse_loss(v.squeeze(-1), ret[part])
        loss = 0.5 * critic - gain
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
RIGHT = "critic = F.mse_loss(v.squeeze(-1), ret[part])"
CRITICS = [
    RIGHT,
    "critic = F.mse_loss(v, ret[part].unsqueeze(-1))",
    "critic = ((v[:, 0] - ret[part]) ** 2).mean()",
    "critic = F.mse_loss(v, ret[part])  # here",
    "critic = ((v - ret[part]) ** 2).mean()  # here",
    "critic = (ret[part] - v).pow(2).mean()  # here",
    "critic = F.smooth_l1_loss(v, ret[part])  # here",
]


@pytest.mark.parametrize("critic", CRITICS)
def test_a_column_meets_returns(critic: str) -> None:
    text = SCRIPT.replace(RIGHT, critic)
    assert told("code-broadcast-in-loss", text) == marked(text)


MAJOR = "S, A, L, ret, adv = (flat(x) for x in (S, A, L, ret, adv))"
FLATTENINGS = [
    MAJOR,
    "S, A, L, ret, adv = (flat(x.transpose(0, 1)) for x in (S, A, L, ret, adv))",
    "turn = lambda x: x.transpose(0, 1).reshape(-1, *x.shape[2:])\n"
    "    S, A, L, ret, adv = map(turn, (S, A, L, ret, adv))",
    "S, A, L = (flat(x.transpose(0, 1)) for x in (S, A, L))\n    ret, adv = ret.reshape(-1), adv.reshape(-1)  # here",
    "S, A, L = flat(S), flat(A), L.flatten()\n    ret, adv = ret.t().reshape(-1), adv.t().flatten()  # here",
    "turn = lambda x: x.swapaxes(0, 1).reshape(-1, *x.shape[2:])\n"
    "    S, A, L, ret = map(turn, (S, A, L, ret))\n    adv = adv.flatten()  # here",
    "S, A, L, adv, ret = flat(S), flat(A), flat(L), flat(adv), ret.T.reshape(-1)  # here",
]


@pytest.mark.parametrize("flattening", FLATTENINGS)
def test_rows_of_one_index_belong_together(flattening: str) -> None:
    text = SCRIPT.replace(MAJOR, flattening)
    assert told("code-flatten-order-mismatch", text) == marked(text)
