"""A schedule that is counted in batches steps once an epoch.

What: ``configure_optimizers`` of Lightning returns ``OneCycleLR`` or a warm-up schedule of transformers without
``"interval": "step"``.
Why it matters: Lightning steps schedules once an epoch by default: the warm-up never ends.
When it is fine: with ``"interval": "step"``, in manual optimisation, or where the numbers are epochs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import text_of
from trainwreck.code.lightning import calls_in, lightning_modules, manual
from trainwreck.code.pattern import pattern
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
        opt = torch.optim.AdamW(self.parameters(), lr=1e-3)
        total = self.trainer.estimated_stepping_batches
        schedule = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=1e-3, total_steps=total)  # expect
        return [opt], [schedule]
""",
    """
import pytorch_lightning as pl
from torch.optim import AdamW
from transformers import get_linear_schedule_with_warmup
class Net(pl.LightningModule):
    def configure_optimizers(self):
        opt = AdamW(self.parameters(), lr=1e-3)
        schedule = get_linear_schedule_with_warmup(opt, 500, 10000)  # expect
        return {"optimizer": opt, "lr_scheduler": schedule}
""",
)
GOOD = """
import lightning as L
import torch
class Net(L.LightningModule):
    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=1e-3)
        schedule = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=1e-3, total_steps=1000)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}
class Slow(L.LightningModule):
    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=1e-3)
        return [opt], [torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=10)]
class Epochs(L.LightningModule):
    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=1e-3)
        return [opt], [torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=1e-3, total_steps=self.trainer.max_epochs)]
class Hand(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=1e-3)
        return [opt], [torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=1e-3, total_steps=1000)]
"""
SCHEDULES = (
    "OneCycleLR",
    "get_linear_schedule_with_warmup",
    "get_cosine_schedule_with_warmup",
    "get_constant_schedule_with_warmup",
    "get_polynomial_decay_schedule_with_warmup",
)
EPOCHS = pattern(r"epoch")


def find(project: Project) -> Iterator[Evidence]:
    for owner in lightning_modules(project):
        method = owner.method("configure_optimizers")
        stepped = project.find_method(owner, "lr_scheduler_step") or project.find_method(owner, "optimizer_step")
        if method is None or manual(project, owner) is not False or stepped is not None:
            continue
        text = text_of(project, method)
        if "interval" in text or any(isinstance(n, ast.Starred) for n in ast.walk(method.node)):
            continue
        if not any(v is not None and not isinstance(v, ast.Call) for v in method.returns):
            continue
        for call in calls_in(project, method, *SCHEDULES):
            if not EPOCHS.search(_lengths(call)):
                says = f"{call.name} is counted in batches, and Lightning steps it once an epoch"
                fix = Fix('"lr_scheduler": {"scheduler": schedule, "interval": "step"}')
                yield sighting(__name__, call, says, fix=fix)


def _lengths(call: Call) -> str:
    """The arguments that give the length, as written (``epochs=`` with ``steps_per_epoch=`` are batches)."""
    if call.argument("steps_per_epoch") is not None:
        return ""
    return " ".join(written(v) for v in (*call.node.args[1:], *(k.value for k in call.node.keywords)))
