"""Advantages are divided by a standard deviation that can be zero.

What: ``(adv - adv.mean()) / adv.std()`` without an epsilon, for advantages or rewards of a group or batch.
Why it matters: when all rewards are equal the deviation is 0: the advantages are NaN, and so are the weights.
When it is fine: with ``+ eps``, a clamp, or where groups without spread are left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.facts import text_of, trains
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.returns import bare_deviation
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.topics import REWARDS
from trainwreck.core.evidence import Evidence

WORDS = REWARDS
BAD = (
    """
def update(policy, batch, opt):
    adv = batch.returns - batch.values
    adv = (adv - adv.mean()) / adv.std()  # expect
    loss = -(policy(batch.obs).log_prob(batch.act) * adv).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    """
import torch
def group_advantage(rewards, group):
    r = rewards.view(-1, group)
    mean, std = r.mean(1, keepdim=True), r.std(1, keepdim=True)
    advantages = (r - mean) / std  # expect
    return advantages.flatten()
def learn(policy, x, rewards, opt):
    loss = -(policy.log_prob(x) * group_advantage(rewards, 4)).mean()
    loss.backward()
    opt.step()
""",
    """
import torch
class Reinforce:
    def finish(self):
        returns = torch.tensor(self.returns)
        returns = (returns - returns.mean()) / torch.std(returns)  # expect
        loss = -(torch.stack(self.logps) * returns).sum()
        loss.backward()
        self.opt.step()
""",
)
GOOD = """
import torch
def update(policy, batch, opt, eps=1e-8):
    adv = batch.returns - batch.values
    adv = (adv - adv.mean()) / (adv.std() + eps)
    spread = adv.std()
    if spread > 1e-6:
        adv = (adv - adv.mean()) / spread
    other = (adv - adv.mean()) / adv.std().clamp(min=1e-4)
    loss = -(policy(batch.obs).log_prob(batch.act) * adv * other).mean()
    loss.backward()
    opt.step()
"""
GAINS = pattern(r"^(\w+_)?(advs?|advantages?|returns?|rets?|rewards?|gae|delta|R|A|G|r)$", re.IGNORECASE)
SAFE = pattern(r"eps|e-\d|0\.0\d*1|clamp|clip|max\(|where|\+ 1\b")
POLICY = pattern(r"log_?prob|logp|policy|ratio", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), bare_deviation)


def _written(project: Project) -> Iterator[Evidence]:
    if not trains(project):
        return
    for scope in project.scopes:
        if scope.kind == "class":
            continue
        for node in project.within(scope, ast.Assign):
            value = node.value if isinstance(node, ast.Assign) else None
            if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Div) or SAFE.search(written(value)):
                continue
            above = value.left
            if not isinstance(above, ast.BinOp) or not isinstance(above.op, ast.Sub) or not _gain(node, above):
                continue
            if (
                _deviation(project, value.right, scope)
                and _about_policies(project, scope)
                and not _asked(project, node, scope)
            ):
                yield sighting(
                    __name__, (node, scope), "equal rewards have a deviation of 0, and nothing is added to it"
                )


def _gain(node: ast.AST, above: ast.BinOp) -> bool:
    target = node.targets[0] if isinstance(node, ast.Assign) else None
    names = [last_name(above.left), last_name(target) if isinstance(target, ast.expr) else ""]
    return any(GAINS.match(n) for n in names if n)


def _deviation(project: Project, node: ast.expr, scope: Scope) -> bool:
    """True for a standard deviation, here or behind a name."""
    if isinstance(node, ast.Call):
        return last_name(node.func) == "std"
    if not isinstance(node, ast.Name):
        return False
    for binding in scope.bindings.get(node.id, ()):
        value = binding.value
        for part in binding.path:
            fits = isinstance(value, ast.Tuple) and isinstance(part, int) and part < len(value.elts)
            value = value.elts[part] if fits and isinstance(value, ast.Tuple) and isinstance(part, int) else None
        if value is None or SAFE.search(written(value)) or not isinstance(value, ast.Call):
            return False
        if last_name(value.func) != "std":
            return False
    return bool(scope.bindings.get(node.id))


def _about_policies(project: Project, scope: Scope) -> bool:
    return any(POLICY.search(text_of(project, c.scope)) for c in project.calls("backward"))


def _asked(project: Project, node: ast.AST, scope: Scope) -> bool:
    """True under a condition on the spread or the number of samples."""
    return any(
        isinstance(a, ast.If | ast.IfExp) and re.search(r"std|spread|len\(|numel|> ", written(a.test))
        for a in project.ancestors(node, scope)
    )
