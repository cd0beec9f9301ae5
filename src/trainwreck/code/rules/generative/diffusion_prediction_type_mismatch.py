"""A diffusion model learns to tell one thing, and the sampler takes its output for another.

What: trained on the noise and used as the clean data, or on the clean data (or a velocity) and subtracted as noise.
Why it matters: the loss falls as it should and the samples are wrong.
When it is fine: where the sampler turns one into the other first.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.denoising import kinds
from trainwreck.code.rehearsal.questions.reverse import taken_for_other
from trainwreck.core.evidence import Evidence

_SCRIPT = """
import torch
from torch import nn
T = 200
ab = torch.cumprod(1 - torch.linspace(1e-4, 0.02, T), 0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 64), nn.SiLU(), nn.Linear(64, 2))
    def forward(self, x, t):
        return self.body(torch.cat([x, t[:, None] / T], 1))
net = Net()
opt = torch.optim.Adam(net.parameters(), 1e-3)
for step in range(1000):
    x = torch.randn(64, 2) * 0.3 + 1
    t = torch.randint(0, T, (len(x),))
    noise = torch.randn_like(x)
    a, s = ab[t].sqrt()[:, None], (1 - ab[t]).sqrt()[:, None]
    goal = noise
    loss = nn.functional.mse_loss(net(a * x + s * noise, t), goal)
    opt.zero_grad()
    loss.backward()
    opt.step()
@torch.no_grad()
def draw(n):
    x = torch.randn(n, 2)
    for i in reversed(range(T)):
        out = net(x, torch.full((n,), i))
        a, s = ab[i].sqrt(), (1 - ab[i]).sqrt()
        x0 = (x - s * out) / a
        x = ab[i - 1].sqrt() * x0 + (1 - ab[i - 1]).sqrt() * (x - a * x0) / s
    return x
print(draw(100).mean(0))
"""
_STEP = """        a, s = ab[i].sqrt(), (1 - ab[i]).sqrt()
        x0 = (x - s * out) / a
        x = ab[i - 1].sqrt() * x0 + (1 - ab[i - 1]).sqrt() * (x - a * x0) / s
"""
_ANCESTRAL = _SCRIPT.replace(
    _STEP,
    """        b = 1 - ab[i] / ab[i - 1]
        x = (x - b / (1 - ab[i]).sqrt() * out) / (1 - b).sqrt() + b.sqrt() * torch.randn_like(x)
""",
)
BAD = (
    _SCRIPT.replace("goal = noise", "goal = x").replace("x0 = (x - s * out) / a", "x0 = (x - s * out) / a  # expect"),
    _SCRIPT.replace("goal = noise", "goal = a * noise - s * x").replace(
        "x0 = (x - s * out) / a", "x0 = (x - s * out) / a  # expect"
    ),
    _SCRIPT.replace("x0 = (x - s * out) / a", "x0 = a * x - s * out  # expect"),
    _ANCESTRAL.replace("goal = noise", "goal = x").replace("noise, t), goal)", "noise, t), goal)  # expect"),
)
GOOD = (
    _SCRIPT,
    _ANCESTRAL,
    _SCRIPT.replace("goal = noise", "goal = a * noise - s * x").replace(
        "x0 = (x - s * out) / a", "x0 = a * x - s * out"
    ),
    _SCRIPT.replace("goal = noise", "goal = x").replace("x0 = (x - s * out) / a", "x0 = out.clamp(-3, 3)"),
)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, (), kinds, taken_for_other)
