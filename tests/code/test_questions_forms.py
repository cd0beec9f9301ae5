"""Formulas that everybody writes, with one operation changed. ``# here`` marks the line; without one all is well."""

from __future__ import annotations

import pytest

from marked import answered, marked
from trainwreck.code.rehearsal.questions import Question
from trainwreck.code.rehearsal.questions.forms import (
    attention_scaled_up,
    clip_turned,
    distance_wrong,
    ratio_misbuilt,
    scaled_back_wrongly,
    standardised_wrongly,
    straight_through_wrong,
)

HEAD = """
import math
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F
from torch.distributions import Categorical
"""
REGRESSION = """
x, y = np.random.rand(500, 8), np.random.rand(500, 1)
SCALE
net = nn.Linear(8, 1)
opt = torch.optim.Adam(net.parameters())
for i in range(0, 500, 50):
    loss = F.mse_loss(net(torch.tensor(x[i:i + 50])), torch.tensor(y[i:i + 50]))
    opt.zero_grad(); loss.backward(); opt.step()
    BACK
"""
SCALES = (
    "x = (x - x.mean(0)) * x.std(0)  # here",
    "x = (x + x.mean(0)) / x.std(0)  # here",
    "mu, sd = x.mean(axis=0), x.std(axis=0) + 1e-8\nx = sd / (x - mu)  # here",
    "mu, sd = np.mean(x, 0), np.std(x, 0)\nx = np.multiply(x - mu, sd) if False else (x - mu) * sd  # here",
    "x = (x - x.mean(0)) / x.std(0)",
    "spread = (x - x.mean(0)) * x.std(0)\nprint(spread)",
    "x = (x - x.mean(0)) / x.std(0) * (x.mean(0) / x.std(0))",
    "mu, sd = x.mean(0), x.std(0).clip(1e-6)\nx = (x - mu) / sd",
    "x = (x - x.mean(0)) / (x.max(0) - x.min(0))",
    "other = np.random.rand(500, 8)\nx = (x - x.mean(0)) / x.std(0) * other.std(0) + other.mean(0)",
)
BACKS = (
    "guess = net(torch.tensor(x)) * float(y.std()) - float(y.mean())  # here",
    "guess = net(torch.tensor(x)) / y.std() + y.mean()  # here",
    "guess = net(torch.tensor(x)) * y.std() + y.mean()",
    "guess = net(torch.tensor(x)) - y.mean()",
)
PPO = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.pi, self.v = nn.Linear(8, 3), nn.Linear(8, 1)
    def forward(self, s):
        return Categorical(logits=self.pi(s)), self.v(s).squeeze(-1)
net = Net()
opt = torch.optim.Adam(net.parameters())
for obs, act, old, adv, ret in loader:
    dist, v = net(obs)
    new = dist.log_prob(act)
    BODY
    loss = policy + 0.5 * (v - ret).pow(2).mean() - 0.01 * dist.entropy().mean()
    opt.zero_grad(); loss.backward(); opt.step()
"""
TURNED = (
    "r = (new - old).exp()\n    policy = -torch.max(r * adv, r.clamp(0.8, 1.2) * adv).mean()  # here",
    "r = torch.exp(new - old)\n    policy = torch.minimum(r * adv, r.clamp(0.8, 1.2) * adv).neg().mean()",
    "r = torch.exp(old - new)  # here\n    policy = -torch.min(r * adv, r.clamp(0.8, 1.2) * adv).mean()",
    "r = (new - old).exp()\n    policy = torch.max(-adv * r, -adv * torch.clamp(r, 0.8, 1.2)).mean()",
    "r = (new - old).exp()\n    policy = -torch.min(adv * r, adv * torch.clamp(r, 0.8, 1.2)).mean()",
)
RATIOS = (
    "r = new - old  # here\n    policy = -torch.min(r * adv, r.clamp(0.8, 1.2) * adv).mean()",
    "r = (new - old).exp()\n    policy = -torch.min(r * adv, r.clamp(1.2, 0.8) * adv).mean()  # here",
    "r = (new - old).exp()\n    policy = -torch.min(r * adv, torch.clamp(r, max=0.2, min=-0.2) * adv).mean()  # here",
    "r = (new - old).exp()\n    policy = -torch.min(r * adv, torch.clamp(r, 0.8, 1.28) * adv).mean()",
    "r = new - old\n    policy = -torch.min(r * adv, r.clamp(-0.2, 0.2) * adv).mean()",
)
CODES = """
enc, dec, book = nn.Linear(16, 4), nn.Linear(4, 16), nn.Embedding(32, 4)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters(), *book.parameters()])
for x in loader:
    z = enc(x)
    d = DIST
    q = book(d.argmin(1))
    loss = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
    q = PASS
    loss = loss + F.mse_loss(dec(q), x)
    opt.zero_grad(); loss.backward(); opt.step()
