"""A schedule that follows a metric, and no metric is named.

What: ``configure_optimizers`` of Lightning returns ``ReduceLROnPlateau`` without ``"monitor"``.
Why it matters: a MisconfigurationException before the first step.
When it is fine: with ``"monitor"``, and in manual optimisation.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.facts import text_of
from trainwreck.code.lightning import calls_in, lightning_modules, manual
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
    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters())
        return [opt], [torch.optim.lr_scheduler.ReduceLROnPlateau(opt)]  # expect
""",
    """
import pytorch_lightning as pl
import torch
class Net(pl.LightningModule):
    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters())
        slow = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=3)  # expect
        return {"optimizer": opt, "lr_scheduler": slow}
""",
)
GOOD = """
import lightning as L
import torch
class Net(L.LightningModule):
    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters())
        slow = torch.optim.lr_scheduler.ReduceLROnPlateau(opt)
        return {"optimizer": opt, "lr_scheduler": slow, "monitor": "val_loss"}
class Hand(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters())
        return [opt], [torch.optim.lr_scheduler.ReduceLROnPlateau(opt)]
"""


def find(project: Project) -> Iterator[Evidence]:
    for owner in lightning_modules(project):
        method = owner.method("configure_optimizers")
        if method is None or manual(project, owner) is not False or "monitor" in text_of(project, method):
            continue
        for call in calls_in(project, method, "ReduceLROnPlateau"):
            text = "ReduceLROnPlateau is returned without the name of the metric that it follows"
            yield sighting(__name__, call, text, fix=Fix('"monitor": "val_loss"'))
