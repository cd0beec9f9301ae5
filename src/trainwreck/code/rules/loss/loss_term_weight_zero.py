"""A loss term is computed and never used.

What: the training step assigns a loss (``kl``, ``aux_loss``, ``reg``) that nothing reads afterwards.
Why it matters: the term costs time and changes nothing: the objective is not the one that was meant.
When it is fine: where it is only logged, which is a use.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.facts import (
    function_of,
    text_of,
)
from trainwreck.code.order import (
    training_steps,
)
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch.nn.functional as F
def train(model, loader, opt):
    for x in loader:
        recon, mu, logvar = model(x)
        recon_loss = F.mse_loss(recon, x)
        kl_loss = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum()  # expect
        loss = recon_loss
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    """
class Trainer:
    def fit(self):
        for x, y in self.loader:
            out, aux = self.model(x)
            task_loss = self.criterion(out, y)
            aux_loss = self.criterion(aux, y)  # expect
            total = task_loss
            self.opt.zero_grad()
            total.backward()
            self.opt.step()
""",
)
GOOD = """
def train(model, loader, opt, log):
    for x, y in loader:
        out, reg_loss, aux_loss = model(x, y)
        kl_loss = out.mean()
        log(kl_loss)
        rec_loss = out.sum()
        loss = rec_loss + reg_loss
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
TERM = re.compile(r"(^|_)(loss|kl|kld|penalty|regulari[sz]er|reg)(_|\d|$)", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
    for step in training_steps(project):
        if not step.steps or len(step.backward) != 1:
            continue
        read = {n.id for n in ast.walk(step.scope.node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        if "locals(" in text_of(project, step.scope):
            continue
        for node in ast.walk(step.body):
            if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
                continue
            name = node.targets[0].id
            if (
                TERM.search(name)
                and name not in read
                and isinstance(node.value, ast.Call | ast.BinOp)
                and not name.startswith("_")
                and function_of(project, node, step.scope) is step.scope.node
            ):
                yield sighting(
                    __name__,
                    (node, step.scope),
                    f"{name} is computed and never added to what runs backward",
                    proof=step.backward,
                )
