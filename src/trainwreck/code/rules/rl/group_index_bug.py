"""Prompts are repeated in one order, and their rewards cut into groups in another.

What: ``obs.repeat(G, 1)`` lays whole blocks one after the other; ``rewards.view(-1, G)`` takes neighbours for a group.
Why it matters: the mean of a group is taken over different prompts; the advantage compares apples with pears.
When it is fine: ``repeat_interleave(G)`` with ``view(-1, G)``, or ``repeat(G, 1)`` with
``view(G, -1)`` and ``mean(0)``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.copied_orders import copies_apart
from trainwreck.code.rehearsal.questions.grouping import regrouped, turned_back
from trainwreck.code.topics import REWARDS
from trainwreck.core.evidence import Evidence

_LOOP = """
import torch
from torch import nn, optim
from torch.distributions import Categorical
G = 4
net = nn.Linear(10, 3)
opt = optim.Adam(net.parameters())
for prompts in loader:
    obs = prompts.HOW
    d = Categorical(logits=net(obs))
    a = d.sample()
    table = reward(obs, a).view(-1, G)
    adv = table - table.mean(1, keepdim=True)
    loss = -(d.log_prob(a) * adv.flatten()).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WORDS = REWARDS
BAD = _LOOP.replace("HOW", "repeat(G, 1)").replace("view(-1, G)", "view(-1, G)  # expect")
GOOD = _LOOP.replace("HOW", "repeat_interleave(G, dim=0)")


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, (), regrouped, turned_back, copies_apart)