"""
DISTANCES = (
    "z.pow(2).sum(1, keepdim=True) + 2 * z @ book.weight.t() + book.weight.pow(2).sum(1)  # here",
    "(z ** 2).sum(1)[:, None] + (book.weight ** 2).sum(1) + 2 * torch.einsum('bd,kd->bk', z, book.weight)  # here",
    "z.pow(2).sum(1, keepdim=True) - 2 * z @ book.weight.t() + book.weight.pow(2).sum(1)",
    "book.weight.pow(2).sum(1) - 2 * z @ book.weight.t()",
    "-(z @ book.weight.t())",
)
PASSES = (
    "z + (z - q).detach()  # here",
    "z + (q + z).detach()  # here",
    "(z - q).detach() + z  # here",
    "z + (q - z).detach()",
    "(q - z).detach() + z",
    "q + (z - z.detach())",
)
ATTENTION = """
class Attention(nn.Module):
    def __init__(self, d=64, heads=4):
        super().__init__()
        self.h, self.qkv = heads, nn.Linear(d, 3 * d)
    def forward(self, x, mask):
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = SCORES
        return scores.masked_fill(mask, float("-inf")).softmax(-1) @ v
net = Attention()
opt = torch.optim.Adam(net.parameters())
for i in range(100):
    x = torch.randn(8, 10, 64)
    mask = torch.ones(10, 10, dtype=torch.bool).triu(1)
    opt.zero_grad(); F.mse_loss(net(x, mask), x).backward(); opt.step()
"""
SCORES = (
    "q @ k.transpose(-2, -1) * 64 ** 0.5  # here",
    "(q @ k.transpose(-2, -1)) * math.sqrt(q.size(-1))  # here",
    "q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))",
    "q @ k.transpose(-2, -1) * 64 ** -0.5",
    "q @ k.transpose(-2, -1) * 2.0",
    "F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1) * 8.0",
    "(q / q.norm(dim=-1, keepdim=True)) @ (k * k.square().sum(-1, keepdim=True).rsqrt()).mT * 8.0",
)
CASES = [
    *((standardised_wrongly, REGRESSION.replace("SCALE", code).replace("BACK", "pass")) for code in SCALES),
    *((scaled_back_wrongly, REGRESSION.replace("SCALE", "").replace("BACK", code)) for code in BACKS),
    *((clip_turned, PPO.replace("BODY", code)) for code in TURNED),
    *((ratio_misbuilt, PPO.replace("BODY", code)) for code in RATIOS),
    *((distance_wrong, CODES.replace("DIST", code).replace("PASS", "z + (q - z).detach()")) for code in DISTANCES),
    *((straight_through_wrong, CODES.replace("DIST", DISTANCES[2]).replace("PASS", code)) for code in PASSES),
    *((attention_scaled_up, ATTENTION.replace("SCORES", code)) for code in SCORES),
]


@pytest.mark.parametrize(("question", "code"), CASES)
def test_marked_lines_are_answered_and_no_other(question: Question, code: str) -> None:
    assert answered(question, HEAD + code) == marked(HEAD + code)
