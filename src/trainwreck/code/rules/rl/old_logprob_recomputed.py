"""The importance ratio is always one.

What: ``ratio = exp(logp - logp.detach())`` or both log-probabilities come from the same forward pass of the update.
Why it matters: clipping never acts: it is a plain policy gradient, whatever the number of epochs.
When it is fine: for one on-policy step, where that is meant.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import (
    in_loop,
    later,
)
from trainwreck.code.order import (
    inside,
    position,
)
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.same_policy import same_policy
from trainwreck.code.rule import sighting
from trainwreck.code.topics import REWARDS
from trainwreck.core.evidence import Evidence

WORDS = REWARDS
BAD = (
    """
import torch
def update(policy, obs, act, adv, opt, eps=0.2):
    for _ in range(4):
        dist = policy(obs)
        logp = dist.log_prob(act)
        old_logp = dist.log_prob(act).detach()
        ratio = torch.exp(logp - old_logp)  # expect
        loss = -torch.min(ratio * adv, ratio.clamp(1 - eps, 1 + eps) * adv).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    """
import torch
def update(net, b, opt, eps=0.2):
    for _ in range(4):
        dist = net(b.obs)
        logp = dist.log_prob(b.act)
        with torch.no_grad():
            old = net(b.obs).log_prob(b.act)
        ratio = (logp - old).exp()  # expect
        loss = -torch.min(ratio * b.adv, ratio.clip(1 - eps, 1 + eps) * b.adv).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
)
GOOD = """
import torch
def update(policy, obs, act, adv, opt, stored, eps=0.2):
    with torch.no_grad():
        old_logp = policy(obs).log_prob(act)
    for _ in range(4):
        logp = policy(obs).log_prob(act)
        ratio = torch.exp(logp - old_logp)
        other = torch.exp(logp - stored)
        loss = -torch.min(ratio * adv, ratio.clamp(1 - eps, 1 + eps) * adv).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), same_policy)


def _written(project: Project) -> Iterator[Evidence]:
    for call in project.calls("exp"):
        value = call.node.args[0] if call.node.args else call.receiver
        if (
            not isinstance(value, ast.BinOp)
            or not isinstance(value.op, ast.Sub)
            or not isinstance(value.right, ast.Name | ast.Call)
        ):
            continue
        loop = in_loop(project, call.node, call.scope)
        clipped = loop is not None and re.search(r"clamp|clip|min\(", written(loop))
        if loop is None or not isinstance(value.left, ast.Name) or not clipped:
            continue
        new, old = _assigned(project, value.left, call), _assigned(project, value.right, call)
        if (
            new is None
            or old is None
            or not inside(project, new, call.scope, loop)
            or not inside(project, old, call.scope, loop)
        ):
            continue
        bare = written(old.value).removesuffix(".detach()")
        if bare in (written(new.value), value.left.id) or _same_policy(project, new.value, old.value, call):
            yield sighting(
                __name__,
                call,
                "both log-probabilities come from the current policy: the ratio is always one",
                proof=[(call.scope.module.path, old.lineno, written(old)[:80])],
            )


def _same_policy(project: Project, new: ast.expr, old: ast.expr, call: Call) -> bool:
    """True if both are log-probabilities by the same network of the same batch: the names of a distribution opened."""
    return _opened(project, new, call) == _opened(project, old, call) != ""


def _opened(project: Project, node: ast.expr, call: Call) -> str:
    while isinstance(node, ast.Call) and last_name(node.func) in ("detach", "squeeze", "clone", "data"):
        node = node.func.value if isinstance(node.func, ast.Attribute) else node
    if not isinstance(node, ast.Call) or last_name(node.func) != "log_prob" or not isinstance(node.func, ast.Attribute):
        return ""
    owner: ast.expr = node.func.value
    if isinstance(owner, ast.Name):
        found = _assigned(project, owner, call)
        owner = found.value if found is not None else owner
    return f"{written(owner)}.log_prob({', '.join(written(a) for a in node.args)})"


def _assigned(project: Project, node: ast.expr, call: Call) -> ast.Assign | None:
    if not isinstance(node, ast.Name):
        return None
    found = [b.node for b in project.lookup(node.id, call.scope) if b.kind == "assign" and not later(b.node, call.node)]
    last = max(found, key=position, default=None)
    return last if isinstance(last, ast.Assign) and isinstance(last.targets[0], ast.Name) else None
