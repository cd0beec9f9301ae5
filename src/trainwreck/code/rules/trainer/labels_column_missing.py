"""The data of a Trainer have no column that the model takes as labels.

What: the class column is called something else ("intent", "target") and is never renamed to ``labels``.
Why it matters: the Trainer drops columns that ``forward`` does not take; the model returns no loss.
When it is fine: with ``label_names`` and a model that takes that name, or a collator that renames it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import last_name
from trainwreck.code.flow import Step, back
from trainwreck.code.project import Project
from trainwreck.code.rule import guess
from trainwreck.code.seek import trainers
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

SURFACES = (r"did not return a loss from the inputs", r"KeyError: '(labels?|loss)'", r"missing .* argument.*labels")
ERROR = "ValueError: The model did not return a loss from the inputs, only the following keys: logits."
BAD = """
from datasets import Dataset
from transformers import Trainer
def prepare(rows, tok):
    ds = Dataset.from_list(rows)
    ds = ds.map(lambda r: tok(r["text"]))
    return ds  # expect
def main(model, args, rows, tok):
    trainer = Trainer(model=model, args=args, train_dataset=prepare(rows, tok))
    trainer.train()  # fails
"""
GOOD = """
def main(model, args, rows):
    for row in rows:
        model(**row)  # fails
"""
SHAPING = ("map", "rename_column", "rename_columns", "remove_columns", "set_format", "select_columns", "with_format")
MAKING = ("from_list", "from_dict", "from_pandas", "load_dataset", "from_generator", "DataFrame", "Dataset")


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    for trainer in trainers(project, surface):
        data = trainer.argument("train_dataset")
        if data is None:
            continue
        steps = list(back(project, data, trainer.scope))
        for wanted in (_returned, _shaped, _made):
            for step in steps:
                if wanted(project, step):
                    yield guess(
                        __name__, step, "the columns of the data are settled here, none called labels", [trainer]
                    )
                    return


def _returned(project: Project, step: Step) -> bool:
    above = project.parent(step.node, step.scope)
    return isinstance(above, ast.Return) and step.scope.kind == "function" and step.depth > 0


def _shaped(project: Project, step: Step) -> bool:
    return isinstance(step.node, ast.Call) and last_name(step.node.func) in SHAPING


def _made(project: Project, step: Step) -> bool:
    return isinstance(step.node, ast.Call) and last_name(step.node.func) in MAKING
