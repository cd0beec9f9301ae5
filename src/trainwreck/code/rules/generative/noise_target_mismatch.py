"""The noise to be predicted is not the noise that was added.

What: ``x = a * x0 + b * noise`` and the loss compares the prediction with a fresh ``torch.randn_like``.
Why it matters: the target is independent of the input: the best answer is zero, and sampling gives noise.
When it is fine: never.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import (
    bound_to,
    names,
)
from trainwreck.code.flow import back
from trainwreck.code.objective import Term, objectives
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.denoising import other_noise
from trainwreck.code.rehearsal.questions.evenly_drawn import even_noise
from trainwreck.code.rehearsal.questions.told_times import noise_alone, other_kind
from trainwreck.code.rehearsal.questions.walking import towards_noise
from trainwreck.code.rule import sighting
from trainwreck.code.seek import loss_kind, losses
from trainwreck.code.spine import call_ends
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
import torch.nn.functional as F
def train(model, loader, opt, a, b):
    for x0 in loader:
        noise = torch.randn_like(x0)
        xt = a * x0 + b * noise
        pred = model(xt)
        loss = F.mse_loss(pred, torch.randn_like(x0))  # expect
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    """
import torch
import torch.nn.functional as F
class Ddpm:
    def loss(self, x0):
        xt = x0 + torch.randn_like(x0)
        target = torch.randn_like(x0)
        return F.l1_loss(self.model(xt), target)  # expect
""",
    """
import torch
class Diffusion:
    def __init__(self, net, T):
        self.net, self.T = net, T
        self.abar = torch.cumprod(1 - torch.linspace(1e-4, 0.02, T), 0)
    def noised(self, x, t, e):
        return self.abar[t].sqrt()[:, None] * x + (1 - self.abar[t]).sqrt()[:, None] * e
    def loss(self, x):
        t = torch.randint(0, self.T, (len(x),))
        e = torch.randn_like(x)
        pred = self.net(self.noised(x, t, e), t)
        return (pred - torch.randn_like(x)).pow(2).mean()  # expect
def train(d: Diffusion, loader, opt):
    for x in loader:
        loss = d.loss(x)
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
)
GOOD = (
    """
import torch
import torch.nn.functional as F
def train(model, loader, opt, a, b):
    for x0 in loader:
        noise = torch.randn_like(x0)
        xt = a * x0 + b * noise
        F.mse_loss(model(xt), noise).backward()
def check(model, x):
    return F.mse_loss(model(x), torch.randn_like(x))
""",
    """
import torch
def loss(net, x, abar, T):
    t = torch.randint(0, T, (len(x),))
    e = torch.randn_like(x)
    pred = net(abar[t].sqrt()[:, None] * x + (1 - abar[t]).sqrt()[:, None] * e, t)
    return (pred - e).pow(2).mean() + (pred - e + 0.1).abs().mean()
def train(net, loader, abar, opt):
    for x in loader:
        loss(net, x, abar, 10).backward()
        opt.step()
""",
    """
import torch
from torch import nn
def smoke(rank, opt):
    net, loss_fn = nn.Linear(10, 5), nn.MSELoss()
    labels = torch.randn(32, 5).to(rank)
    outputs = net(torch.randn(32, 10).to(rank))
    loss_fn(outputs, labels).backward()
    x, y = torch.randn(32, 10), torch.randn(32, 5)
    loss_fn(net(x), y).backward()
    opt.step()
""",
)
NOISE = ("randn_like", "randn")


def find(project: Project) -> Iterator[Evidence]:
    asked = (other_noise, towards_noise, noise_alone, other_kind, even_noise)
    yield from further(__name__, project, _written(project), *asked)


def _written(project: Project) -> Iterator[Evidence]:
    found = list(_of_losses(project))
    yield from found or _of_differences(project)


ADDED = pattern(r"(sqrt|abar|alpha|ab\b|bar|sigma|a_t|s_t)", re.IGNORECASE)


