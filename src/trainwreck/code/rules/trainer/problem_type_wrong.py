"""``problem_type`` of a sequence classifier does not fit its labels.

What: "multi_label_classification" with class indices, or "single_label_classification" with one column per label.
Why it matters: the model computes another loss, which refuses the shape or type of the labels.
When it is fine: where labels are floats of shape (N, C) for multi-label, integers of shape (N,) for single-label.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rule import guess
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

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
)
GOOD = """
from transformers import BertConfig, BertForSequenceClassification, Trainer
def main(args, data):
    trainer = Trainer(model=BertForSequenceClassification(BertConfig(num_labels=4)), args=args, train_dataset=data)
    trainer.train()  # fails
"""


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
