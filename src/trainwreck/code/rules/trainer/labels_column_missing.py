"""The data of a Trainer have no column that the model takes as labels.

What: the class column is called something else ("intent", "target") and is never renamed to ``labels``.
Why it matters: the Trainer drops columns that ``forward`` does not take; the model returns no loss.
When it is fine: with ``label_names`` and a model that takes that name, or a collator that renames it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import last_name
from trainwreck.code.facts import complete, made_names
from trainwreck.code.flow import Step, back
from trainwreck.code.huggingface import holder, loaded_by, model_loads, text_has, trainer_calls, trainer_option
from trainwreck.code.labels import LABELS
from trainwreck.code.project import Project
from trainwreck.code.rule import guess, sighting
from trainwreck.code.seek import trainers
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

SURFACES = (r"did not return a loss from the inputs", r"KeyError: '(labels?|loss)'", r"missing .* argument.*labels")
ERROR = "ValueError: The model did not return a loss from the inputs, only the following keys: logits."
BAD = (
    """
from datasets import Dataset
from transformers import Trainer
def prepare(rows, tok):
    ds = Dataset.from_list(rows)
    ds = ds.map(lambda r: tok(r["text"]))
    return ds  # expect
def main(model, args, rows, tok):
    trainer = Trainer(model=model, args=args, train_dataset=prepare(rows, tok))
    trainer.train()  # fails
""",
    """
from datasets import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer
def prepare(rows, tok):
    data = Dataset.from_list(rows)
    data = data.map(lambda r: tok(r["text"], truncation=True))
    return data  # expect
def main(args, tok):
    rows = [{"text": t, "topic": k} for t, k in items()]
    model = BertForSequenceClassification(BertConfig(hidden_size=8))
    Trainer(model=model, args=args, train_dataset=prepare(rows, tok)).train()
""",
)
GOOD = (
    """
def main(model, args, rows):
    for row in rows:
        model(**row)  # fails
""",
    """
from datasets import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer
def main(args, tok):
    rows = [{"text": t, "topic": k} for t, k in items()]
    data = Dataset.from_list(rows).map(lambda r: tok(r["text"])).rename_column("topic", "labels")
    Trainer(model=BertForSequenceClassification(BertConfig()), args=args, train_dataset=data).train()
""",
    """
from datasets import load_dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer
def main(args, tok):
    data = load_dataset("imdb", split="train").map(lambda r: tok(r["text"]))
    Trainer(model=BertForSequenceClassification(BertConfig()), args=args, train_dataset=data).train()
""",
)
SHAPING = ("map", "rename_column", "rename_columns", "remove_columns", "set_format", "select_columns", "with_format")
MAKING = ("from_list", "from_dict", "from_pandas", "load_dataset", "from_generator", "DataFrame", "Dataset")


def find(project: Project) -> Iterator[Evidence]:
    """Rows that the program writes out itself, a model with a head, and no column of theirs is ever called labels."""
    if text_has(project, "label_names", "compute_loss") or _named(project):
        return
    for trainer in trainer_calls(project):
        data, model = trainer_option(project, trainer, "train_dataset"), trainer_option(project, trainer, "model")
        collator = trainer_option(project, trainer, "data_collator")
        if trainer.name != "Trainer" or data is None or model is None or not complete(project, trainer):
            continue
        if collator is not None and not made_names(project, *collator) & {
            "DataCollatorWithPadding",
            "default_data_collator",
        }:
            continue
        load = loaded_by(project, *model, model_loads(project))
        steps = list(back(project, *data)) if load is not None and holder(load).endswith(HEADS) else []
        if not any(
            isinstance(s.node, ast.Call) and last_name(s.node.func) in ("from_list", "from_dict") for s in steps
        ):
            continue
        if any(isinstance(s.node, ast.Call) and last_name(s.node.func) == "load_dataset" for s in steps):
            continue
        place = next((s for wanted in (_returned, _shaped, _made) for s in steps if wanted(project, s)), None)
        if place is not None:
            text = "no column of these data is called labels, so the model returns no loss"
            yield sighting(__name__, place, text, proof=[trainer], fix=Fix('data.rename_column("...", "labels")'))


def _named(project: Project) -> bool:
    """True if anything is called a label: a column, a keyword."""
    for walked in project.walked.values():
        if "label" in walked.top.module.text:
            for node in walked.parents:
                if isinstance(node, ast.Constant) and node.value in LABELS:
                    return True
                if isinstance(node, ast.keyword) and node.arg in LABELS:
                    return True
    return False


HEADS = ("ForSequenceClassification", "ForTokenClassification")


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
