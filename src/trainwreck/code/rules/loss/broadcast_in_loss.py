"""Prediction of shape (N, 1) against targets of shape (N,).

What: the last layer gives one column that is never squeezed, and the targets have no such column.
Why it matters: an element-wise loss broadcasts both to (N, N); the model learns the mean of the targets.
When it is fine: where both have the same shape.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.flow import back
from trainwreck.code.order import constructors
from trainwreck.code.project import Project
from trainwreck.code.rank import rank
from trainwreck.code.rehearsal.misfits import clashes
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.broadcasts import broadcast
from trainwreck.code.rehearsal.questions.judged_shapes import errors_of_all_pairs
from trainwreck.code.rehearsal.questions.spread_columns import all_with_all
from trainwreck.code.rule import guess, sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import dataset_classes, loss_kind, losses, modules
from trainwreck.code.spine import ends
from trainwreck.code.surface import Surface
from trainwreck.code.values import number
from trainwreck.core.evidence import Evidence

BAD = (
    """
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    def forward(self, x):
        return self.net(x)  # expect
def main(x):
    rng = np.random.default_rng(0)
    y = torch.tensor(rng.normal(0, 1, 500), dtype=torch.float32)
    model, criterion = Net(), nn.MSELoss()
    for xb, yb in DataLoader(TensorDataset(x, y), batch_size=10):
        criterion(model(xb), yb).backward()
""",
    """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
class Data(Dataset):
    def __init__(self, n):
        self.y = torch.randn(n)
    def __getitem__(self, i):
        return self.x[i], self.y[i]  # expect
def main():
    model = nn.Linear(8, 1)
    for x, y in DataLoader(Data(100), batch_size=10):
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
""",
    """
import torch, torch.nn as nn, torch.nn.functional as F
def step(n=64):
    net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
    x = torch.rand(64, 3)
    y = x.sum(1)
    out = net(x)
    F.l1_loss(out, y).backward()  # expect
""",
)
GOOD = """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
class Data(Dataset):
    def __init__(self, n):
        self.y = torch.randn(n)
    def __getitem__(self, i):
        return self.x[i], self.y[i : i + 1]
class Plain(Data):
    def __getitem__(self, i):
        return self.x[i], self.y[i]
def main():
    model = nn.Linear(8, 1)
    for x, y in DataLoader(Data(100), batch_size=10):
        nn.functional.mse_loss(model(x), y).backward()
    for x, t in DataLoader(Plain(100), batch_size=10):
        nn.functional.mse_loss(model(x).squeeze(1), t).backward()
        nn.functional.mse_loss(model(x), t.unsqueeze(1)).backward()
"""
ELEMENTWISE = {"mse", "l1", "smoothl1", "huber"}
"""Losses that broadcast; the binary cross entropies refuse other shapes."""
SHAPING = ("squeeze", "flatten", "view", "reshape", "[:, 0]", "[..., 0]", "ravel", "mean(", "sum(")


def find(project: Project) -> Iterator[Evidence]:
    rehearsed = list(answers(__name__, project, broadcast)) or list(answers(__name__, project, all_with_all))
    rehearsed = rehearsed or list(answers(__name__, project, errors_of_all_pairs))
    found = list(_written(project, {e.where.line for e in rehearsed}))
    yield from found or rehearsed


def _written(project: Project, lines: set[int | None]) -> Iterator[Evidence]:
    """``lines``: where the rehearsal would put the two sides right. Of a loss that is among them, the targets have the
    shape that the rest of the program expects of them."""
    told: set[int] = set()
    for loss in losses(project):
        prediction, target = loss.argument("input", 0), loss.argument("target", 1)
        if prediction is None or target is None or not loss_kind(project, loss) & ELEMENTWISE:
            continue
        if rank(project, target, loss.scope) != 1:
            continue
        found = ends(project, prediction, loss.scope, reshapes=False)
        columns = [(n, s) for n, s in found if isinstance(n, ast.Call) and one_column(project, Call(n, s))]
        if columns and len(columns) == len(found):
            here = getattr(loss.node, "lineno", None) in lines
            there = None if here else _place(project, loss, target) or _handed_out(columns[0])
            place: tuple[ast.AST, Scope] = there or (loss.node, loss.scope)
            if id(place[0]) not in told:
                told |= {id(place[0]), id(loss.node)}
                text = "the prediction has one column, the targets have none: the loss compares each with every other"
                yield sighting(__name__, place, text, proof=[loss])
    for clash in clashes(project, "loss-broadcast"):
        node = clash.place.node if isinstance(clash.place, Call) else clash.place[0]
        if id(node) not in told:
            yield sighting(__name__, clash.place, clash.text, proof=clash.by)


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    for loss in losses(project):
        target = loss.argument("target", 1)
        place = _place(project, loss, target) if target is not None else None
        if place is not None:
            yield guess(__name__, place, "one target of a sample gets its shape here", [loss])
            return
    for owner in modules(project):
        forward = owner.method("forward")
        for value in forward.returns if forward is not None else ():
            if value is not None and forward is not None and not any(s in written(value) for s in SHAPING):
                yield guess(__name__, (value, forward), "the prediction gets its shape here")
                return


def one_column(project: Project, call: Call) -> bool:
    """True for the call of a ``Linear`` (or a stack that ends in one) with one output."""
    made = [call] if call.name == "Linear" else list(constructors(project, call.node.func, call.scope))
    for layer in made:
        if layer.name == "Sequential" and layer.node.args and isinstance(layer.node.args[-1], ast.Call):
            layer = Call(layer.node.args[-1], layer.scope)
        if layer.name == "Linear":
            return number(project, layer.argument("out_features", 1), layer.scope) == 1
    return False


def _handed_out(column: tuple[ast.expr, Scope]) -> tuple[ast.AST, Scope]:
    """Where the network hands the column out: the return of its ``forward``, else the layer."""
    owner = column[1].owner
    forward = owner.method("forward") if owner is not None else None
    value = next((v for v in forward.returns if v is not None), None) if forward is not None else None
    return (value, forward) if value is not None and forward is not None else column


def _place(project: Project, loss: Call, target: ast.expr) -> tuple[ast.AST, Scope] | None:
    """Where a data set of the project gives one target its shape."""
    owners = dataset_classes(project)
    for step in back(project, target, loss.scope):
        if step.scope.name == "__getitem__" and step.scope.owner in owners:
            return step.node, step.scope
    return None
