"""The policy gradient flows into the critic.

What: the policy loss multiplies log-probabilities by an advantage that is computed from ``values`` with gradients.
Why it matters: the policy loss moves the baseline to make itself small instead of improving the policy.
When it is fine: with ``.detach()``, ``no_grad`` or stored values.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import names_in
from trainwreck.code.objective import objectives
from trainwreck.code.order import under_no_grad
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.policy import hanging_advantage
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.spine import call_ends, ends
from trainwreck.code.terms import LIKELIHOOD
from trainwreck.code.topics import REWARDS
from trainwreck.core.evidence import Evidence

WORDS = REWARDS
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
    """
def update(net, b, opt):
    dist, v = net(b.obs)
    adv = b.ret - v.squeeze(-1)
    loss = -(dist.log_prob(b.act) * adv).mean() + 0.5 * adv.pow(2).mean()  # expect
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    """
class Agent:
    def losses(self, obs, act, ret):
        values = self.baseline(obs).squeeze(-1)
        logp = self.actor(obs).log_prob(act)
        return -((ret - values) * logp).mean()  # expect
    def learn(self, obs, act, ret):
        loss = self.losses(obs, act, ret)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
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
LOGP = pattern(r"log_?p|logprob", re.IGNORECASE)
CRITIC = pattern(r"critic|value|baseline|(^|[._ ])v(\b|_)", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), hanging_advantage)


def _written(project: Project) -> Iterator[Evidence]:
    told: set[int] = set()
    for backward, terms in objectives(project):
        for term in terms:
            for node in _products(project, term.node, term.scope):
                for gain, likelihood in ((node.left, node.right), (node.right, node.left)):
                    if not _likelihood(likelihood) or _likelihood(gain) or id(node) in told:
                        continue
                    critic = _live(project, gain, term.scope, backward)
                    if critic is not None:
                        told.add(id(node))
                        text = f"{written(gain)[:40]} carries the gradient of the critic into the policy loss"
                        yield sighting(__name__, (node, term.scope), text, proof=[critic])


def _products(project: Project, node: ast.expr, scope: Scope) -> Iterator[ast.BinOp]:
    """Products in an expression and behind the names that it reads (``surr1``)."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Mult):
            yield inner
        elif isinstance(inner, ast.Name):
            for binding in scope.bindings.get(inner.id, ()):
                value = binding.value if binding.kind == "assign" and not binding.path else None
                if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
                    yield value


def _likelihood(node: ast.expr) -> bool:
    """True for what is called a log-probability or a ratio, or computed as one."""
    node = node.operand if isinstance(node, ast.UnaryOp) else node
    if isinstance(node, ast.Call):
        return last_name(node.func) in ("log_prob", "clamp", "clip") or names_in(node, LIKELIHOOD)
    return isinstance(node, ast.Name | ast.Attribute) and bool(LOGP.search(written(node)) or names_in(node, LIKELIHOOD))


def _live(project: Project, node: ast.expr, scope: Scope, backward: Call) -> Call | None:
    """The call of the critic under a plain difference that nothing detaches."""
    for value, where in ends(project, node, scope, reshapes=False):
        if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Sub) or "detach" in written(value):
            return None
        if under_no_grad(project, value, where) is not None:
            return None
        for call in call_ends(project, value.right, where):
            inside = call.scope is where or call.scope.owner is where.owner
            named = CRITIC.search(written(call.node.func)) or CRITIC.search(written(value.right)) or _two_headed(call)
            if named and call.node.args and inside and under_no_grad(project, call.node, call.scope) is None:
                return call
    return None


def _two_headed(call: Call) -> bool:
    """``dist, v = net(obs)`` of an actor-critic network."""
    return bool(re.search(r"(^|[._])(net|model|policy|agent|ac|actor_critic)$", written(call.node.func)))
