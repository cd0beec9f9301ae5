"""The model's ``num_labels`` is a plain number that the labels do not fit.

What: ``num_labels`` (or the default 2 of a sequence classifier) is smaller than the number of classes in the data.
Why it matters: the first label beyond it stops the loss, or with 1 turns classification into regression.
When it is fine: where the data really have that many classes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call
from trainwreck.code.labels import classes_in, label_values
from trainwreck.code.project import Project
from trainwreck.code.rule import guess, sighting
from trainwreck.code.seek import keyword_place
from trainwreck.code.surface import Surface
from trainwreck.code.values import literal, number, values
from trainwreck.core.evidence import Evidence

SURFACES = (
    r"Target -?\d+ is out of bounds",
    r"n_classes|cur_target",
    r"device-side assert",
    r"Target size \(torch\.Size|must be the same as input size|Using a target size",
)
ERROR = "IndexError: Target 3 is out of bounds."
WORDS = ("num_labels",)
BAD = (
    """
from transformers import AutoModelForSequenceClassification, Trainer
def main(data):
    model = AutoModelForSequenceClassification.from_pretrained(
        "bert-base-uncased",
        num_labels=2,  # expect
    )
    trainer = Trainer(model=model, train_dataset=data)
    trainer.train()  # fails
""",
    """
from transformers import AutoModelForSequenceClassification
NAMES = {0: "neg", 1: "neutral", 2: "pos"}
model = AutoModelForSequenceClassification.from_pretrained(
    "bert-base-uncased",
    num_labels=2,  # expect
    id2label=NAMES,
)
""",
    """
from transformers import AutoModelForTokenClassification
TAGS = {"O": 0, "B": 1, "I": 2}
model = AutoModelForTokenClassification.from_pretrained("bert-base-uncased", num_labels=5, label2id=TAGS)  # expect
""",
    """
from transformers import BertConfig, BertForSequenceClassification
KINDS = {"buy": 1, "sell": 2, "hold": 3}
def rows(items):
    names = sorted(KINDS)
    return [{"text": t, "kind": names.index(k)} for t, k in items]
def main(data):
    data = data.rename_column("kind", "labels")
    return BertForSequenceClassification(BertConfig(hidden_size=8, num_labels=2))  # expect
""",
)
GOOD = (
    """
from transformers import AutoModelForSequenceClassification, Trainer
LABELS = ["a", "b", "c"]
def main(data):
    model = AutoModelForSequenceClassification.from_pretrained("bert-base-uncased", num_labels=len(LABELS))
    trainer = Trainer(model=model, train_dataset=data)
    trainer.train()  # fails
""",
    """
from transformers import AutoModelForTokenClassification
IDS = {"a": 0, "b": 1, "c": 2}
same = AutoModelForTokenClassification.from_pretrained("m", num_labels=3, label2id=IDS)
other = AutoModelForTokenClassification.from_pretrained("m", num_labels=n, label2id=IDS)
merged = AutoModelForTokenClassification.from_pretrained("m", num_labels=2, label2id={"a": 0, "b": 1, "c": 1})
""",
)


def find(project: Project) -> Iterator[Evidence]:
    """``num_labels`` beside names of labels of another number: transformers takes the names."""
    for call in _models(project):
        wanted = number(project, call.argument("num_labels"), call.scope)
        place = keyword_place(call, "num_labels")
        for name in ("id2label", "label2id"):
            node = call.argument(name)
            found = literal(project, node, call.scope) if node is not None else None
            count = _distinct(found[0], values_count=name == "label2id") if found is not None else None
            if wanted is None or place is None or count is None or count == wanted:
                continue
            text = f"num_labels is {wanted:g} and {name} has {count} labels"
            yield sighting(
                __name__, place, text, proof=[(found[1].module.path, found[0].lineno, name)] if found else ()
            )
            break

    yield from _by_index(project)


def _by_index(project: Project) -> Iterator[Evidence]:
    """``num_labels`` below the number of names that labels are the index in."""
    known = [c for v, s in label_values(project) if (c := classes_in(project, v, s)) is not None]
    if not known or len({c[0] for c in known}) != 1:
        return
    classes, name = known[0]
    for call in _models(project):
        wanted = number(project, call.argument("num_labels"), call.scope)
        place = keyword_place(call, "num_labels")
        if wanted is not None and place is not None and 1 < wanted < classes:
            yield sighting(
                __name__, place, f"num_labels is {wanted:g}, and labels are indices in {name} with {classes} names"
            )


def _distinct(node: ast.expr, *, values_count: bool) -> int | None:
    """How many different numbers a literal dict of labels has."""
    if not isinstance(node, ast.Dict):
        return None
    items = node.values if values_count else node.keys
    if not items or not all(isinstance(i, ast.Constant) for i in items):
        return None
    return len({i.value for i in items if isinstance(i, ast.Constant)})


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
