"""The inputs are normalised, the target of the same series is not.

What: a data set keeps a normalised copy of its values and hands out inputs from the copy and targets
from the raw values.
Why it matters: the loss starts at the square of the raw scale; the network spends its training on the offset.
When it is fine: where the loss or the last layer scales back.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.flow import back
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.forms import scaled_back_wrongly
from trainwreck.code.rehearsal.questions.scale import large_targets
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import dataset_classes
from trainwreck.core.evidence import Evidence

BAD = """
import torch
from torch.utils.data import Dataset
class Windows(Dataset):
    def __init__(self, values, mean, std):
        self.values = values
        self.scaled = (values - mean) / std
    def __getitem__(self, i):
        x = self.scaled[i : i + 8]
        y = self.values[i + 8]  # expect
        return torch.tensor(x), torch.tensor([y])
"""
GOOD = """
import torch
from torch.utils.data import Dataset
class Windows(Dataset):
    def __init__(self, values, mean, std):
        self.values, self.mean = values, mean
        self.scaled = (values - mean) / std
    def __getitem__(self, i):
        x = self.scaled[i : i + 8]
        y = self.scaled[i + 8]
        return torch.tensor(x), torch.tensor([y])
class Other(Dataset):
    def __init__(self, features, labels, mean, std):
        self.x = (features - mean) / std
        self.y = labels
    def __getitem__(self, i):
        return self.x[i], self.y[i]
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), large_targets, scaled_back_wrongly)


def _written(project: Project) -> Iterator[Evidence]:
    for owner in dataset_classes(project):
        getter = owner.method("__getitem__")
        scaled = _scaled(owner)
        if getter is None or not scaled:
            continue
        for value in getter.returns:
            if not isinstance(value, ast.Tuple) or len(value.elts) != 2:
                continue
            inputs, target = (_read(project, part, getter) for part in value.elts)
            for name, node in target.items():
                raw = [b for b in owner.attributes.get(name, ()) if b.value is not None and not b.path]
                copies = [n for n, source in scaled.items() if n in inputs and raw and source == written(raw[0].value)]
                if copies and name not in scaled and len(raw) == 1:
                    text = f"the inputs come from self.{copies[0]}, the target from the raw self.{name}"
                    yield sighting(__name__, (node, getter), text)


def _scaled(owner: Scope) -> dict[str, str]:
    """Attributes that are ``(v - m) / s``, and what ``v`` is."""
    found = {}
    for name, bindings in owner.attributes.items():
        value = bindings[0].value if len(bindings) == 1 else None
        divided = isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div)
        above = value.left if divided and isinstance(value, ast.BinOp) else None
        if isinstance(above, ast.BinOp) and isinstance(above.op, ast.Sub):
            found[name] = written(above.left)
    return found


def _read(project: Project, node: ast.expr, getter: Scope) -> dict[str, ast.AST]:
    """Attributes of self that a returned part reads, with the statement that reads them."""
    found: dict[str, ast.AST] = {}
    for step in back(project, node, getter):
        part = step.node
        if step.scope is getter and isinstance(part, ast.Attribute) and written(part.value) == "self":
            above = project.parent(part, getter)
            if isinstance(above, ast.Subscript):
                found.setdefault(part.attr, part)
    return found
