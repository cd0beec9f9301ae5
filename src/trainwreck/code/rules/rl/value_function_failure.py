"""A critic is trained towards something else than what is earned from a state on.

What: the target is the sum of temporal differences itself; or in ``reward + discount * value`` the end of an episode is
missing or turned round, the value is that of the same state, or the discount stands twice or before the reward too.
Why it matters: the critic learns how wrong it is, or values that nobody earns; the policy follows it.
When it is fine: with the old values added (``returns = advantages + values``); in tasks that only a time limit ends.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.critics import advantage_as_target
from trainwreck.code.rehearsal.questions.followers import unused
from trainwreck.code.rehearsal.questions.moved_targets import moves_along, scaled_advantage
from trainwreck.code.rehearsal.questions.next_values import chosen_elsewhere, one_step_for_several
from trainwreck.code.rehearsal.questions.successors import (
    another_action,
    any_action,
    any_of_them,
    least_of_the_samples,
    never_discounted,
    one_critic_twice,
    optimistic,
    over_the_batch,
    worst_action,
)
from trainwreck.code.rehearsal.questions.targets import (
    discounted_twice,
    end_missing,
    end_turned,
    reward_discounted,
)
from trainwreck.code.rehearsal.questions.transitions import same_state, stays_put
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
    of_next = (
        stays_put,
        optimistic,
        never_discounted,
        one_critic_twice,
        worst_action,
        least_of_the_samples,
        any_of_them,
        over_the_batch,
        any_action,
        another_action,
    )
    ahead = (chosen_elsewhere, one_step_for_several)
    questions = (advantage_as_target, end_turned, end_missing, same_state, discounted_twice, reward_discounted, unused)
    yield from further(__name__, project, (), *questions, *of_next, scaled_advantage, moves_along, *ahead)
