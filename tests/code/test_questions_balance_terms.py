"""Losses of two slopes and losses with learned weights. ``# here`` marks the line; without one all is well."""

from __future__ import annotations

import pytest

from marked import answered, marked
from trainwreck.code.rehearsal.questions.quantiles import sides_exchanged
from trainwreck.code.rehearsal.questions.uncertainty import unbounded

QUANTILES = """
import torch, torch.nn as nn, torch.nn.functional as F
QS = (0.1, 0.5, 0.9)
net = nn.Linear(8, 3)
opt = torch.optim.Adam(net.parameters())
q = torch.tensor(QS)
for i in range(500):
    x, y = torch.randn(50, 8), torch.randn(50, 1)
    out = net(x)
    LOSS
    opt.zero_grad(); loss.backward(); opt.step()
"""
SLOPES = (
    "d = out - y  # here\n    loss = torch.maximum(q * d, (q - 1) * d).mean()",
    "d = out - y  # here\n    loss = torch.max(d * q, -(1 - q) * d).mean()",
    "d = out - y  # here\n    loss = torch.where(d >= 0, q * d, (1 - q) * -d).mean()",
    "d = out - y  # here\n    loss = (q * F.relu(d) + (1 - q) * F.relu(-d)).mean()",
    "d = out - y  # here\n    loss = ((q - (d < 0).float()) * d).mean()",
    "loss = 0\n    for k, a in enumerate(QS):\n        d = out[:, k] - y[:, 0]  # here\n"
    "        loss = loss + torch.max(a * d, (a - 1) * d).mean()",
    "loss = 0\n    for k, a in enumerate(QS):\n        d = out[:, k] - y[:, 0]  # here\n"
    "        loss = loss + torch.max(torch.stack([a * d, (a - 1) * d]), dim=0)[0].mean()",
    "d = y - out  # here\n    loss = torch.maximum((1 - q) * d, -q * d).mean()",
    "d = y - out\n    loss = torch.maximum(q * d, (q - 1) * d).mean()",
    "d = out - y\n    loss = torch.maximum((1 - q) * d, -q * d).mean()",
    "d = y - out\n    loss = ((q - (d < 0).float()) * d).mean()",
    "d = out - y\n    loss = (((d > 0).float() - q) * d).mean()",
    "d = y - out\n    loss = (q * F.relu(d) + (1 - q) * F.relu(-d)).mean()",
    "loss = 0\n    for k, a in enumerate(QS):\n        d = y[:, 0] - out[:, k]\n"
    "        loss = loss + torch.max(a * d, (a - 1) * d).mean()",
    "d = out - y\n    loss = torch.max(0.9 * d, -0.1 * d).mean()",
    "d = out - y\n    dear = 0.8\n    loss = torch.max(dear * d, (dear - 1) * d).mean()",
)


@pytest.mark.parametrize("loss", SLOPES)
def test_quantiles_weigh_what_lies_above_the_output(loss: str) -> None:
    text = QUANTILES.replace("LOSS", loss)
    assert answered(sides_exchanged, text) == marked(text)


TASKS = """
import torch, torch.nn as nn, torch.nn.functional as F
net, two = nn.Linear(8, 1), nn.Linear(8, 3)
s = nn.Parameter(torch.zeros(2))
spread = nn.Linear(8, 1)
opt = torch.optim.Adam([*net.parameters(), *two.parameters(), *spread.parameters(), s])
for i in range(500):
    x, y, c = torch.randn(50, 8), torch.randn(50, 1), torch.randint(0, 3, (50,))
    a, b = F.mse_loss(net(x), y), F.cross_entropy(two(x), c)
    LOSS
    opt.zero_grad(); loss.backward(); opt.step()
"""
WEIGHTS = (
    "loss = torch.exp(-s[0]) * a - s[0] + b  # here",
    "w = torch.exp(-s)\n    loss = (w[0] * a + w[1] * b) - s.sum()  # here",
    "loss = 0\n    for k, part in enumerate([a, b]):\n        loss = loss + torch.exp(-s[k]) * part - s[k]  # here",
    "loss = a / (2 * s[0] ** 2) - torch.log(s[0]) + b  # here",
    "loss = torch.exp(s[0]) * a + s[0] + b  # here",
    "v = spread(x)\n    loss = (torch.exp(-v) * (net(x) - y) ** 2 - v).mean()  # here",
    "v = spread(x)\n    loss = (0.5 * (net(x) - y) ** 2 / v.exp() - 0.5 * v).mean()  # here",
    "loss = torch.exp(-s[0]) * a + s[0] + b",
    "loss = torch.exp(s[0]) * a - s[0] + b",
    "w = torch.exp(-s)\n    loss = (w[0] * a + w[1] * b) + s.sum()",
    "loss = a / (2 * s[0] ** 2) + torch.log(s[0]) + b",
    "v = spread(x)\n    loss = (torch.exp(-v) * (net(x) - y) ** 2 + v).mean()",
    "v = spread(x)\n    loss = 0.5 * (v.exp() + net(x) ** 2 - 1 - v).mean()",
    "loss = torch.exp(-s[0]) * a - 0.1 * s[1].clamp(max=3) + b",
    "loss = s[0].exp() * (b - 1.2).detach() + a",
)


@pytest.mark.parametrize("loss", WEIGHTS)
def test_learned_weights_are_kept_from_running_off(loss: str) -> None:
    text = TASKS.replace("LOSS", loss)
    assert answered(unbounded, text) == marked(text)
