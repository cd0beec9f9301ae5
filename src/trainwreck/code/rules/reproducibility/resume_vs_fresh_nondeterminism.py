"""A resumed run draws other random numbers than an uninterrupted one.

What: the state of a random generator is written into the checkpoint, and nothing reads it back.
Why it matters: the order of the data starts anew: some samples come twice, others not at all.
When it is fine: where the file only starts a new run.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.resuming import draws_anew
from trainwreck.core.evidence import Evidence

_JOB = """
import os
import torch
from torch import nn
net = nn.Linear(8, 2)
opt = torch.optim.Adam(net.parameters())
gen = torch.Generator().manual_seed(3)
x, y = torch.randn(512, 8), torch.randint(2, (512,))
step = 0
if os.path.exists("job.pt"):
    saved = torch.load("job.pt")
    net.load_state_dict(saved["net"])
    opt.load_state_dict(saved["opt"]){}
    step = saved["step"]
while step < 1000:
    pick = torch.randint(512, (64,), generator=gen)
    loss = nn.functional.cross_entropy(net(x[pick]), y[pick])
    opt.zero_grad()
    loss.backward()
    opt.step()
    step += 1
    torch.save({{"net": net.state_dict(), "opt": opt.state_dict(), "gen": gen.get_state(), "step": step}}, "job.pt")
"""
BAD = _JOB.format("  # expect")
GOOD = _JOB.format('\n    gen.set_state(saved["gen"])')


def find(project: Project) -> Iterator[Evidence]:
    yield from answers(__name__, project, draws_anew)
