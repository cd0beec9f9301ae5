"""Several optimizers, and Lightning is to optimise by itself.

What: ``configure_optimizers`` returns more than one optimizer while automatic optimisation is on.
Why it matters: Lightning 2 takes one only: a RuntimeError or MisconfigurationException at the start.
When it is fine: with ``automatic_optimization = False``, and in Lightning 1.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.facts import made_names
from trainwreck.code.huggingface import release
from trainwreck.code.lightning import lightning_modules, manual
from trainwreck.code.order import OPTIMIZERS
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence, Severity
from trainwreck.core.fix import Fix

WORDS = ("ightning",)
BAD = (
    """
import lightning as L
import torch
class Gan(L.LightningModule):
    def training_step(self, batch, i):
        return self.loss(batch)
    def configure_optimizers(self):
        g = torch.optim.Adam(self.g.parameters())
        d = torch.optim.Adam(self.d.parameters())
        return g, d  # expect
""",
    """
import lightning as L
import torch
class Gan(L.LightningModule):
    def training_step(self, batch, i, optimizer_idx):
        return self.loss(batch)
    def configure_optimizers(self):
        g = torch.optim.Adam(self.g.parameters())
        d = torch.optim.Adam(self.d.parameters())
        return [g, d], []  # expect
""",
)
GOOD = """
import lightning as L
import torch
class Gan(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
    def training_step(self, batch, i):
        g, d = self.optimizers()
    def configure_optimizers(self):
        return torch.optim.Adam(self.g.parameters()), torch.optim.Adam(self.d.parameters())
class One(L.LightningModule):
    def training_step(self, batch, i):
        return self.loss(batch)
    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters())
        return [opt], [torch.optim.lr_scheduler.StepLR(opt, 3)]
"""


def find(project: Project) -> Iterator[Evidence]:
    for owner in lightning_modules(project):
        method = owner.method("configure_optimizers")
        step = project.find_method(owner, "training_step")
        if method is None or step is None or manual(project, owner) is not False:
            continue
        since = release(project, "lightning", owner.module.path, (2,))
        for value in method.returns if since != "no" else ():
            if value is not None and _several(project, value, method):
                text = "several optimizers, and automatic optimisation takes one" + ("" if since == "yes" else _HEDGE)
                fix = Fix("self.automatic_optimization = False, and step them in training_step")
                severity: Severity = "critical" if since == "yes" else "warning"
                yield sighting(__name__, (value, method), text, fix=fix, severity=severity)


_HEDGE = " since Lightning 2"


def _several(project: Project, node: ast.expr, scope: Scope) -> bool:
    items = node.elts if isinstance(node, ast.Tuple | ast.List) else []
    if len(items) == 2 and isinstance(items[0], ast.List | ast.Tuple):
        items = items[0].elts
    return sum(bool(made_names(project, i, scope) & OPTIMIZERS) for i in items) > 1
