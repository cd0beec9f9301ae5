"""An override of the trainer that does not take what newer releases pass.

What: `compute_loss` or `training_step` of a subclass of Trainer without `num_items_in_batch` (and without
`**kwargs`).
Why it matters: transformers hands the number of items over since 4.46: a TypeError at the first step.
When it is fine: where the project pins transformers below 4.46, or the override takes `**kwargs`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.outdated import grade
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import FunctionNode, Scope
from trainwreck.code.targets import aim
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

WORDS = ("compute_loss", "training_step", "transformers", "trl")
BAD = """
from transformers import Trainer
class Weighted(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False):  # expect
        return model(**inputs).loss
"""
GOOD = """
from transformers import Trainer
from mylib import Trainer as Own
class Weighted(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        return model(**inputs).loss
    def training_step(self, model, inputs, *args):
        return super().training_step(model, inputs, *args)
class Other(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        return model(**inputs).loss
class Mine(Own):
    def compute_loss(self, model, inputs, return_outputs=False):
        return model(**inputs).loss
"""


SINCE = (4, 46)
"""The release from which training_step passes num_items_in_batch (transformers pull 34198)."""
METHODS = {"compute_loss": "num_items_in_batch", "training_step": "num_items_in_batch"}
BASES = ("transformers.Trainer", "transformers.Seq2SeqTrainer", "transformers.trainer.Trainer")


def find(project: Project) -> Iterator[Evidence]:
    for owner in project.classes:
        methods = [m for name in METHODS if (m := owner.method(name)) is not None]
        if not methods or not any(n in BASES or n.startswith("trl.") for n in project.base_names(owner)):
            continue
        where = aim(project, "transformers", owner.module.path)
        if where is None or where.newest[0] < 0 or where.table.versions[where.newest[0]] < SINCE:
            continue
        pinned = where.pin is not None and all(i >= 0 and where.table.versions[i] >= SINCE for i, _ in where.allowed)
        for method in methods:
            if not _takes(method, METHODS[method.name]):
                text = f"{method.name} does not take num_items_in_batch, which Trainer passes since transformers 4.46"
                fix = Fix("add num_items_in_batch=None to its parameters")
                severity = grade(pinned)
                yield sighting(__name__, (method.node, method), text, fix=fix, severity=severity)


def _takes(method: Scope, name: str) -> bool:
    node = method.node
    if not isinstance(node, FunctionNode) or any("staticmethod" in ast.unparse(d) for d in node.decorator_list):
        return True
    room = 5 if method.name == "compute_loss" else 4
    return bool(node.args.kwarg or name in method.params or (node.args.vararg and method.name == "training_step")) or (
        method.name == "training_step" and len(method.positional) >= room
    )
