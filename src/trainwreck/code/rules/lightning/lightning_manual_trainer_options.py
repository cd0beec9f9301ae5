"""Options of the Trainer that manual optimisation does not know.

What: ``gradient_clip_val`` or ``accumulate_grad_batches`` of the Trainer for a module with
``automatic_optimization = False``.
Why it matters: a MisconfigurationException at the start.
When it is fine: with automatic optimisation; by hand with ``self.clip_gradients`` and a counter.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.facts import only, option
from trainwreck.code.lightning import fitted, lightning_modules, manual
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.seek import keyword_place
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

WORDS = ("ightning",)
BAD = (
    """
import lightning as L
class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
    def training_step(self, batch, i):
        self.manual_backward(self(batch).mean())
trainer = L.Trainer(gradient_clip_val=1.0)  # expect
trainer.fit(Net(), loader)
""",
)
GOOD = """
import lightning as L
class Net(L.LightningModule):
    def training_step(self, batch, i):
        return self(batch).mean()
class Hand(L.LightningModule):
    automatic_optimization = False
    def training_step(self, batch, i):
        self.manual_backward(self(batch).mean())
L.Trainer(gradient_clip_val=1.0, accumulate_grad_batches=4).fit(Net(), loader)
L.Trainer(max_epochs=3).fit(Hand(), loader)
L.Trainer(accumulate_grad_batches=1).fit(Hand(), loader)
"""


def find(project: Project) -> Iterator[Evidence]:
    for owner in lightning_modules(project):
        if manual(project, owner) is not True:
            continue
        for trainer in fitted(project, owner):
            clip = only(project, option(project, trainer, "gradient_clip_val"))
            steps = only(project, option(project, trainer, "accumulate_grad_batches"))
            clips = isinstance(clip, int | float) and clip > 0
            if clips or (isinstance(steps, int) and steps > 1):
                name = "gradient_clip_val" if clips else "accumulate_grad_batches"
                place = keyword_place(trainer, name) or trainer
                text = f"{name} does not go with the manual optimisation of {owner.name}: Lightning refuses"
                yield sighting(__name__, place, text, fix=Fix("do it in training_step"))
