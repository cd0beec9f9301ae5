"""The load-balancing term of a router is computed and never added to the objective.

What: a module with a gate returns (or keeps in an attribute) an auxiliary loss, and the training step reads it
nowhere.
Why it matters: nothing then stops the router from sending every token to the same experts (arXiv:1701.06538).
When it is fine: balancing without a loss (biases that are moved, arXiv:2408.15664), and dense mixtures.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.facts import source, trains
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.routing import balance_unused
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import modules
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
import torch.nn.functional as F
from torch import nn
class MoE(nn.Module):
    def forward(self, x):
        p = self.gate(x).softmax(-1)
        w, i = p.topk(2, -1)
        aux = (p.mean(0) * F.one_hot(i[:, 0], 4).float().mean(0)).sum() * 4
        return self.mix(x, w, i), aux
def train(loader, head):
    moe = MoE()
    opt = torch.optim.Adam(moe.parameters())
    for x, y in loader:
        h, aux = moe(x)  # expect
        loss = F.cross_entropy(head(h), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    """
import torch
from torch import nn
class Router(nn.Module):
    def forward(self, x):
        probs = torch.softmax(self.gate(x), -1)
        top = probs.argmax(-1)
        self.load_balance_loss = probs.mean(0).pow(2).sum()  # expect
        return top, probs
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.router, self.experts = Router(), nn.ModuleList([nn.Linear(4, 4) for _ in range(4)])
def train(net, loader, opt, ce):
    for x, y in loader:
        ce(net(x), y).backward()
        opt.step()
""",
)
GOOD = """
import torch
import torch.nn.functional as F
from torch import nn
class MoE(nn.Module):
    def forward(self, x):
        p = self.gate(x).softmax(-1)
        w, i = p.topk(2, -1)
        aux = (p.mean(0) * F.one_hot(i[:, 0], 4).float().mean(0)).sum() * 4
        self.z_loss = p.logsumexp(-1).mean()
        return self.mix(x, w, i), aux
def train(loader, head, moe=MoE()):
    opt = torch.optim.Adam(moe.parameters())
    for x, y in loader:
        h, aux = moe(x)
        loss = F.cross_entropy(head(h), y) + 0.01 * aux + moe.z_loss
        opt.zero_grad()
        loss.backward()
        opt.step()
@torch.no_grad()
def evaluate(moe, x):
    h, aux = moe(x)
    return h
"""
AUXILIARY = pattern(r"(^|_)(aux|balanc\w*|load_?bal\w*|lb|router)(_?loss)?(_|$)|aux_loss|balance_loss", re.IGNORECASE)
EXPERTS = pattern(r"expert|\bmoe\b|mixture", re.IGNORECASE)
ROUTES = pattern(r"topk|argmax|one_hot|softmax")


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), balance_unused)


def _written(project: Project) -> Iterator[Evidence]:
    if not trains(project) or not EXPERTS.search(source(project)):
        return
    yield from _returned(project)
    yield from _kept(project)


def _routers(project: Project) -> Iterator[Scope]:
    for owner in modules(project):
        forward = owner.method("forward")
        if forward is not None and ROUTES.search(written(forward.node)):
            yield forward


def _returned(project: Project) -> Iterator[Evidence]:
    """``h, aux = moe(x)`` in a function that runs backward and reads ``aux`` nowhere."""
    if not any(AUXILIARY.search(name) for forward in _routers(project) for name in _returned_names(forward)):
        return
    for scope in {c.scope for c in project.calls("backward")}:
        read = {
            n.id for n in project.within(scope, ast.Name) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
        }
        for node in project.within(scope, ast.Assign):
            if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Tuple):
                continue
            lost = [
                e.id
                for e in node.targets[0].elts
                if isinstance(e, ast.Name) and AUXILIARY.search(e.id) and e.id not in read
            ]
            if lost and isinstance(node.value, ast.Call):
                yield sighting(__name__, (node, scope), f"{lost[0]} is returned here and never added to the loss")


def _returned_names(forward: Scope) -> set[str]:
    return {n.id for value in forward.returns if value is not None for n in ast.walk(value) if isinstance(n, ast.Name)}


def _kept(project: Project) -> Iterator[Evidence]:
    """``self.aux_loss = ...`` that nothing reads."""
    for forward in _routers(project):
        for node in project.within(forward, ast.Assign):
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            if not isinstance(target, ast.Attribute) or not AUXILIARY.search(target.attr):
                continue
            if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.BinOp | ast.Call):
                continue
            text = source(project)
            uses = len(re.findall(rf"\b{re.escape(target.attr)}\b", text))
            stored = len(re.findall(rf"\.{re.escape(target.attr)}\s*=[^=]", text))
            if uses <= stored:
                yield sighting(__name__, (node, forward), f"{target.attr} is kept here and never added to the loss")
