"""An exponential of an unbounded output of the network.

What: ``exp`` of the raw output of a linear layer, without a clamp or a bound, where the result is a rate, a scale or
a hand-written softmax (``x.exp() / x.exp().sum()``).
Why it matters: fp32 overflows beyond 88, fp16 beyond 11; one large output makes the loss inf and the weights NaN.
When it is fine: with a clamp, ``softplus``, ``tanh`` or ``softmax`` of torch, or after subtracting the maximum.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.facts import trains
from trainwreck.code.order import under_no_grad
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.exponents import steep
from trainwreck.code.rehearsal.questions.numerics import exp_overflow
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def attention(q, k, v):
    s = q @ k.transpose(-1, -2)
    w = torch.exp(s) / torch.exp(s).sum(-1, keepdim=True)  # expect
    return w @ v
def train(q, k, v):
    attention(q, k, v).sum().backward()
""",
    """
import torch
class Pool(torch.nn.Module):
    def forward(self, h):
        score = self.score(h)
        e = score.exp()  # expect
        return (e / e.sum(1, keepdim=True) * h).sum(1)
def train(net, h):
    net(h).sum().backward()
""",
    """
import torch
def nll(logits, y):
    exps = torch.exp(logits)  # expect
    probs = exps / torch.sum(exps, dim=1, keepdim=True)
    return -torch.log(probs[torch.arange(len(y)), y]).mean()
def train(model, x, y):
    nll(model(x), y).backward()
""",
)
GOOD = """
import torch
def stable(s):
    s = s - s.max(-1, keepdim=True).values
    e = torch.exp(s)
    return e / e.sum(-1, keepdim=True)
def shifted(x):
    e = torch.exp(x - x.amax(1, keepdim=True))
    return e / e.sum(1, keepdim=True)
def bounded(x):
    e = torch.exp(x.clamp(-10, 10))
    return e / e.sum(1, keepdim=True)
def kernel(d):
    k = torch.exp(-d ** 2)
    return k / k.sum(1, keepdim=True)
def perplexity(loss):
    return torch.exp(loss)
def train(x):
    (stable(x) + shifted(x) + bounded(x) + kernel(x)).sum().backward()
"""
BOUNDED = pattern(r"clamp|clip|tanh|sigmoid|softplus|softmax|normalize|max\(|amax|\bmax\b|minimum|cos|log_|logp|lse|-")
"""What bounds the argument, or makes it negative."""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), exp_overflow, steep)


def _written(project: Project) -> Iterator[Evidence]:
    if not trains(project):
        return
    for scope in project.functions:
        for node in project.within(scope, ast.Call):
            assert isinstance(node, ast.Call)
            if last_name(node.func) != "exp" or under_no_grad(project, node, scope) is not None:
                continue
            if written(node.func).startswith(("np.", "numpy.", "math.")):
                continue  # in double precision it holds to 709, and no gradient goes through
            argument = _argument(node)
            if argument is None or _is_bounded(project, argument, scope, 0):
                continue
            if _divided_by_own_sum(project, node, scope):
                text = "a softmax by hand without subtracting the maximum: it overflows for large scores"
                yield sighting(__name__, (node, scope), text)
                break


def _argument(node: ast.Call) -> ast.expr | None:
    if node.args:
        return node.args[0]
    return node.func.value if isinstance(node.func, ast.Attribute) else None


def _is_bounded(project: Project, node: ast.expr, scope: Scope, depth: int) -> bool:
    text = re.sub(r"\((-?\d+(, ?)?)+\)|\[[^\]]*\]|dim=-\d", "", written(node))
    if BOUNDED.search(text) or depth > 4:
        return True
    if isinstance(node, ast.Name):
        bindings = [b for b in project.lookup(node.id, scope) if b.kind in ("assign", "augment")]
        return any(
            b.value is not None and b.value is not node and _is_bounded(project, b.value, scope, depth + 1)
            for b in bindings
        )
    return False


def _divided_by_own_sum(project: Project, node: ast.Call, scope: Scope) -> bool:
    """True if ``e / e.sum(...)`` follows, for the call itself or the name that it is given."""
    statement = project.statement(node, scope)
    names = {written(node)}
    if isinstance(statement, ast.Assign) and statement.value is node and isinstance(statement.targets[0], ast.Name):
        names.add(statement.targets[0].id)
    sums = {f"{n}.sum(" for n in names} | {f"torch.sum({n}" for n in names}
    for other in project.within(scope, ast.BinOp):
        if isinstance(other, ast.BinOp) and isinstance(other.op, ast.Div) and written(other.left) in names:
            below = written(other.right)
            if any(s in below for s in sums):
                return True
            if isinstance(other.right, ast.Name):
                for binding in project.lookup(other.right.id, scope):
                    if binding.value is not None and any(s in written(binding.value) for s in sums):
                        return True
    return False
