"""The policy loss lacks its minus sign.

What: ``loss = (log_prob * advantage).mean()`` is minimised by a plain optimizer.
Why it matters: actions better than expected become less likely: the reward falls.
When it is fine: with ``maximize=True``, a negative advantage, or ascent by hand.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.facts import (
    source,
)
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.spine import ends
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def update(policy, obs, act, adv):
    opt = torch.optim.Adam(policy.parameters())
    logp = policy(obs).log_prob(act)
    loss = (logp * adv).mean()  # expect
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    """
import torch
class Agent:
    def learn(self, log_probs, returns):
        policy_loss = torch.mean(log_probs * returns)  # expect
        self.optimizer.zero_grad()
        policy_loss.backward()
        self.optimizer.step()
""",
)
GOOD = """
import torch
def update(policy, obs, act, adv, optimizer):
    logp = policy(obs).log_prob(act)
    loss = -(logp * adv).mean()
    loss.backward()
    objective = (logp * adv).mean()
    (-objective).backward()
    nll = -policy(obs).log_prob(act)
    other = (nll * adv).mean()
    other.backward()
    optimizer.step()
"""
LOGP = re.compile(r"^(log_?probs?|logp|log_prob_\w+|action_log_probs)$", re.IGNORECASE)
GAIN = re.compile(r"^(adv|advs|advantages?|returns?|rewards?|ret|td_error|delta)$", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
    if "maximize" in source(project):
        return
    for call in project.calls("backward"):
        if call.receiver is None:
            continue
        for node, scope in ends(project, call.receiver, call.scope, reshapes=False):
            product = _mean_of(node)
            if not isinstance(product, ast.BinOp) or not isinstance(product.op, ast.Mult):
                continue
            sides = [product.left, product.right]
            text = [written(s).removesuffix(".detach()").rsplit(".", 1)[-1] for s in sides]
            if not (any(LOGP.match(t) for t in text) and any(GAIN.match(t) for t in text)):
                continue
            if any(
                "-" in written(v)
                for s in sides
                for v, _ in ends(project, s, scope, reshapes=False)
                if isinstance(v, ast.UnaryOp)
            ):
                continue
            logp = next(s for s, t in zip(sides, text, strict=True) if LOGP.match(t))
            if any(isinstance(v, ast.UnaryOp) for v, _ in ends(project, logp, scope, reshapes=False)):
                continue
            yield sighting(
                __name__,
                (node, scope),
                "log-probability times advantage is minimised: good actions become less likely",
                proof=[call],
            )


def _mean_of(node: ast.expr) -> ast.expr | None:
    """What ``mean`` or ``sum`` is taken of."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.BinOp() as inner, attr="mean" | "sum")):
            return inner
        case ast.Call(func=ast.Attribute(attr="mean" | "sum"), args=[ast.BinOp() as inner, *_]):
            return inner
    return None
