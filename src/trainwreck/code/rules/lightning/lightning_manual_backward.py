"""Manual optimisation calls backward past Lightning.

What: ``loss.backward()`` in the training step of a module with ``automatic_optimization = False``.
Why it matters: precision plugins and strategies are skipped: no loss scale in fp16, no reduction in DeepSpeed.
When it is fine: in full precision on one device it gives the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.lightning import calls_in, lightning_modules, manual
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
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
        opt = self.optimizers()
        loss = self(batch).mean()
        opt.zero_grad()
        loss.backward()  # expect
        opt.step()
""",
)
GOOD = """
import lightning as L
class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
    def training_step(self, batch, i):
        opt = self.optimizers()
        opt.zero_grad()
        self.manual_backward(self(batch).mean())
        opt.step()
def plain(model, batch):
    model(batch).mean().backward()
"""


def find(project: Project) -> Iterator[Evidence]:
    for owner in lightning_modules(project):
        method = owner.method("training_step")
        if method is None or manual(project, owner) is not True:
            continue
        for call in calls_in(project, method, "backward"):
            if call.receiver is not None and written(call.receiver) != "self.fabric":
                text = "backward past Lightning: neither the loss scale nor the strategy sees it"
                fix = Fix(f"self.manual_backward({written(call.receiver)})")
                yield sighting(__name__, call, text, fix=fix)
