"""A branch that torch.where does not take still has a gradient.

What: ``torch.where(x > 0, torch.log(x), 0)``: the forbidden branch is computed for every element.
Why it matters: its infinite slope times zero is NaN: the forward looks right, the gradient is NaN.
When it is fine: where the argument is made safe inside the branch (clamp, a second where).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import last_name
from trainwreck.code.order import on_training_path, under_no_grad
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.numerics import where_nan
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
from torch import nn
class Head(nn.Module):
    def forward(self, x):
        return torch.where(x > 0, torch.log(x), torch.zeros_like(x))  # expect
""",
    """
import torch
def loss_fn(p, q):
    ratio = torch.where(q != 0, p / q, torch.zeros_like(p))  # expect
    return ratio.mean()
""",
    """
import torch
class Norm(torch.nn.Module):
    def forward(self, x):
        d = x.pow(2).sum(-1)
        return torch.where(d > 1e-6, d.sqrt(), 0.0)  # expect
""",
    """
import torch
def safe_log(x):
    return torch.where(x > 0, torch.log(x), torch.zeros_like(x))  # expect
def train(net, loader, opt):
    for x, y in loader:
        loss = safe_log(net(x)).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
)
GOOD = """
import torch
from torch import nn
class Head(nn.Module):
    def forward(self, x):
        a = torch.where(x > 0, torch.log(x.clamp(min=1e-6)), torch.zeros_like(x))
        safe = torch.where(x > 0, x, torch.ones_like(x))
        b = torch.where(x > 0, torch.log(safe), torch.zeros_like(x))
        c = torch.where(x > 0, torch.exp(x), x)
        return a + b + c
class Scale(nn.Module):
    def forward(self, given):
        strength = torch.where(given == 0.0, torch.ones_like(given), given)
        return torch.where(strength < 50, 5000.0 / strength, 200.0 - 2.0 * strength)
def show(p, q):
    return torch.where(q != 0, p / q, 0.0)
"""


def find(project: Project) -> Iterator[Evidence]:
    found = list(_written(project))
    yield from found
    if not found:
        yield from answers(__name__, project, where_nan)


def _written(project: Project) -> Iterator[Evidence]:
    for call in project.calls("where"):
        args = call.node.args
        if project.called(call) != "torch.where" or len(args) != 3 or not isinstance(args[0], ast.Compare):
            continue
        inside_network = on_training_path(project, call.scope)
        if (
            not (inside_network or "loss" in call.scope.name.lower())
            or under_no_grad(project, call.node, call.scope) is not None
        ):
            continue
        tested = args[0].left
        if not isinstance(tested, ast.Name) or not isinstance(args[0].comparators[0], ast.Constant):
            continue
        if _guarded(project, tested, call.scope):
            continue
        if any(_steep(branch, tested.id) for branch in args[1:]):
            text = f"both branches are differentiated: where {tested.id} is at its forbidden value the gradient is NaN"
            yield sighting(__name__, call, text)


def _guarded(project: Project, tested: ast.Name, scope: Scope) -> bool:
    """True where the tested value was itself kept away from where the branch is steep."""
    bindings = project.lookup(tested.id, scope)
    return any(
        isinstance(b.value, ast.Call) and last_name(b.value.func) in ("where", "clamp", "clip", "clamp_min", "maximum")
        for b in bindings
    )


def _steep(node: ast.expr, name: str) -> bool:
    """``log(x)``, ``sqrt(x)``, ``1/x`` of the bare tested name."""
    match node:
        case ast.Call(
            func=ast.Attribute(attr="log" | "sqrt" | "rsqrt" | "reciprocal" | "acos"), args=[ast.Name(id=arg)]
        ):
            return arg == name
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id=base), attr="log" | "sqrt" | "rsqrt" | "reciprocal"), args=[]
        ):
            return base == name
        case ast.BinOp(op=ast.Div(), right=ast.Name(id=base)):
            return base == name
    return False
