"""The target does not have the shape of the prediction.

What: a binary cross entropy gets one column of predictions (N, 1) and targets without that column (N,).
Why it matters: unlike the squared error it does not broadcast: the first batch raises.
When it is fine: with ``squeeze(1)`` on the prediction or ``unsqueeze(1)`` on the target.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name
from trainwreck.code.project import Project
from trainwreck.code.rank import rank
from trainwreck.code.rehearsal.misfits import clashes
from trainwreck.code.rule import sighting
from trainwreck.code.rules.loss.broadcast_in_loss import one_column
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import loss_kind, losses
from trainwreck.code.spine import ends
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    def forward(self, x):
        return self.net(x)
def main(x):
    y = torch.randint(0, 2, (500,)).float()
    model, criterion = Net(), nn.BCEWithLogitsLoss()
    for xb, yb in DataLoader(TensorDataset(x, y), batch_size=10):
        criterion(model(xb), yb).backward()  # expect
""",
    """
import torch
import torch.nn.functional as F
from torch import nn
model = nn.Linear(4, 1)
def step(x):
    y = torch.zeros(16)
    return F.binary_cross_entropy(torch.sigmoid(model(x)), y)  # expect
""",
)
GOOD = """
import torch
from torch import nn
def main(x):
    y = torch.zeros(16)
    model, criterion = nn.Linear(8, 1), nn.BCEWithLogitsLoss()
    criterion(model(x).squeeze(1), y).backward()
    criterion(model(x), y.unsqueeze(1)).backward()
    criterion(model(x)[:, 0], y).backward()
    criterion(model(x), torch.zeros(16, 1)).backward()
"""
BINARY = {"binarycrossentropy", "binarycrossentropywithlogits", "bce", "bcewithlogits"}


def find(project: Project) -> Iterator[Evidence]:
    for loss in losses(project):
        prediction, target = loss.argument("input", 0), loss.argument("target", 1)
        if prediction is None or target is None or not loss_kind(project, loss) & BINARY:
            continue
        if rank(project, target, loss.scope) != 1 or _one_row(target):
            continue
        found = ends(project, prediction, loss.scope, reshapes=False)
        columns = [_under(project, n, s) for n, s in found]
        if any(_over_samples(n) for n, _ in columns):
            continue
        if columns and all(isinstance(n, ast.Call) and one_column(project, Call(n, s)) for n, s in columns):
            text = "the prediction is a column (N, 1), the target has no column: this loss refuses it"
            yield sighting(__name__, loss, text, proof=[Call(n, s) for n, s in columns[:1] if isinstance(n, ast.Call)])
    for clash in clashes(project, "loss"):
        yield sighting(__name__, clash.place, clash.text, proof=clash.by)


def _one_row(target: ast.expr) -> bool:
    """True for ``labels[i : i + 1]``: the target of one sample, which may be given without an axis of samples."""
    part = target.slice if isinstance(target, ast.Subscript) else None
    if not isinstance(part, ast.Slice) or part.lower is None or not isinstance(part.upper, ast.BinOp):
        return False
    end = part.upper
    one = isinstance(end.right, ast.Constant) and end.right.value == 1
    return isinstance(end.op, ast.Add) and one and ast.unparse(end.left) == ast.unparse(part.lower)


def _over_samples(node: ast.expr) -> bool:
    """True for a layer that is given a sum or a mean along the first axis: what is left is one row, not a column."""
    for given in node.args if isinstance(node, ast.Call) else ():
        for inner in ast.walk(given):
            if isinstance(inner, ast.Call) and last_name(inner.func) in ("sum", "mean", "amax", "max", "median"):
                axes = [*inner.args, *(k.value for k in inner.keywords if k.arg in ("dim", "axis"))]
                if any(isinstance(a, ast.Constant) and a.value == 0 for a in axes):
                    return True
    return False


def _under(project: Project, node: ast.expr, scope: Scope) -> tuple[ast.expr, Scope]:
    """What a sigmoid is applied to."""
    if isinstance(node, ast.Call) and last_name(node.func) == "sigmoid":
        value = node.args[0] if node.args else node.func.value if isinstance(node.func, ast.Attribute) else None
        found = ends(project, value, scope, reshapes=False) if value is not None else []
        if len(found) == 1:
            return found[0]
    return node, scope
