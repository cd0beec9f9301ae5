"""The last activation of a network can't reach the data that it is to produce.

What: an output that ends in ``tanh`` or ``sigmoid`` (times a number at most) is compared with data that lie well beyond
its ends, by an error or in a critic that sees both; the spread of the data is read off where the program makes them.
Why it matters: the activation is driven to its flat end: its gradient is gone, and the data are never met.
When it is fine: with data brought into the interval, or outputs scaled to the data.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.forms import attention_scaled_up
from trainwreck.code.rehearsal.questions.ranges import out_of_reach
from trainwreck.code.rehearsal.questions.unscaled import attention_unscaled
from trainwreck.core.evidence import Evidence

_REGRESSION = """
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
x = torch.randn(500, 8)
y = 3 * x[:, :1] + 0.1 * torch.randn(500, 1)
END
opt = torch.optim.Adam(net.parameters(), 1e-3)
for a, b in DataLoader(TensorDataset(x, y), 50, shuffle=True):
    loss = F.mse_loss(net(a), b)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
_CRITIC = """
import torch
import torch.nn.functional as F
from torch import nn
G = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2), nn.Tanh())
D = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
g_opt, d_opt = torch.optim.Adam(G.parameters(), 1e-3), torch.optim.Adam(D.parameters(), 1e-3)
def grid(n):
    return 2 * torch.randint(-2, 3, (n, 2)).float() + 0.05 * torch.randn(n, 2)
for step in range(1000):
    real = DATA
    fake = OUT
    d_loss = F.softplus(-D(real)).mean() + F.softplus(D(fake.detach())).mean()
    d_opt.zero_grad()
    d_loss.backward()
    d_opt.step()
    g_loss = F.softplus(-D(fake)).mean()
    g_opt.zero_grad()
    g_loss.backward()
    g_opt.step()
"""
BAD = (
    _REGRESSION.replace(
        "END", "net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1), nn.Tanh())  # expect"
    ),
    _REGRESSION.replace("END", "net = nn.Sequential(nn.Linear(8, 32), nn.Linear(32, 1), nn.Sigmoid())  # expect"),
    _CRITIC.replace("DATA", "grid(64)  # expect").replace("OUT", "G(torch.randn(64, 8))"),
)
GOOD = (
    _REGRESSION.replace("END", "net = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))"),
    _REGRESSION.replace("END", "net = nn.Sequential(nn.Linear(8, 1), nn.Tanh())\ny = y / y.abs().max()"),
    _CRITIC.replace("DATA", "grid(64) / 4").replace("OUT", "G(torch.randn(64, 8))"),
    _CRITIC.replace("DATA", "grid(64)").replace("OUT", "5 * G(torch.randn(64, 8))"),
)


def find(project: Project) -> Iterator[Evidence]:
    yield from answers(__name__, project, out_of_reach)
    yield from answers(__name__, project, attention_scaled_up)
    yield from answers(__name__, project, attention_unscaled)
