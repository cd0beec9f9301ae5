"""The end of an episode stops only one of two: the value of the next state, or the sum over later errors.

What: ``delta = r + gamma * v[t + 1] - v[t]`` without ``(1 - done)``, and with it in
``run = delta + gamma * lam * (1 - done[t]) * run``.
Why it matters: returns of one episode flow into the one before it; the critic learns values that nobody earns.
When it is fine: with the factor in both, or in neither (a task without end).
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers, further
from trainwreck.code.rehearsal.questions.bootstrap import end_at_hand, end_ignored
from trainwreck.code.rehearsal.questions.resets import never_reset, reset_dropped
from trainwreck.code.topics import REWARDS
from trainwreck.core.evidence import Evidence

_ROLLOUT = """
import torch
from torch import nn, optim
from torch.distributions import Categorical
pi, critic = nn.Linear(8, 3), nn.Linear(8, 1)
opt = optim.Adam([*pi.parameters(), *critic.parameters()])
for obs, act, rew, done in rollouts:
    with torch.no_grad():
        v = critic(obs).squeeze(-1)
        adv, run = torch.zeros(127), torch.zeros(())
        for t in reversed(range(127)):
            delta = rew[t] + 0.99 * v[t + 1] NEXT - v[t]
            run = delta + 0.99 * 0.95 BACK * run
            adv[t] = run
    logp = Categorical(logits=pi(obs[:-1])).log_prob(act[:-1])
    loss = -(logp * adv).mean() + (critic(obs[:-1]).squeeze(-1) - (adv + v[:-1])).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
ALIVE = "* (1 - done[t])"
WORDS = REWARDS
BAD = (
    _ROLLOUT.replace(" NEXT - v[t]", " - v[t]  # expect").replace("BACK", ALIVE),
    _ROLLOUT.replace("NEXT", ALIVE).replace(" BACK * run", " * run  # expect"),
    _ROLLOUT.replace("NEXT - v[t]", "* done[t] - v[t]  # expect").replace("BACK", ALIVE),
)
GOOD = (
    _ROLLOUT.replace("NEXT", ALIVE).replace("BACK", ALIVE),
    _ROLLOUT.replace("NEXT ", "").replace("BACK ", ""),
)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(
        __name__, project, answers(__name__, project, end_ignored), end_at_hand, reset_dropped, never_reset
    )
