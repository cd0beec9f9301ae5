"""Epoch-end hooks that Lightning 2 does not call.

What: `training_epoch_end`, `validation_epoch_end` or `test_epoch_end` in a LightningModule.
Why it matters: Lightning 2 raises NotImplementedError when the trainer starts.
When it is fine: with Lightning 1, and where the class calls the method itself from the new hook.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.outdated import grade
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.targets import aim
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

WORDS = ("ightning",)
BAD = """
import pytorch_lightning as pl
class Net(pl.LightningModule):
    def training_step(self, batch, k):
        return batch.mean()
    def validation_epoch_end(self, outputs):  # expect
        self.log("loss", sum(outputs))
"""
GOOD = """
import lightning as L
class Net(L.LightningModule):
    def on_validation_epoch_end(self):
        self.log("loss", 0.0)
class Plain:
    def validation_epoch_end(self, outputs):
        return outputs
"""


HOOKS = ("training_epoch_end", "validation_epoch_end", "test_epoch_end")


def find(project: Project) -> Iterator[Evidence]:
    for owner in project.classes:
        hooks = [method for name in HOOKS if (method := owner.method(name)) is not None]
        if not hooks or not any("lightning" in n and n.endswith("LightningModule") for n in project.base_names(owner)):
            continue
        where = aim(project, "lightning", owner.module.path)
        if where is None or where.newest[0] < 0:
            continue
        pinned = where.pin is not None and all(low >= 0 for low, _ in where.allowed)
        for method in hooks:
            new = f"on_{method.name}"
            text = (
                f"Lightning 2 calls no {method.name} and raises where one is defined; write {new} and keep the outputs"
            )
            fix = Fix(f"collect the outputs in a list of the module and read it in {new}(self)")
            place = (method.node, method)
            yield sighting(__name__, place, text, fix=fix, severity=grade(pinned))
