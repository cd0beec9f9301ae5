"""The critic is trained towards the advantage instead of the return.

What: the target of the value loss is the sum of temporal differences itself.
Why it matters: the critic learns how wrong it is, not what is earned; its values and the advantages shrink to noise.
When it is fine: with the old values added: ``returns = advantages + values``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.critics import advantage_as_target
from trainwreck.core.evidence import Evidence

_ROLLOUT = """
import torch
from torch import nn, optim
from torch.distributions import Categorical
pi, critic = nn.Linear(8, 3), nn.Linear(8, 1)
opt = optim.Adam([*pi.parameters(), *critic.parameters()])
def gae(rew, v, done):
    adv, run = torch.zeros(127), torch.zeros(())
    for t in reversed(range(127)):
        delta = rew[t] + 0.99 * v[t + 1] * (1 - done[t]) - v[t]
        run = delta + 0.99 * 0.95 * (1 - done[t]) * run
        adv[t] = run
    return adv
for obs, act, rew, done in rollouts:
    with torch.no_grad():
        v = critic(obs).squeeze(-1)
        adv = gae(rew, v, done)
    logp = Categorical(logits=pi(obs[:-1])).log_prob(act[:-1])
    value = critic(obs[:-1]).squeeze(-1)
    loss = -(logp * adv).mean() + (value - TARGET).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
BAD = (_ROLLOUT.replace("    return adv\n", "    return adv  # expect\n").replace("TARGET", "adv"),)
GOOD = (_ROLLOUT.replace("TARGET", "(adv + v[:-1])"),)


def find(project: Project) -> Iterator[Evidence]:
    yield from answers(__name__, project, advantage_as_target)
