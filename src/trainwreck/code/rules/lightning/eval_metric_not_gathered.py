"""Each rank logs its own validation value, and rank 0's decides.

What: ``self.log("val_...", value)`` in ``validation_step`` without ``sync_dist=True``, with a Trainer on several
devices.
Why it matters: checkpoints and early stopping follow the value of one rank's share of the data.
When it is fine: on one device, and for objects of torchmetrics, which gather by themselves.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.facts import made, only, option
from trainwreck.code.lightning import calls_in, lightning_modules, trainers
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

WORDS = ("ightning",)
BAD = (
    """
import lightning as L
class Net(L.LightningModule):
    def validation_step(self, batch, i):
        loss = self.loss(batch)
        self.log("val_loss", loss)  # expect
trainer = L.Trainer(devices=4, strategy="ddp")
""",
)
GOOD = (
    """
import lightning as L
import torchmetrics
class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.acc = torchmetrics.Accuracy(task="binary")
    def training_step(self, batch, i):
        self.log("train_loss", self.loss(batch))
    def validation_step(self, batch, i):
        self.log("val_loss", self.loss(batch), sync_dist=True)
        self.log("val_acc", self.acc)
trainer = L.Trainer(devices=4)
""",
    """
import lightning as L
class Net(L.LightningModule):
    def validation_step(self, batch, i):
        self.log("val_loss", self.loss(batch))
trainer = L.Trainer(devices=1), L.Trainer(devices=gpus)
""",
)


def find(project: Project) -> Iterator[Evidence]:
    several = [t for t in trainers(project) if _count(only(project, option(project, t, "devices"))) > 1]
    if not several or len(several) != len(trainers(project)):
        return
    for owner in lightning_modules(project):
        method = owner.method("validation_step")
        for call in calls_in(project, method, "log") if method is not None else ():
            value = call.argument("value", 1)
            if value is None or call.open_ended or option(project, call, "sync_dist") or _metric(project, call, value):
                continue
            text = "each rank logs the mean of its own share; rank 0's decides on checkpoints"
            yield sighting(__name__, call, text, proof=several[:1], fix=Fix("sync_dist=True"), severity="warning")


def _count(value: object) -> int:
    if isinstance(value, tuple):
        return len(value)
    return value if isinstance(value, int) else int(value) if isinstance(value, str) and value.isdigit() else 0


def _metric(project: Project, call: Call, value: ast.expr) -> bool:
    """True for an object of torchmetrics, or what a call of ``self.something`` gives, which may be one."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        value = value.func.value if value.func.attr == "compute" else value
    makers = made(project, value, call.scope)
    return isinstance(value, ast.Attribute) or any("torchmetrics" in project.called(m) for m in makers)
