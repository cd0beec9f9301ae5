"""The advantage is the value minus the return, or its normalisation turns it round.

What: ``advantage = values - returns``: what was expected minus what came; ``(adv.mean() - adv) / adv.std()``; a
temporal-difference error ``V[t] - (r + gamma * V[t + 1])`` in the advantage.
Why it matters: actions that did better than expected get a negative advantage and become less likely.
When it is fine: where the policy loss has no minus sign to go with it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.facts import names_in, trains
from trainwreck.code.objective import objectives
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.bootstrap import value_added
from trainwreck.code.rehearsal.questions.policy import advantage_turned
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.terms import GAIN, LIKELIHOOD
from trainwreck.code.topics import REWARDS
from trainwreck.core.evidence import Evidence

WORDS = REWARDS
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
    """
import torch
def update(net, batch, opt, cfg):
    for mb in batch.split(64):
        a = mb.adv
        a = (a.mean() - a) / (a.std() + 1e-8)  # expect
        ratio = (net(mb.obs).log_prob(mb.act) - mb.old_logp).exp()
        pg = -torch.min(ratio * a, ratio.clamp(0.8, 1.2) * a).mean()
        opt.zero_grad()
        pg.backward()
        opt.step()
""",
    """
def gae(rewards, values, dones, last, gamma=0.99, lam=0.95):
    adv, run = [0.0] * len(rewards), 0.0
    for t in reversed(range(len(rewards))):
        nxt = values[t + 1] if t + 1 < len(rewards) else last
        delta = values[t] - (rewards[t] + gamma * nxt * (1 - dones[t]))  # expect
        run = delta + gamma * lam * (1 - dones[t]) * run
        adv[t] = run
    return adv
def learn(policy, obs, act, adv, opt):
    loss = -(policy(obs).log_prob(act) * adv).mean()
    loss.backward()
    opt.step()
""",
    """
import torch
def losses(logits, actions, baseline, returns):
    logp = torch.distributions.Categorical(logits=logits).log_prob(actions)
    return -(logp * (baseline.detach() - returns)).mean()  # expect
def step(net, b, opt):
    losses(net(b.x), b.a, b.v, b.ret).backward()
    opt.step()
""",
)
GOOD = """
import torch
def update(policy, critic, obs, act, returns, rewards, opt, nxt, gamma):
    values = critic(obs)
    advantage = returns - values.detach()
    delta = rewards + gamma * critic(nxt) - values
    error = values - returns
    adv = (advantage - advantage.mean()) / advantage.std()
    loss = -(policy(obs).log_prob(act) * adv).mean() + error.pow(2).mean()
    loss.backward()
def other(policy, obs, act, values, returns):
    adv = values - returns
    loss = (policy(obs).log_prob(act) * adv).mean()
    loss.backward()
def critic_only(critic, obs, rewards, values, nxt, gamma):
    delta = values - (rewards + gamma * nxt)
    loss = delta.pow(2).mean()
    loss.backward()
"""
ERROR = pattern(r"^(delta|deltas|td|td_error|tds|d)$", re.IGNORECASE)
ADVANTAGE = pattern(r"^(adv|advs|advantages?|adv_\w+)$", re.IGNORECASE)
EXPECTED = pattern(r"(^|_)(values?|baselines?|critic|v|vals?)(_|$)", re.IGNORECASE)
CAME = pattern(r"(^|_)(returns?|rets?|rewards?|rtg|targets?|td_target)(_|$)", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), advantage_turned, value_added)


def _written(project: Project) -> Iterator[Evidence]:
    if not trains(project):
        return
    turned = _loss_is_turned(project)
    for scope in project.scopes:
        if scope.kind == "class":
            continue
        for node in project.within(scope, ast.Assign):
            assert isinstance(node, ast.Assign)
            target = written(node.targets[0]).rsplit(".", 1)[-1]
            text = _reason(project, scope, target, node.value)
            if text and not turned:
                yield sighting(__name__, (node, scope), text)
    yield from _in_the_loss(project)


def _reason(project: Project, scope: Scope, target: str, value: ast.expr) -> str:
    """Why the value is an advantage that is turned round, empty where it is not."""
    difference = value
    while isinstance(difference, ast.Call) and isinstance(difference.func, ast.Attribute):
        difference = difference.func.value
    if isinstance(difference, ast.BinOp) and _expected_minus_came(difference):
        if ADVANTAGE.match(target):
            return "this is what was expected minus what came: the sign is turned round"
        if ERROR.match(target) and "gamma" in written(difference.right) and _summed(project, scope, target):
            return "the temporal difference is what was expected minus what came"
    centred = (
        difference.left if isinstance(difference, ast.BinOp) and isinstance(difference.op, ast.Div) else difference
    )
    if isinstance(centred, ast.BinOp) and isinstance(centred.op, ast.Sub):
        left, right = centred.left, centred.right
        whole = written(right)
        mean = isinstance(left, ast.Call) and last_name(left.func) == "mean"
        mean = mean and written(left) in (f"{whole}.mean()", f"torch.mean({whole})", f"np.mean({whole})")
        if mean and (ADVANTAGE.match(target) or _is_advantage(project, scope, right)):
            return "the normalisation subtracts the advantage from its mean: the sign is turned round"
    return ""


def _expected_minus_came(node: ast.BinOp) -> bool:
    if not isinstance(node.op, ast.Sub):
        return False
    return names_in(node.left, EXPECTED) and not names_in(node.left, CAME) and names_in(node.right, CAME)


def _summed(project: Project, scope: Scope, name: str) -> bool:
    """True if the difference enters a running sum (generalised advantages) rather than a square."""
    text = written(scope.node)
    return f"{name}.pow(2)" not in text and f"{name} ** 2" not in text and bool(re.search(r"lam|gae|adv", text))


def _is_advantage(project: Project, scope: Scope, node: ast.expr) -> bool:
    """True for a name that was set from something called an advantage."""
    if not isinstance(node, ast.Name):
        return bool(ADVANTAGE.match(written(node).rsplit(".", 1)[-1]))
    values = [b.value for b in project.lookup(node.id, scope) if b.value is not None and b.kind == "assign"]
    return any(names_in(v, ADVANTAGE) or re.search(r"\[['\"]adv", written(v)) for v in values)


def _loss_is_turned(project: Project) -> bool:
    """True if some policy term has no minus sign, so that an advantage that is turned round goes with it."""
    for _, terms in objectives(project):
        for term in terms:
            if term.sign > 0 and names_in(term.node, GAIN) and names_in(term.node, LIKELIHOOD):
                return not _minus(term.node)
    return False


def _minus(node: ast.expr) -> bool:
    return any(isinstance(n, ast.UnaryOp) and isinstance(n.op, ast.USub) for n in ast.walk(node))


def _in_the_loss(project: Project) -> Iterator[Evidence]:
    """``-(logp * (values - returns)).mean()``."""
    for _, terms in objectives(project):
        for term in terms:
            product = term.node
            if term.sign > 0 or not isinstance(product, ast.BinOp) or not isinstance(product.op, ast.Mult):
                continue
            for gain, likelihood in ((product.left, product.right), (product.right, product.left)):
                turned = isinstance(gain, ast.BinOp) and _expected_minus_came(gain)
                if turned and names_in(likelihood, LIKELIHOOD):
                    text = "the likelihood is weighted with what was expected minus what came"
                    yield sighting(__name__, (product, term.scope), text)
