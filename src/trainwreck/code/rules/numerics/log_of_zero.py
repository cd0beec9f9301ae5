"""A logarithm of something that can be zero.

What: a logarithm of a probability that was computed outside of it (``log(softmax(x))``, ``log(sigmoid(x))``, ``log(1
- sigmoid(x))``, the log of a sum of ``exp`` densities) in what runs backward, without an epsilon or a clamp; or a
logarithm of data.
Why it matters: fp32 probabilities underflow to 0 (sigmoid of -104, exp of -104); the loss is inf, its gradient NaN.
When it is fine: ``log_softmax``, ``logsigmoid``, ``logsumexp``, or with a floor inside of the logarithm.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.flow import Step, back
from trainwreck.code.objective import objectives
from trainwreck.code.order import under_no_grad
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal import rehearsals
from trainwreck.code.rehearsal.graph import ancestors
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.empty_counts import log_of_share
from trainwreck.code.rehearsal.questions.numerics import log_of_zero
from trainwreck.code.rehearsal.questions.roles import bounds
from trainwreck.code.rehearsal.questions.surely_zero import log_of_counts
from trainwreck.code.rule import guess, sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

SURFACES = (r"(invalid value|divide by zero) encountered in log",)
ERROR = "RuntimeWarning: divide by zero encountered in log"
BAD = (
    """
import numpy as np
def target(demand):
    return np.log(demand)  # expect # place
""",
    """
import torch
def nll(pi, mu, sigma, y):
    density = torch.exp(-0.5 * ((y - mu) / sigma) ** 2) / sigma
    return -torch.log((torch.softmax(pi, -1) * density).sum(-1)).mean()  # expect
def train(model, x, y, opt):
    loss = nll(*model(x), y)
    loss.backward()
    opt.step()
""",
    """
import torch
class Trainer:
    def step(self, x, y):
        p = torch.sigmoid(self.model(x))
        loss = -(y * torch.log(p) + (1 - y) * torch.log(1 - p)).mean()  # expect
        loss.backward()
        self.opt.step()
""",
    """
import torch.nn.functional as F
def cross_entropy(logits, y):
    probs = F.softmax(logits, dim=1)
    picked = probs.gather(1, y[:, None]).squeeze(1)
    return -picked.log().mean()  # expect
def train(model, loader, opt):
    for x, y in loader:
        cross_entropy(model(x), y).backward()
        opt.step()
""",
)
GOOD = """
import torch
import torch.nn.functional as F
import numpy as np
def target(demand):
    return np.log1p(demand) + np.log(demand + 1e-6)
def loss(logits, y, z, sigma):
    p = torch.sigmoid(logits).clamp(1e-6, 1 - 1e-6)
    q = F.softmax(logits, 1) + 1e-9
    return -(y * torch.log(p)).mean() - q.log().mean() + torch.log(sigma) + F.logsigmoid(z).mean()
def train(model, x, y, opt):
    out = loss(model(x), y, x, x)
    out.backward()
    with torch.no_grad():
        entropy = -(torch.softmax(x, -1).log()).sum()
