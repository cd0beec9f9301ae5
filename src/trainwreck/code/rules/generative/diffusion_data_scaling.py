"""Noise of unit size is added to data that are not scaled.

What: grey levels of 0 to 255 go into the mixture with noise as they are.
Why it matters: the signal stays visible at every noise level: sampling starts from what was never seen.
When it is fine: with data brought to about -1 to 1 before.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.loud import unscaled
from trainwreck.code.rehearsal.questions.noising import never_turned_back, turned_back_only
from trainwreck.code.rehearsal.questions.sample_ranges import other_range
from trainwreck.core.evidence import Evidence

_SCRIPT = """
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
net = nn.Sequential(nn.Linear(65, 128), nn.SiLU(), nn.Linear(128, 64))
opt = torch.optim.Adam(net.parameters(), 1e-3)
pixels = torch.randint(0, 256, (1000, 64))
images = pixels.float() / 127.5 - 1
ab = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 100), 0)
def mixed(x, t, e): return ab[t].sqrt()[:, None] * x + (1 - ab[t]).sqrt()[:, None] * e
for (x,) in DataLoader(TensorDataset(images), 32, shuffle=True):
    t, e = torch.randint(0, 100, (len(x),)), torch.randn_like(x)
    loss = F.mse_loss(net(torch.cat([mixed(x, t, e), t[:, None] / 100], 1)), e)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
BAD = (
    _SCRIPT.replace("pixels.float() / 127.5 - 1", "pixels.float()").replace("(1000, 64))", "(1000, 64))  # expect"),
    _SCRIPT.replace("pixels.float() / 127.5 - 1", "pixels.to(torch.float32)").replace(
        "(1000, 64))", "(1000, 64))  # expect"
    ),
    _SCRIPT.replace("images = pixels.float() / 127.5 - 1", "images = pixels.float()")
    .replace("(1000, 64))", "(1000, 64))  # expect")
    .replace("for (x,) in DataLoader(TensorDataset(images), 32, shuffle=True):",
             "for k in range(500):\n    x = images[torch.randint(0, 1000, (32,))]"),
)  # fmt: skip
GOOD = (_SCRIPT, _SCRIPT.replace("/ 127.5 - 1", "/ 255"), _SCRIPT.replace("0, 256, (1000", "0, 2, (1000"))


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, (), unscaled, turned_back_only, never_turned_back, other_range)
