"""The advantage is the value minus the return.

What: ``advantage = values - returns``: what was expected minus what came.
Why it matters: actions that did better than expected get a negative advantage and become less likely.
When it is fine: where the policy loss has no minus sign to go with it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.facts import (
    names_in,
)
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def update(policy, critic, obs, act, returns, opt):
    values = critic(obs)
    advantage = values.detach() - returns  # expect
    loss = -(policy(obs).log_prob(act) * advantage).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    """
class Agent:
    def learn(self, batch):
        adv = self.baseline - batch.rewards_to_go  # expect
        policy_loss = -(batch.logp * adv).mean()
        policy_loss.backward()
        self.opt.step()
""",
)
GOOD = """
import torch
def update(policy, critic, obs, act, returns, rewards, opt, nxt, gamma):
    values = critic(obs)
    advantage = returns - values.detach()
    delta = rewards + gamma * critic(nxt) - values
    error = values - returns
    loss = -(policy(obs).log_prob(act) * advantage).mean() + error.pow(2).mean()
    loss.backward()
"""
ADVANTAGE = re.compile(r"^(adv|advs|advantages?|adv_\w+)$", re.IGNORECASE)
EXPECTED = re.compile(r"(^|_)(values?|baselines?|critic|v|vals?)(_|$)", re.IGNORECASE)
CAME = re.compile(r"(^|_)(returns?|rets?|rewards?|rtg|targets?|td_target)(_|$)", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
    for scope in {c.scope for c in project.calls("backward")}:
        for node in project.within(scope, ast.Assign):
            assert isinstance(node, ast.Assign)
            value = node.value
            target = written(node.targets[0]).rsplit(".", 1)[-1]
            if not ADVANTAGE.match(target) or not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Sub):
                continue
            if names_in(value.left, EXPECTED) and not names_in(value.left, CAME) and names_in(value.right, CAME):
                yield sighting(
                    __name__, (node, scope), "this is what was expected minus what came: the sign is turned round"
                )