def _of_differences(project: Project) -> Iterator[Evidence]:
    """Errors written as differences, and targets that are no noise while samples are drawn by subtracting noise."""
    for call, terms in objectives(project):
        for term in terms:
            sides = _sides(term.node)
            if sides is None:
                continue
            for prediction, target in (sides, sides[::-1]):
                noisy = _noised(project, prediction, term)
                if noisy is None:
                    continue
                fresh = target if isinstance(target, ast.Call) and last_name(target.func) in NOISE else None
                if fresh is not None and fresh is not noisy:
                    text = "the target is fresh noise, not the noise that was added to the input"
                    place = (project.statement(term.node, term.scope), term.scope)
                    yield sighting(__name__, place, text, proof=[call])
                    return


def _sides(node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """The two sides of a squared difference, through the mean."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr not in ("mean", "sum", "pow", "square", "abs"):
            return None
        node = node.func.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        node = node.left
    return (node.left, node.right) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) else None


def _noised(project: Project, prediction: ast.expr, term: Term) -> ast.AST | None:
    """The noise that was added to what the network is given, where the prediction is the output of one."""
    calls = call_ends(project, prediction, term.scope)
    for call in calls:
        for argument in call.node.args:
            for step in back(project, argument, call.scope):
                drawn = isinstance(step.node, ast.Call) and last_name(step.node.func) in NOISE
                mixed = any(isinstance(s.node, ast.BinOp) and ADDED.search(written(s.node)) for s in step.chain())
                if drawn and mixed:
                    return step.node
    return None


def _of_losses(project: Project) -> Iterator[Evidence]:
    for loss in losses(project):
        target, value = loss.argument("target", 1), loss.argument("input", 0)
        if target is None or value is None or not loss_kind(project, loss) & {"mse", "l1", "smoothl1", "huber"}:
            continue
        fresh = [c for c in call_ends(project, target, loss.scope) if c.name in NOISE]
        if len(fresh) != 1 or fresh[0].scope is not loss.scope:
            continue
        name = bound_to(project, fresh[0])
        uses = [
            n
            for n in ast.walk(loss.scope.node)
            if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)
        ]
        if name and len(uses) > 1:
            continue
        others = [
            c
            for c in project.calls(*NOISE)
            if c.scope is loss.scope and c.node is not fresh[0].node and _added(project, c, value)
        ]
        if others:
            text = "the target is fresh noise, not the noise that was added to the input"
            yield sighting(__name__, loss, text, proof=[fresh[0], others[0]])


def _leads_to(noise: Call, name: str | None, prediction: ast.expr) -> bool:
    """True where the prediction is computed from these random numbers, through the names of their function."""
    made = [n for n in ast.walk(noise.scope.node) if isinstance(n, ast.Assign)]
    behind: list[ast.AST] = [prediction]
    known: set[str] = set()
    while behind:
        node = behind.pop()
        if any(n is noise.node or (name and isinstance(n, ast.Name) and n.id == name) for n in ast.walk(node)):
            return True
        new = names(node) - known
        known |= new
        behind += [a.value for a in made if any(names(t) & new for t in a.targets)]
    return False


def _added(project: Project, noise: Call, prediction: ast.expr) -> bool:
    """True where the random numbers are added to something, here or in a function that gets them: not those that
    the network is given as they are."""
    name = bound_to(project, noise)
    if not _leads_to(noise, name, prediction):
        return False
    networks = [c.node for c in call_ends(project, prediction, noise.scope)]
    for node in ast.walk(noise.scope.node):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            inside: list[ast.AST] = list(ast.walk(node))
        elif isinstance(node, ast.Call) and node not in networks:
            inside = [*node.args, *(k.value for k in node.keywords)]
        else:
            continue
        if noise.node in inside or (name and any(isinstance(n, ast.Name) and n.id == name for n in inside)):
            return True
    return False
