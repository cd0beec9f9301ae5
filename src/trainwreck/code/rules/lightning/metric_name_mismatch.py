"""A callback of Lightning watches a value that nobody logs.

What: ``monitor`` of ``ModelCheckpoint`` or ``EarlyStopping`` (or of a scheduler) is no name that ``self.log`` or
``log_dict`` gives.
Why it matters: a MisconfigurationException at the end of the first epoch.
When it is fine: where names are put together while running, or logged by another class.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.facts import only, option
from trainwreck.code.lightning import ROOTS, lightning_modules
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import keyword_place
from trainwreck.code.values import values
from trainwreck.core.evidence import Evidence

WORDS = ("ightning",)
BAD = (
    """
import lightning as L
from lightning.pytorch.callbacks import ModelCheckpoint
class Net(L.LightningModule):
    def training_step(self, batch, i):
        return self.loss(batch)
    def validation_step(self, batch, i):
        self.log("valid_loss", self.loss(batch))
keep = ModelCheckpoint(monitor="val_loss")  # expect
""",
    """
import pytorch_lightning as pl
from pytorch_lightning.callbacks import EarlyStopping
class Net(pl.LightningModule):
    def step(self, batch, name):
        self.log(f"{name}_acc", 1.0)
    def validation_step(self, batch, i):
        self.step(batch, "val")
stop = EarlyStopping("val_accuracy", patience=3)  # expect
""",
)
GOOD = (
    """
import lightning as L
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
class Net(L.LightningModule):
    def validation_step(self, batch, i):
        self.log("val/loss", 1.0)
        self.log_dict({"val/acc": 0.5, "val/f1": 0.4})
    def training_step(self, batch, i):
        self.log("train_loss", 1.0, on_step=True, on_epoch=True)
a = ModelCheckpoint(monitor="val/loss"), EarlyStopping("val/f1"), ModelCheckpoint(monitor="train_loss_epoch")
b = ModelCheckpoint(), ModelCheckpoint(monitor=name), ModelCheckpoint(monitor="epoch"), ModelCheckpoint(monitor="step")
""",
    """
import lightning as L
from lightning.pytorch.callbacks import ModelCheckpoint
class Net(L.LightningModule):
    def validation_step(self, batch, i):
        for name, value in self.metrics.items():
            self.log(name, value)
keep = ModelCheckpoint(monitor="val_loss")
""",
)
ALWAYS = frozenset(["epoch", "step"])


def find(project: Project) -> Iterator[Evidence]:
    if not lightning_modules(project):
        return
    logged = _logged(project)
    if not logged:
        return
    for call in project.calls("ModelCheckpoint", "EarlyStopping", "LearningRateFinder"):
        if project.called(call).split(".")[0] not in ROOTS:
            continue
        name = only(project, option(project, call, "monitor", 0 if call.name == "EarlyStopping" else 2))
        if isinstance(name, str) and not any(_fits(p, name) for p in logged) and name not in ALWAYS:
            place = keyword_place(call, "monitor") if call.node.lineno != call.node.end_lineno else None
            shown = ", ".join(sorted(p.replace(".*", "*").replace("\\", "") for p in logged)[:5])
            text = f"nobody logs {name}; logged are {shown}"
            yield sighting(__name__, place or call, text)


def _fits(pattern: str, name: str) -> bool:
    return any(re.fullmatch(pattern, n) for n in (name, name.removesuffix("_epoch"), name.removesuffix("_step")))


def _logged(project: Project) -> set[str]:
    """Patterns of the names that are logged; empty where one of them can't be told at all."""
    found: set[str] = set()
    for call in project.calls("log", "log_dict", "log_metrics"):
        if call.name == "log" and call.scope.owner is None:
            continue
        node = call.argument("name", 0) if call.name == "log" else call.argument("dictionary", 0)
        keys = [node] if call.name == "log" else list(node.keys) if isinstance(node, ast.Dict) else [None]
        for key in keys:
            names = _names(project, key, call.scope) if key is not None else set()
            if not names:
                return set()
            found |= names
    return found


def _names(project: Project, node: ast.expr, scope: Scope) -> set[str]:
    if isinstance(node, ast.JoinedStr):
        parts = [re.escape(str(p.value)) if isinstance(p, ast.Constant) else "[^/]*?" for p in node.values]
        known = [_texts(project, p.value, scope) for p in node.values if isinstance(p, ast.FormattedValue)]
        if len(known) == 1 and known[0]:
            return {"".join(re.escape(t) if p.startswith("[") else p for p in parts) for t in known[0]}
        return {"".join(".*" if p.startswith("[") else p for p in parts)}
    if isinstance(node, ast.BinOp):
        left, right = ast.unparse(node.left), ast.unparse(node.right)
        fixed = [s.strip("'\"") if s[:1] in "'\"" else ".*" for s in (left, right)]
        return {"".join(re.escape(s) if s != ".*" else s for s in fixed)} if fixed != [".*", ".*"] else set()
    return {re.escape(t) for t in _texts(project, node, scope)}


def _texts(project: Project, node: ast.expr, scope: Scope) -> set[str]:
    return {k.value for k in values(project, node, scope) if isinstance(k.value, str)}
