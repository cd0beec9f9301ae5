"""The optimizer is built and not given to Lightning.

What: ``configure_optimizers`` builds an optimizer and returns nothing.
Why it matters: Lightning warns and runs without an optimizer: no weight ever changes.
When it is fine: where there is nothing to train.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.facts import optimizers
from trainwreck.code.lightning import lightning_modules
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

WORDS = ("ightning",)
BAD = (
    """
import lightning as L
import torch
class Net(L.LightningModule):
    def configure_optimizers(self):  # expect
        self.opt = torch.optim.Adam(self.parameters(), lr=1e-3)
""",
)
GOOD = """
import lightning as L
import torch
class Net(L.LightningModule):
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)
class None_(L.LightningModule):
    def configure_optimizers(self):
        pass
"""


def find(project: Project) -> Iterator[Evidence]:
    for owner in lightning_modules(project):
        method = owner.method("configure_optimizers")
        if method is None or not isinstance(method.node, ast.FunctionDef):
            continue
        built = [c for c in optimizers(project) if c.scope is method]
        if built and not any(v is not None for v in method.returns):
            text = "configure_optimizers returns nothing: the run has no optimizer"
            yield sighting(__name__, (method.node, method), text, proof=built[:1], fix=Fix("return the optimizer"))
