"""Advantages enter the clipped objective on their raw scale.

What: the clipped surrogate of PPO multiplies the ratio by advantages, and nothing in the program standardises them
or the rewards.
Why it matters: the size of the rewards sets the size of the step: with tiny rewards the policy hardly moves, with
large ones it breaks.
When it is fine: where rewards are of order one by construction.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.facts import (
    later,
    source,
    text_of,
    trains,
)
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.in_vain import advantage_scaled_in_vain
from trainwreck.code.rule import sighting
from trainwreck.code.topics import REWARDS
from trainwreck.core.evidence import Evidence

WORDS = REWARDS
BAD = (
    """
import torch
def update(policy, obs, act, old, advantages, opt, eps=0.2):
    for _ in range(4):
        ratio = (policy(obs).log_prob(act) - old).exp()
        adv = advantages[:64]  # expect
        loss = -torch.min(ratio * adv, ratio.clamp(1 - eps, 1 + eps) * adv).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    """
import torch
class Ppo:
    def learn(self, b):
        gain = b.returns - b.values  # expect
        r = torch.exp(self.logp(b) - b.old)
        clipped = torch.clamp(r, 1.0 - self.eps, 1.0 + self.eps) * gain
        loss = -torch.minimum(r * gain, clipped).mean()
        loss.backward()
        self.opt.step()
""",
)
GOOD = """
import torch
def update(policy, obs, act, old, advantages, opt, eps=0.2):
    adv = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    for _ in range(4):
        ratio = (policy(obs).log_prob(act) - old).exp()
        loss = -torch.min(ratio * adv, ratio.clamp(1 - eps, 1 + eps) * adv).mean()
        loss.backward()
        opt.step()
"""
SCALED = pattern(r"\.std\(|std\(|\.var\(|normali[sz]|standardi[sz]|whiten|scale_reward|running_mean", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), advantage_scaled_in_vain)


def _written(project: Project) -> Iterator[Evidence]:
    if not trains(project) or SCALED.search(source(project)):
        return
    told: set[int] = set()
    for call in project.calls("clamp", "clip"):
        bounds = [written(a) for a in (*call.node.args, *(k.value for k in call.node.keywords))][-2:]
        if len(bounds) != 2 or not re.match(r"1(\.0)? - ", bounds[0]) or not re.match(r"1(\.0)? \+ ", bounds[1]):
            continue
        above = project.parent(call.node, call.scope)
        if not isinstance(above, ast.BinOp) or not isinstance(above.op, ast.Mult):
            continue
        other = above.right if above.left is call.node else above.left
        if not isinstance(other, ast.Name) or "min" not in text_of(project, call.scope):
            continue
        before = [
            b for b in project.lookup(other.id, call.scope) if b.kind == "assign" and not later(b.node, call.node)
        ]
        last = max(before, key=lambda b: b.line, default=None)
        if last is not None and id(last.node) not in told:
            told.add(id(last.node))
            text = f"{other.id} enters the clipped objective on its raw scale: nothing here standardises it"
            yield sighting(__name__, (last.node, last.scope), text, proof=[call])
