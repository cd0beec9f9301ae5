"""The temperature of a Gumbel-softmax runs the wrong way, or is far too high or too low.

What: ``tau`` grows with the steps, or is a constant of 5 and more or of 0.05 and less without ``hard=True``.
Why it matters: a hot relaxation is nearly uniform, so that the discrete choice is never learnt; a cold one has
gradients that vanish or explode (arXiv:1611.01144, annealed from 1 down to 0.5 or 0.1).
When it is fine: a temperature that falls, or one between 0.1 and 2.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator

from trainwreck.code.bounds import interval, origin
from trainwreck.code.calls import last_name, written
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.soft_choices import heating
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.spine import ends
from trainwreck.code.values import is_true
from trainwreck.core.evidence import Evidence

BAD = (
    """
import math
import torch.nn.functional as F
def train(enc, dec, x, opt):
    for step in range(1000):
        tau = 1.0 * math.exp(0.003 * step)  # expect
        loss = F.mse_loss(dec(F.gumbel_softmax(enc(x), tau=tau)), x)
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    """
import torch.nn.functional as F
class Selector:
    def __init__(self, net, tau=20.0):  # expect
        self.net, self.tau = net, tau
    def __call__(self, x):
        return F.gumbel_softmax(self.net(x), tau=self.tau, dim=-1)
""",
    """
import torch.nn.functional as F
def train(enc, dec, x, opt, epochs=50):
    tau = 0.5
    for epoch in range(epochs):
        loss = F.mse_loss(dec(F.gumbel_softmax(enc(x), tau)), x)
        opt.zero_grad()
        loss.backward()
        opt.step()
        tau = tau * 1.1  # expect
""",
)
GOOD = """
import math
import torch.nn.functional as F
def train(enc, dec, x, opt):
    tau = 1.0
    for step in range(1000):
        t = max(0.5, math.exp(-0.003 * step))
        loss = F.mse_loss(dec(F.gumbel_softmax(enc(x), tau=t)), x)
        loss = loss + F.mse_loss(dec(F.gumbel_softmax(enc(x), tau=tau, hard=True)), x)
        loss = loss + F.mse_loss(dec(F.gumbel_softmax(enc(x))), x)
        loss.backward()
        opt.step()
        tau = max(tau * 0.99, 0.1)
"""
HOT, COLD = 5.0, 0.05
"""Published schedules stay between 0.1 and 2 (arXiv:1611.01144; arXiv:1611.00712)."""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), heating)


def _written(project: Project) -> Iterator[Evidence]:
    for call in project.calls("gumbel_softmax"):
        tau = call.argument("tau", 1)
        if tau is None or not project.called(call).startswith("torch"):
            continue
        low, high = interval(project, tau, call.scope)
        if low == high and math.isfinite(low):
            if low >= HOT or (low <= COLD and not is_true(call.argument("hard", 2))):
                text = f"a temperature of {low:g} leaves the choice {'uniform' if low >= HOT else 'without a gradient'}"
                yield sighting(__name__, origin(project, tau, call.scope), text, proof=[call])
            continue
        rising = _rising(project, tau, call.scope)
        if rising is not None:
            yield sighting(__name__, rising, "the temperature grows while training goes on", proof=[call])


def _rising(project: Project, tau: ast.expr, scope: Scope) -> tuple[ast.AST, Scope] | None:
    """Where the temperature is raised: ``exp(+k * step)``, or a factor above 1 at each round."""
    if isinstance(tau, ast.Name):
        for binding in project.lookup(tau.id, scope):
            value = binding.value
            match value:
                case ast.BinOp(op=ast.Mult(), left=ast.Name(id=name), right=factor) if name == tau.id:
                    low, _ = interval(project, factor, binding.scope)
                    if low > 1:
                        return binding.node, binding.scope
    for node, where in ends(project, tau, scope):
        for inner in ast.walk(node):
            if isinstance(inner, ast.Call) and last_name(inner.func) == "exp" and inner.args:
                exponent = written(inner.args[0])
                counted = re.search(r"step|epoch|\bit\b|iter|\bi\b", exponent)
                if counted and "-" not in exponent and not re.search(r"max\(|min\(", written(node)):
                    return project.statement(node, where), where
    return None
