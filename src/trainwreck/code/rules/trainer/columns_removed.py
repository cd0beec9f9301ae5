"""The Trainer removed columns that the collator or the model's own code needs.

What: ``remove_unused_columns`` is on by default; only columns that ``forward`` names survive.
Why it matters: the collator misses its keys, or nothing is left at all.
When it is fine: where the names of the columns are those of ``forward``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rule import guess
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import keyword_place, trainers, training_arguments
from trainwreck.code.surface import Surface
from trainwreck.code.values import is_false
from trainwreck.core.evidence import Evidence

SURFACES = (
    r"No columns in the dataset match the model's forward",
    r"KeyError",
    r"missing \d+ required positional argument",
    r"IndexError: Invalid key|index \d+ is out of bounds for size 0",
    r"should provide an encoding|must provide|You have to specify",
)
ERROR = "KeyError: 'pixels'"
BAD = """
from transformers import Trainer, TrainingArguments
def collate(rows):
    return {"x": [r["pixels"] for r in rows]}  # fails
def main(model, data):
    args = TrainingArguments(output_dir="out")  # expect
    Trainer(model=model, args=args, train_dataset=data, data_collator=collate).train()
"""
GOOD = """
from transformers import Trainer, TrainingArguments
def collate(rows):
    return {"x": [r["pixels"] for r in rows]}  # fails
def main(model, data):
    args = TrainingArguments(output_dir="out", remove_unused_columns=False)
    Trainer(model=model, args=args, train_dataset=data, data_collator=collate).train()
"""


def _forwards(project: Project) -> Iterator[tuple[Scope, ast.FunctionDef]]:
    for walked in project.walked.values():
        for node in ast.walk(walked.top.module.tree):
            if isinstance(node, ast.FunctionDef) and node.name == "forward":
                yield walked.top, node


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    if not trainers(project) or "metric_for_best_model" in surface.message:
        return
    told = re.search(r"forward method signature: \(([^)]*)\)", surface.message)
    if told is not None:
        taken = {name.strip() for name in told[1].split(",")} - {"label", "label_ids", "labels"}
        for scope, node in _forwards(project):
            names = {a.arg for a in (*node.args.args, *node.args.kwonlyargs)} - {"self"}
            names |= {node.args.kwarg.arg} if node.args.kwarg else set()
            if names and names == taken:
                yield guess(__name__, (node, scope), "this forward names none of the columns, so all are dropped")
                return
    for call in training_arguments(project):
        if call.argument("remove_unused_columns") is None and not call.open_ended:
            yield guess(__name__, call, "remove_unused_columns is not given, so it is on")
            return
        place = keyword_place(call, "remove_unused_columns")
        if place is not None and not is_false(call.argument("remove_unused_columns")):
            yield guess(__name__, place, "columns are removed because of this")
            return
