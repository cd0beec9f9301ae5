"""Class labels are numbered so that one of them has no output of the model.

What: the labels of a classification loss come from an enumeration that starts at 1, from an id plus an offset, from
a literal mapping or a random range that reaches the number of classes.
Why it matters: the loss indexes the logits with the label; one beyond the last is an IndexError on the CPU and an
asynchronous assert on a GPU.
When it is fine: where the model has one output more (a background class).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name
from trainwreck.code.flow import Step, back
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.classes import beyond
from trainwreck.code.rule import guess
from trainwreck.code.seek import CONVERSIONS, Value, dataset_classes, targets
from trainwreck.code.surface import Surface
from trainwreck.code.values import values
from trainwreck.core.evidence import Evidence

SURFACES = (
    r"Target -?\d+ is out of bounds",
    r"cur_target >= 0|t >= 0 && t < n_classes|n_classes",
    r"device-side assert",
    r"Class values must be (smaller than num_classes|non-negative)",
)
ERROR = "IndexError: Target 3 is out of bounds."
BAD = (
    """
import torch
from torch import nn
NAMES = ["a", "b", "c"]
index = {name: i for i, name in enumerate(NAMES, 1)}  # expect
def train(model, rows):
    criterion = nn.CrossEntropyLoss()
    for x, name in rows:
        y = torch.tensor([index[name]])
        loss = criterion(model(x), y)  # fails
""",
    """
import torch.nn.functional as F
class Data:
    def __getitem__(self, i):
        return self.x[i], self.ids[i] + 1  # expect
def train(model):
    data = Data()
    for i in range(10):
        x, y = data[i]
        F.cross_entropy(model(x), y)  # fails
""",
)
GOOD = """
import torch
NAMES = ["a", "b", "c"]
index = {name: i for i, name in enumerate(NAMES)}
def train(model, rows):
    for x, name in rows:
        loss = torch.nn.functional.cross_entropy(model(x), torch.tensor([index[name]]))  # fails
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from answers(__name__, project, beyond)


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    asked = targets(project, surface)
    for check in (_shifted, _ranged, _mapped):
        for node, scope in asked:
            for step in back(project, node, scope):
                text = check(project, step)
                if text:
                    yield guess(__name__, step, f"the labels come from here: {text}", step.chain()[1:4])
                    return
    size = _written_size(project)
    if size is not None:
        yield guess(__name__, size, "the number of outputs of the model is written here as a plain number")


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    asked = targets(project, surface) if surface is not None else []
    owners = dataset_classes(project)
    for node, scope in asked:
        for step in back(project, node, scope):
            if step.scope.owner in owners and isinstance(step.node, ast.Call | ast.BinOp | ast.ListComp | ast.DictComp):
                yield guess(__name__, step, "the labels are made here")
                return
    for node, scope in asked:
        for step in back(project, node, scope):
            if isinstance(step.node, ast.Call) and last_name(step.node.func) in CONVERSIONS:
                yield guess(__name__, step, "the labels are made here")
                return
    for step in (s for node, scope in asked for s in back(project, node, scope)):
        if step.scope.name == "__getitem__":
            yield guess(__name__, step, "the labels are read here")
            return


def _shifted(project: Project, step: Step) -> str:
    node = step.node
    if isinstance(node, ast.Call) and last_name(node.func) == "enumerate":
        start = Call(node, step.scope).argument("start", 1)
        if any(isinstance(k.value, int) and k.value != 0 for k in values(project, start, step.scope)):
            return "enumerate that does not start at 0"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        for side in (node.left, node.right):
            if isinstance(side, ast.Constant) and isinstance(side.value, int) and side.value >= 1:
                return f"{side.value} is added to the class index"
    return ""


def _ranged(project: Project, step: Step) -> str:
    node = step.node
    if not isinstance(node, ast.Call):
        return ""
    name, call = last_name(node.func), Call(node, step.scope)
    if name == "range" and len(node.args) >= 2 and any(k.value == 1 for k in values(project, node.args[0], step.scope)):
        return "a range that starts at 1"
    if name in ("randint", "integers", "randrange") and len(node.args) >= 2:
        low = call.argument("low", 0)
        if any(k.value == 1 for k in values(project, low, step.scope)):
            return "random class numbers that start at 1"
    return ""


def _mapped(project: Project, step: Step) -> str:
    node = step.node
    items = node.values if isinstance(node, ast.Dict) else node.elts if isinstance(node, ast.List | ast.Tuple) else []
    found = [i.value for i in items if isinstance(i, ast.Constant) and type(i.value) is int]
    if len(found) >= 2 and len(found) == len(items) and (max(found) >= len(set(found)) or min(found) < 0):
        return f"class numbers up to {max(found)} for {len(set(found))} classes"
    return ""


def _written_size(project: Project) -> Value | None:
    for name, calls in project.calls_by_name.items():
        for call in calls:
            for item in call.node.keywords:
                counts = item.arg in ("num_classes", "n_classes", "num_labels", "classes", "n_labels")
                if counts and isinstance(item.value, ast.Constant) and name != "one_hot":
                    return item.value, call.scope
    return None
