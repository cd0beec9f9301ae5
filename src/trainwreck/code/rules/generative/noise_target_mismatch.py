"""The noise to be predicted is not the noise that was added.

What: ``x = a * x0 + b * noise`` and the loss compares the prediction with a fresh ``torch.randn_like``.
Why it matters: the target is independent of the input: the best answer is zero, and sampling gives noise.
When it is fine: never.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.facts import (
    bound_to,
)
from trainwreck.code.project import Project
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
)
GOOD = """
import torch
import torch.nn.functional as F
def train(model, loader, opt, a, b):
    for x0 in loader:
        noise = torch.randn_like(x0)
        xt = a * x0 + b * noise
        F.mse_loss(model(xt), noise).backward()
def check(model, x):
    return F.mse_loss(model(x), torch.randn_like(x))
"""
NOISE = ("randn_like", "randn")


def find(project: Project) -> Iterator[Evidence]:
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
        others = [c for c in project.calls(*NOISE) if c.scope is loss.scope and c.node is not fresh[0].node]
        if others:
            text = "the target is fresh noise, not the noise that was added to the input"
            yield sighting(__name__, loss, text, proof=[fresh[0], others[0]])
