"""The training step gives Lightning nothing to learn from.

What: ``training_step`` of a module with automatic optimisation returns nothing, a number (``loss.item()``), a detached
loss, or a dict without "loss".
Why it matters: without a return the batch is skipped; a number or a dict without "loss" raises; a detached loss has no
graph.
When it is fine: in manual optimisation.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name
from trainwreck.code.lightning import lightning_modules, manual
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

WORDS = ("ightning",)
BAD = (
    """
import lightning as L
class Net(L.LightningModule):
    def training_step(self, batch, i):  # expect
        loss = self.criterion(self(batch[0]), batch[1])
        self.log("train_loss", loss)
""",
    """
import lightning as L
class Net(L.LightningModule):
    def training_step(self, batch, i):
        loss = self.criterion(self(batch[0]), batch[1])
        return loss.item()  # expect
""",
    """
import pytorch_lightning as pl
class Net(pl.LightningModule):
    def training_step(self, batch, i):
        loss = self.criterion(self(batch[0]), batch[1])
        return {"train_loss": loss, "log": {}}  # expect
""",
    """
import pytorch_lightning as pl
class Net(pl.LightningModule):
    def training_step(self, batch, i):
        loss = self.criterion(self(batch[0]), batch[1]).detach()
        return loss  # expect
""",
)
GOOD = """
import lightning as L
class Net(L.LightningModule):
    def training_step(self, batch, i):
        loss = self.criterion(self(batch[0]), batch[1])
        return {"loss": loss, "logits": loss.detach()}
class Hand(L.LightningModule):
    automatic_optimization = False
    def training_step(self, batch, i):
        self.manual_backward(self(batch).mean())
class Empty(L.LightningModule):
    def training_step(self, batch, i):
        if batch is None:
            return None
        return self.step(batch, "train")
class Base(L.LightningModule):
    def training_step(self, batch, i):
        raise NotImplementedError
"""


def find(project: Project) -> Iterator[Evidence]:
    for owner in lightning_modules(project):
        method = owner.method("training_step")
        if method is None or manual(project, owner) is not False or not isinstance(method.node, ast.FunctionDef):
            continue
        if project.find_method(owner, "training_step_end") is not None:
            continue
        body = method.node.body
        stub = len(body) <= 2 and not any(isinstance(n, ast.Call) for s in body for n in ast.walk(s))
        raises = any(isinstance(n, ast.Raise) for n in ast.walk(method.node))
        if not method.returns and not stub and not raises and not method.yields:
            text = "training_step returns nothing: Lightning skips every batch"
            yield sighting(__name__, (method.node, method), text, fix=Fix("return loss"))
        for value in method.returns:
            why = _useless(project, value, method) if value is not None else ""
            if why and value is not None:
                yield sighting(
                    __name__, (value, method), f"{why}: nothing can be learned from it", fix=Fix("return loss")
                )


def _useless(project: Project, node: ast.expr, scope: Scope) -> str:
    if isinstance(node, ast.Dict):
        keys = [k.value if isinstance(k, ast.Constant) else None for k in node.keys]
        return 'the dict has no entry "loss"' if keys and None not in keys and "loss" not in keys else ""
    if isinstance(node, ast.Name):
        bindings = [b for b in project.lookup(node.id, scope) if b.kind in ("assign", "augment")]
        value = bindings[0].value if len(bindings) == 1 and not bindings[0].path else None
        node = value if isinstance(value, ast.Call) else node
    if isinstance(node, ast.Call) and Call(node, scope).receiver is not None:
        name = last_name(node.func)
        if name == "item" and not node.args:
            return "item() gives a plain number back"
        if name == "detach" and not node.args:
            return "detach() cuts the loss from the network"
    return ""
