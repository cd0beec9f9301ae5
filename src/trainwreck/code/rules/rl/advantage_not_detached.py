"""The policy gradient flows into the critic.

What: the policy loss multiplies log-probabilities by an advantage that is computed from ``values`` with gradients.
Why it matters: the policy loss moves the baseline to make itself small instead of improving the policy.
When it is fine: with ``.detach()``, ``no_grad`` or stored values.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.order import (
    under_no_grad,
)
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.spine import call_ends, ends
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def update(policy, critic, states, actions, returns, opt):
    values = critic(states).squeeze(-1)
    log_probs = policy(states).log_prob(actions)
    advantage = returns - values
    actor_loss = -(log_probs * advantage).mean()  # expect
    loss = actor_loss + advantage.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    """
class A2c:
    def learn(self, batch):
        value = self.value_net(batch.obs)
        logp = self.policy(batch.obs).log_prob(batch.act)
        adv = batch.ret - value
        loss = -torch.mean(logp * adv)  # expect
        loss.backward()
""",
)
GOOD = """
import torch
def update(policy, critic, states, actions, returns, opt):
    values = critic(states).squeeze(-1)
    log_probs = policy(states).log_prob(actions)
    advantage = returns - values.detach()
    actor_loss = -(log_probs * advantage).mean()
    other = returns - values
    second = -(log_probs * other.detach()).mean()
    with torch.no_grad():
        third = returns - critic(states)
    fourth = -(log_probs * third).mean()
    stored = returns - states.values
    (actor_loss + second + fourth - (log_probs * stored).mean()).backward()
"""
LOGP = re.compile(r"log_?p|logprob", re.IGNORECASE)
ADVANTAGE = re.compile(r"adv|delta|td_error", re.IGNORECASE)
CRITIC = re.compile(r"critic|value", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
    for scope in {c.scope for c in project.calls("backward")}:
        for node in project.within(scope, ast.BinOp):
            assert isinstance(node, ast.BinOp)
            if not isinstance(node.op, ast.Mult):
                continue
            sides = [s for s in (node.left, node.right) if isinstance(s, ast.Name)]
            logp = next((s for s in sides if LOGP.search(s.id)), None)
            adv = next((s for s in sides if ADVANTAGE.search(s.id) and s is not logp), None)
            if logp is None or adv is None:
                continue
            critic = _live(project, adv, scope)
            if critic is not None:
                text = f"{adv.id} carries the gradient of the critic into the policy loss"
                yield sighting(__name__, (node, scope), text, proof=[critic])


def _live(project: Project, node: ast.Name, scope: Scope) -> Call | None:
    """The call of the critic under a plain difference that nothing detaches."""
    for value, where in ends(project, node, scope, reshapes=False):
        if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Sub) or "detach" in written(value):
            return None
        if under_no_grad(project, value, where) is not None:
            return None
        for call in call_ends(project, value.right, where):
            if (
                CRITIC.search(written(call.node.func))
                and call.node.args
                and under_no_grad(project, call.node, call.scope) is None
            ):
                return call
    return None
