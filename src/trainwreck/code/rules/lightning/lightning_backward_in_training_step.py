"""The training step optimises by hand while Lightning optimises too.

What: ``backward``, ``manual_backward`` or ``optimizer.step`` in ``training_step`` of a module with automatic
optimisation.
Why it matters: Lightning runs backward and step on what the method returns: the second backward fails, or each batch
is stepped twice; ``manual_backward`` raises.
When it is fine: with ``self.automatic_optimization = False``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.calls import Call, written
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
    def training_step(self, batch, i):
        loss = self(batch).mean()
        loss.backward()  # expect
        self.optimizers().step()
        return loss
""",
    """
import pytorch_lightning as pl
class Gan(pl.LightningModule):
    def training_step(self, batch, i):
        g, d = self.optimizers()
        self.manual_backward(self.loss(batch))  # expect
        g.step()
""",
)
GOOD = """
import lightning as L
class Net(L.LightningModule):
    def training_step(self, batch, i):
        penalty = self.grad(batch)
        return self(batch).mean() + penalty
class Hand(L.LightningModule):
    automatic_optimization = False
    def training_step(self, batch, i):
        self.manual_backward(self(batch).mean())
        self.optimizers().step()
"""


def find(project: Project) -> Iterator[Evidence]:
    for owner in lightning_modules(project):
        method = owner.method("training_step")
        if method is None or manual(project, owner) is not False:
            continue
        steps = calls_in(project, method, "backward", "manual_backward", "toggle_optimizer")
        steps += [c for c in calls_in(project, method, "step") if _optimizer(project, c)]
        first = min(steps, key=lambda c: c.line, default=None)
        if first is not None:
            text = f"{written(first.node.func)} in a training step that Lightning optimises itself"
            yield sighting(__name__, first, text, fix=Fix("self.automatic_optimization = False in __init__"))


def _optimizer(project: Project, call: Call) -> bool:
    if call.receiver is None:
        return False
    text = written(call.receiver)
    if "optimizers()" in text:
        return True
    bindings = project.bindings(call.receiver, call.scope)
    return any("optimizers()" in written(b.value) for b in bindings if b.value is not None)
