"""The model's ``num_labels`` is a plain number that the labels do not fit.

What: ``num_labels`` (or the default 2 of a sequence classifier) is smaller than the number of classes in the data.
Why it matters: the first label beyond it stops the loss, or with 1 turns classification into regression.
When it is fine: where the data really have that many classes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.project import Project
from trainwreck.code.rule import guess
from trainwreck.code.seek import keyword_place
from trainwreck.code.surface import Surface
from trainwreck.code.values import values
from trainwreck.core.evidence import Evidence

SURFACES = (
    r"Target -?\d+ is out of bounds",
    r"n_classes|cur_target",
    r"device-side assert",
    r"Target size \(torch\.Size|must be the same as input size|Using a target size",
)
ERROR = "IndexError: Target 3 is out of bounds."
BAD = """
from transformers import AutoModelForSequenceClassification, Trainer
def main(data):
    model = AutoModelForSequenceClassification.from_pretrained(
        "bert-base-uncased",
        num_labels=2,  # expect
    )
    trainer = Trainer(model=model, train_dataset=data)
    trainer.train()  # fails
"""
GOOD = """
from transformers import AutoModelForSequenceClassification, Trainer
LABELS = ["a", "b", "c"]
def main(data):
    model = AutoModelForSequenceClassification.from_pretrained("bert-base-uncased", num_labels=len(LABELS))
    trainer = Trainer(model=model, train_dataset=data)
    trainer.train()  # fails
"""


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    for call in _models(project):
        place = keyword_place(call, "num_labels")
        if place is None:
            continue
        value = call.argument("num_labels")
        known = values(project, value, call.scope)
        if isinstance(value, ast.Constant) or (known and all(len(k.proof) <= 2 for k in known) and not _counted(value)):
            yield guess(__name__, place, f"num_labels is set to {known[0].value if known else '?'} here")
            return
    for call in _models(project):
        given = call.argument("num_labels") or call.open_ended or _has_config(call)
        if "ForSequenceClassification" in project.called(call) and not given:
            yield guess(__name__, call, "num_labels is not given, so the classifier gets the default 2")
            return


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    for call in _models(project):
        place = keyword_place(call, "num_labels")
        if place is not None:
            yield guess(__name__, place, "num_labels is set here")
            return


def _models(project: Project) -> Iterator[Call]:
    for name, calls in project.calls_by_name.items():
        if name in ("from_pretrained", "from_config") or name.endswith(("Config", "Classification")):
            yield from calls


def _counted(value: ast.expr | None) -> bool:
    return any(isinstance(n, ast.Call) for n in ast.walk(value)) if value is not None else False


def _has_config(call: Call) -> bool:
    return bool(call.argument("config")) or (call.name != "from_pretrained" and bool(call.node.args))
