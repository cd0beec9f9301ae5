"""The loss takes one class a sample where labels hold several, or the other way round (``problem_type``).

What: "multi_label_classification" with class indices, or "single_label_classification" with one column per label; a
softmax over the classes in a loop of one's own, where each class of a row is decided for itself.
Why it matters: the model computes another loss, which refuses the shape or type of the labels.
When it is fine: where labels are floats of shape (N, C) for multi-label, integers of shape (N,) for single-label.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.facts import only, option
from trainwreck.code.huggingface import holder, model_loads, text_has, trainer_calls
from trainwreck.code.labels import classes_in, label_values
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.several_labels import classes_compete
from trainwreck.code.rule import guess, sighting
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence
from trainwreck.core.fix import Fix

SURFACES = (
    r"Target size \(torch\.Size|must be the same as input size|Using a target size",
    r"result type Float can't be cast|Found dtype (Long|Int) but expected Float|expected scalar type",
    r"multi-target not supported|Expected input batch_size|Expected floating point type for target",
)
ERROR = "ValueError: Target size (torch.Size([16])) must be the same as input size (torch.Size([16, 4]))"
LABELS = ("label", "labels", "label_ids")
BAD = (
    """
from transformers import BertConfig, BertForSequenceClassification, Trainer
def main(args, data):
    config = BertConfig(num_labels=4, problem_type="multi_label_classification")  # expect
    trainer = Trainer(model=BertForSequenceClassification(config), args=args, train_dataset=data)
    trainer.train()  # fails
""",
    """
from transformers import BertConfig, BertForSequenceClassification, Trainer
def row(text, names, name):
    return {"text": text, "label": float(names.index(name))}  # expect
def main(args, data):
    trainer = Trainer(model=BertForSequenceClassification(BertConfig(num_labels=4)), args=args, train_dataset=data)
    trainer.train()  # fails
""",
    """
from transformers import BertConfig, BertForSequenceClassification, Trainer
NAMES = ["a", "b", "c"]
def row(text, name):
    return {"text": text, "label": float(NAMES.index(name))}  # expect
def main(args, data):
    Trainer(model=BertForSequenceClassification(BertConfig(num_labels=3)), args=args, train_dataset=data).train()
""",
)
GOOD = (
    """
from transformers import BertConfig, BertForSequenceClassification, Trainer
def main(args, data):
    trainer = Trainer(model=BertForSequenceClassification(BertConfig(num_labels=4)), args=args, train_dataset=data)
    trainer.train()  # fails
""",
    """
from transformers import BertConfig, BertForSequenceClassification, Trainer
NAMES = ["a", "b"]
def row(text, name):
    return {"text": text, "label": NAMES.index(name), "score": float(NAMES.index(name))}
def main(args, data):
    Trainer(model=BertForSequenceClassification(BertConfig(num_labels=2)), args=args, train_dataset=data).train()
""",
    """
from transformers import BertConfig, BertForSequenceClassification, Trainer
NAMES = ["1", "2", "3"]
def row(text, name):
    return {"text": text, "label": float(NAMES.index(name))}
def main(args, data):
    Trainer(model=BertForSequenceClassification(BertConfig(num_labels=1)), args=args, train_dataset=data).train()
""",
)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), classes_compete)


def _written(project: Project) -> Iterator[Evidence]:
    """Class indices that are turned into floats for a classifier with several classes and no ``problem_type``."""
    if text_has(project, "problem_type"):
        return
    heads = [c for c in model_loads(project) if holder(c).endswith("ForSequenceClassification")]
    if not heads or not trainer_calls(project) or any(_one_label(project, c) for c in _configurations(project)):
        return
    for value, scope in label_values(project):
        as_float = isinstance(value, ast.Call) and getattr(value.func, "id", "") == "float"
        if as_float and classes_in(project, value, scope) is not None:
            text = "class indices as floats make the classifier take them for one column per label"
            yield sighting(__name__, (value, scope), text, proof=heads[:1], fix=Fix("leave the labels whole numbers"))


def _configurations(project: Project) -> Iterator[Call]:
    for name, calls in project.calls_by_name.items():
        if name.endswith("Config") or name == "from_pretrained":
            yield from calls


def _one_label(project: Project, call: Call) -> bool:
    return only(project, option(project, call, "num_labels")) == 1


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    for calls in project.calls_by_name.values():
        for call in calls:
            for item in call.node.keywords:
                if item.arg == "problem_type":
                    yield guess(__name__, (item, call.scope), "problem_type is set here")
                    return
    for walked in project.walked.values():
        for scope in walked.scopes:
            for name, bindings in scope.bindings.items():
                if name.endswith(".problem_type"):
                    yield guess(__name__, (bindings[0].node, scope), "problem_type is set here")
                    return
    yield from _float_labels(project)


def _float_labels(project: Project) -> Iterator[Evidence]:
    """Where labels become floats: a single number a sample is then read as several labels."""
    for walked in project.walked.values():
        tree = walked.top.module.tree
        renamed = {
            str(call.args[0].value)
            for call in ast.walk(tree)
            if isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and call.func.attr == "rename_column"
            and len(call.args) == 2
            and all(isinstance(a, ast.Constant) for a in call.args)
            and isinstance(call.args[0], ast.Constant)
            and isinstance(call.args[1], ast.Constant)
            and call.args[1].value in LABELS
        }
        for node in ast.walk(tree):
            if not isinstance(node, ast.Dict):
                continue
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value in {*LABELS, *renamed} and _is_float(value):
                    yield guess(
                        __name__, (value, walked.top), "the label becomes a float here, which is read as multi-label"
                    )
                    return


def _is_float(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "float"