"""
SAFE = pattern(r"eps|1e-\d|clamp|clip|maximum|\+ 1\b|\+ 1\.0|softmax|sigmoid")
FLOOR = pattern(
    r"eps|\d?e-\d|0\.0\d*1|clamp|clip|maximum|(?<!soft)max\(|tiny|where|nan_to_num|logsumexp|\+ 1\b|1 \+|1\.0 \+"
)
"""What keeps the argument away from zero."""
PROBABILITIES = frozenset(["softmax", "sigmoid", "Softmax", "Sigmoid"])


def find(project: Project) -> Iterator[Evidence]:
    found = list(_written(project))
    yield from found
    if not found:
        yield from answers(__name__, project, log_of_zero)
        yield from answers(__name__, project, log_of_share)
        yield from answers(__name__, project, log_of_counts)


def _written(project: Project) -> Iterator[Evidence]:
    told: set[int] = set()
    for call, terms in objectives(project):
        for term in terms:
            for node in ast.walk(term.node):
                if not isinstance(node, ast.Call) or last_name(node.func) not in ("log", "log2", "log10"):
                    continue
                made_of = _probability(project, node, term.scope)
                if made_of is not None and id(term.node) not in told and not _bounded(project, node):
                    told.add(id(term.node))
                    text = f"the logarithm of {made_of} is infinite once it underflows"
                    yield sighting(__name__, (node, term.scope), text, proof=[call])


def _bounded(project: Project, log: ast.Call) -> bool:
    """True where all exponents behind the logarithm are known to stay above what underflows in float32."""
    for run in rehearsals(project):
        for node in run.nodes:
            if node.op == "log" and node.place is not None and node.place[0] is log:
                exponents = [n for n in ancestors(node) if n.op == "exp" and n.inputs]
                return bool(exponents) and all(bounds(n.inputs[0]).low > LOWEST for n in exponents)
    return False


LOWEST = -80.0
"""exp(-80) is 1.8e-35: float32 holds it."""


def _probability(project: Project, log: ast.Call, scope: Scope) -> str | None:
    """What the argument is made of, where that can underflow to zero; None where a floor is in sight."""
    argument = log.args[0] if log.args else log.func.value if isinstance(log.func, ast.Attribute) else None
    if argument is None or under_no_grad(project, log, scope) is not None:
        return None
    found: str | None = None
    for step in back(project, argument, scope):
        if step.depth > 7:
            break
        node = step.node
        if not isinstance(node, ast.Name) and FLOOR.search(written(node)):
            return None
        if found is None and isinstance(node, ast.Call) and _stays(step):
            name = last_name(node.func)
            if name in PROBABILITIES:
                found = f"a {name.lower()}"
            elif name == "exp" and _falls(node):
                found = "a density"
    return found


def _falls(exp: ast.Call) -> bool:
    """True where something is taken off in the exponent; a negative axis (``sum(-1)``) takes nothing off."""
    return any(
        (isinstance(n, ast.UnaryOp) and isinstance(n.op, ast.USub) and not isinstance(n.operand, ast.Constant))
        or (isinstance(n, ast.BinOp) and isinstance(n.op, ast.Sub))
        or (isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mult | ast.Div) and _negative(n.left))
        for n in ast.walk(exp)
    )


def _negative(node: ast.expr) -> bool:
    """``-0.5``, as a factor."""
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)


def _stays(step: Step) -> bool:
    """True while only products, sums, selections and names lie between the logarithm and here."""
    keeps = (
        "sum",
        "mean",
        "gather",
        "squeeze",
        "unsqueeze",
        "prod",
        "view",
        "reshape",
        "diagonal",
        "index_select",
        "flatten",
    )
    for at in step.chain()[1:]:
        if isinstance(at.node, ast.Call) and last_name(at.node.func) not in keeps:
            return False
        if isinstance(at.node, ast.BinOp) and isinstance(at.node.op, ast.Add):
            return False
    return True


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    for call in surface.calls(project) if surface is not None else ():
        if call.name in ("log", "log2", "log10"):
            yield guess(__name__, call, "the logarithm is taken here")
            return
    for call in _logs(project):
        if not SAFE.search(written(call.node)):
            yield guess(__name__, call, "nothing keeps what the logarithm is taken of from being zero")
            return


def _logs(project: Project) -> Iterator[Call]:
    for call in project.calls("log", "log2", "log10"):
        named = project.called(call)
        printed = any(isinstance(a, ast.JoinedStr) for a in project.ancestors(call.node, call.scope))
        constant = bool(call.node.args) and isinstance(call.node.args[0], ast.Constant)
        if not named.startswith(("math.", "logging", "wandb", "logger", "self.log")) and not printed and not constant:
            yield call
