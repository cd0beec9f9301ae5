"""Intervals around predictions leave out a part of the spread.

What: a network is taught a mean and the noise around it, and the interval in which labels are expected is worked out
from how far several draws (dropout, an ensemble) differ alone.
Why it matters: the draws tell how sure the network is of the mean; labels lie further off, by their own noise. The
intervals hold far fewer of them than they promise.
When it is fine: where both parts are shown beside each other, or the spread of the mean is what is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.spreads import noise_left_out
from trainwreck.core.evidence import Evidence

ENSEMBLE = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Dropout(0.1))
        self.mean, self.noise = nn.Linear(32, 1), nn.Linear(32, 1)
    def forward(self, x):
        h = self.body(x)
        return self.mean(h), self.noise(h)
x, y, xt, yt = torch.randn(900, 3), torch.randn(900, 1), torch.randn(200, 3), torch.randn(200, 1)
net = Net()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(500):
    rows = torch.randint(0, 900, (50,))
    m, s = net(x[rows])
    loss = (0.5 * s + 0.5 * (y[rows] - m) ** 2 * torch.exp(-s)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
with torch.no_grad():
    net.train()
    means, noises = zip(*(net(xt) for _ in range(30)))
    middle = torch.stack(means).mean(0)
    spread = torch.stack(means).var(0)  # expect
    inside = (yt - middle).abs() < 1.96 * spread.sqrt()
    print(inside.float().mean().item())
"""
BAD = (
    ENSEMBLE,
    ENSEMBLE.replace(
        "inside = (yt - middle).abs() < 1.96 * spread.sqrt()",
        "half = 1.96 * spread.sqrt()\n    inside = (yt > middle - half) & (yt < middle + half)",
    ),
    ENSEMBLE.replace(
        "(0.5 * s + 0.5 * (y[rows] - m) ** 2 * torch.exp(-s)).mean()",
        "nn.functional.gaussian_nll_loss(m, y[rows], s.exp())",
    ),
)
GOOD = (
    ENSEMBLE.replace(".var(0)  # expect", ".var(0) + torch.stack(noises).exp().mean(0)"),
    ENSEMBLE.replace("  # expect", "")
    + "    whole = spread + torch.stack(noises).exp().mean(0)\n"
    + "    print(((yt - middle).abs() < 1.96 * whole.sqrt()).float().mean().item())\n",
    ENSEMBLE.replace("  # expect", "").replace(
        "(yt - middle).abs() < 1.96 * spread.sqrt()", "spread < spread.median()"
    ),
    ENSEMBLE.replace("  # expect", "").replace(
        "(0.5 * s + 0.5 * (y[rows] - m) ** 2 * torch.exp(-s)).mean()", "(y[rows] - m).square().mean() + 0 * s.mean()"
    ),
)


def find(project: Project) -> Iterator[Evidence]:
    yield from answers(__name__, project, noise_left_out)
