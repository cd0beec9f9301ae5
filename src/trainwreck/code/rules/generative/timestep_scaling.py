"""A diffusion model is told times on one scale in training and on another when it samples.

What: ``net(x, t / T)`` in the loss and ``net(x, t)`` in the sampler, or the other way round.
Why it matters: the network sees times that it has never met; samples stay noise although the loss is low.
When it is fine: where both divide by the number of steps.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.denoising import times
from trainwreck.code.rehearsal.questions.evenly_drawn import even_start
from trainwreck.code.rehearsal.questions.noising import schedule
from trainwreck.code.rehearsal.questions.reverse import wrong_step
from trainwreck.code.rehearsal.questions.told_times import always_the_same, not_heard, other_interval
from trainwreck.code.rehearsal.questions.walking import elsewhere, untold
from trainwreck.core.evidence import Evidence

_SCRIPT = """
import torch
from torch import nn
T = 200
ab = torch.cumprod(1 - torch.linspace(1e-4, 0.02, T), 0)
class Eps(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 64), nn.SiLU(), nn.Linear(64, 2))
    def forward(self, x, t):
        return self.body(torch.cat([x, t[:, None].float()], 1))
net = Eps()
opt = torch.optim.Adam(net.parameters(), 1e-3)
def loss_of(x):
    t = torch.randint(0, T, (len(x),))
    noise = torch.randn_like(x)
    noisy = ab[t].sqrt()[:, None] * x + (1 - ab[t]).sqrt()[:, None] * noise
    return (net(noisy, t / T) - noise).pow(2).mean()
for step in range(1000):
    loss = loss_of(torch.randn(64, 2) * 0.3 + 1)
    opt.zero_grad()
    loss.backward()
    opt.step()
@torch.no_grad()
def draw(n):
    x = torch.randn(n, 2)
    for i in reversed(range(T)):
        t = torch.full((n,), i)
        eps = net(x, t / T)
        x0 = (x - (1 - ab[i]).sqrt() * eps) / ab[i].sqrt()
        x = ab[i - 1].sqrt() * x0 + (1 - ab[i - 1]).sqrt() * eps if i else x0
    return x
print(draw(100).mean(0))
"""
BAD = (
    _SCRIPT.replace("eps = net(x, t / T)", "eps = net(x, t)  # expect"),
    _SCRIPT.replace("(net(noisy, t / T) - noise)", "(net(noisy, t) - noise)").replace(
        "eps = net(x, t / T)", "eps = net(x, t / T)  # expect"
    ),
    _SCRIPT.replace("t = torch.full((n,), i)", "t = torch.tensor([i]).repeat(n)").replace(
        "eps = net(x, t / T)", "eps = net(x, t.float())  # expect"
    ),
)
GOOD = (
    _SCRIPT,
    _SCRIPT.replace("t / T", "t"),
    _SCRIPT.replace("t = torch.full((n,), i)", "t = torch.full((n,), i / T)").replace("net(x, t / T)", "net(x, t)"),
)


def find(project: Project) -> Iterator[Evidence]:
    asked = (times, schedule, wrong_step, untold, elsewhere, other_interval, always_the_same, not_heard, even_start)
    yield from further(__name__, project, (), *asked)
