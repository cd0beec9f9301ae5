"""Actions are drawn at one temperature, and their likelihood is computed at another.

What: ``Categorical(logits=logits / 0.7).sample()`` and ``log_softmax(logits)`` in the policy loss.
Why it matters: ratio and gradient belong to another policy than the one that acted.
When it is fine: where what was drawn is learned like any text (no advantage, no ratio).
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.grouping import other_temperature
from trainwreck.code.topics import REWARDS
from trainwreck.core.evidence import Evidence

WORDS = REWARDS
BAD = """
import torch.nn.functional as F
from torch import nn, optim
from torch.distributions import Categorical
net = nn.Linear(10, 3)
opt = optim.Adam(net.parameters())
for obs in loader:
    a = Categorical(logits=net(obs) / 0.7).sample()
    logp = F.log_softmax(net(obs), -1).gather(1, a[:, None]).squeeze(1)  # expect
    loss = -(logp * reward(obs, a)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
GOOD = BAD.replace("log_softmax(net(obs), -1)", "log_softmax(net(obs) / 0.7, -1)").replace("  # expect", "")


def find(project: Project) -> Iterator[Evidence]:
    yield from answers(__name__, project, other_temperature)
