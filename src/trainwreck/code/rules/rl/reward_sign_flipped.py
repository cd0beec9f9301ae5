"""The policy loss has the wrong sign: what is rewarded becomes less likely.

What: ``loss = (advantage * logp).mean()`` goes backward without a minus.
Why it matters: gradient descent lowers the probability of good actions; the reward falls.
When it is fine: with ``maximize=True``, or where the advantage is already negated (a cost).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.acting import acts_least, acts_worst, complement_learned, reward_turned
from trainwreck.code.rehearsal.questions.actors import minimised
from trainwreck.code.rehearsal.questions.policy import minimised as _minimised
from trainwreck.code.rehearsal.questions.soft import value_minimised
from trainwreck.code.rule import guess, sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.surface import Surface
from trainwreck.code.topics import REWARDS
from trainwreck.core.evidence import Evidence

WORDS = REWARDS
BAD = """
def train(policy, opt, batches):
    for obs, action, advantage in batches:
        logp = policy(obs).log_prob(action)
        entropy = policy(obs).entropy().mean()
        loss = (advantage * logp).mean() - 0.01 * entropy  # expect
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
GOOD = """
def train(policy, opt, batches):
    for obs, action, advantage, cost in batches:
        logp = policy(obs).log_prob(action)
        loss = -(advantage * logp).mean()
        other = (-logp * advantage).sum()
        third = (cost * logp).mean()
        (loss + other).backward()
        opt.step()
"""
LIKELIHOOD = pattern(r"^(new_|cur_)?(logp\w*|log_?probs?\w*|lp|logprob\w*|ratio\w*|logpi\w*)$", re.IGNORECASE)
REWARD = pattern(r"^(\w+_)?(adv\w*|advantage\w*|return\w*|rewards?\w*|reward_to_go|rtg|gae)$", re.IGNORECASE)

LOSSES = pattern(r"cross_entropy|_loss$|criterion|nll")


def find(project: Project) -> Iterator[Evidence]:
    asked = (_minimised, minimised, value_minimised, acts_worst, reward_turned, acts_least, complement_learned)
    yield from further(__name__, project, _written(project), *asked)


def _written(project: Project) -> Iterator[Evidence]:
    for call in project.calls("backward"):
        if any("maximize=True" in written(c.node) for name in ("Adam", "SGD", "AdamW") for c in project.calls(name)):
            return
        for node in _loss_expressions(project, call):
            sign = _sign(node, 1)
            if sign == 1 and not _of_costs(call.scope, node):
                text = "likelihood times advantage is minimised here: good actions become less likely"
                yield sighting(__name__, (project.statement(node, call.scope), call.scope), text)


def _of_costs(scope: Scope, node: ast.expr) -> bool:
    """True where what is called an advantage is made of losses: of those less is better."""
    names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and REWARD.match(n.id)]
    for _ in range(3):
        values = [b.value for name in names for b in scope.bindings.get(name, ()) if b.kind == "assign" and b.value]
        inner = [n for v in values for n in ast.walk(v)]
        if any(isinstance(n, ast.Call) and LOSSES.search(last_name(n.func)) for n in inner):
            return not any(isinstance(n, ast.USub) for n in inner)
        names = [n.id for n in inner if isinstance(n, ast.Name)]
    return False


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    for call in project.calls("backward"):
        for node in _loss_expressions(project, call):
            if _sign(node, 1) is not None:
                yield guess(__name__, (project.statement(node, call.scope), call.scope), "the policy loss is made here")
                return


def _loss_expressions(project: Project, call: Call) -> Iterator[ast.expr]:
    receiver = call.receiver
    if isinstance(receiver, ast.Name):
        for binding in call.scope.bindings.get(receiver.id, ()):
            if binding.kind == "assign" and binding.value is not None and not binding.path:
                yield from _terms(call.scope, binding.value)
    elif receiver is not None:
        yield receiver


def _terms(scope: Scope, value: ast.expr) -> Iterator[ast.expr]:
    yield value
    for node in ast.walk(value):
        if isinstance(node, ast.Name) and "loss" in node.id and isinstance(value, ast.BinOp | ast.Name):
            for binding in scope.bindings.get(node.id, ()):
                if binding.kind == "assign" and binding.value is not None and binding.value is not value:
                    yield binding.value


def _sign(node: ast.expr, sign: int) -> int | None:
    """+1 or -1 of the product of likelihood and advantage in ``node``, None where there is none or it is unclear."""
    match node:
        case ast.UnaryOp(op=ast.USub()):
            return _sign(node.operand, -sign)
        case ast.BinOp(op=ast.Add()):
            return _sign(node.left, sign) or _sign(node.right, sign)
        case ast.BinOp(op=ast.Sub()):
            return _sign(node.left, sign) or _sign(node.right, -sign)
        case ast.BinOp(op=ast.Mult()):
            factors = list(_factors(node))
            plain = [f for f, _ in factors]
            if any(_named(f, LIKELIHOOD) for f in plain) and any(_named(f, REWARD) for f in plain):
                for _, flipped in factors:
                    sign *= -1 if flipped else 1
                return sign
            inner = [_sign(f, sign) for f in plain]
            return next((s for s in inner if s), None)
        case ast.BinOp(op=ast.Div()):
            return _sign(node.left, sign)
        case ast.Call():
            if isinstance(node.func, ast.Attribute) and last_name(node.func) in ("mean", "sum"):
                if isinstance(node.func.value, ast.Name) and node.args:
                    return _sign(node.args[0], sign)
                return _sign(node.func.value, sign)
            return None
    return None


def _factors(node: ast.expr) -> Iterator[tuple[ast.expr, bool]]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        yield from _factors(node.left)
        yield from _factors(node.right)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield node.operand, True
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float) and node.value < 0:
        yield node, True
    else:
        yield node, False


def _named(node: ast.expr, pattern: re.Pattern[str]) -> bool:
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if pattern.match(node.func.attr):
            return True
        node = node.func.value
    if isinstance(node, ast.Subscript):
        node = node.value
    return bool(pattern.match(last_name(node)))
