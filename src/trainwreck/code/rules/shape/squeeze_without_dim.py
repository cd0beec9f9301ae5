"""``squeeze()`` without an axis right before a loss or a metric.

What: the predictions go through ``.squeeze()`` with no axis on their way into a loss, and the loader can give a batch
of one sample (no ``drop_last``).
Why it matters: in a batch of one the batch axis goes as well: shapes no longer fit, or broadcast silently.
When it is fine: where the number of samples divides evenly, or with ``squeeze(-1)``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import only, option
from trainwreck.code.project import Project
from trainwreck.code.rehearsal import rehearsals
from trainwreck.code.rehearsal.questions.short_batches import leaves_one
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import LOADERS, is_module, is_training_loader, losses
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
from torch import nn
net = nn.Linear(4, 1)
loader = torch.utils.data.DataLoader(ds, batch_size=32, shuffle=True)
for x, y in loader:
    loss = nn.functional.binary_cross_entropy_with_logits(net(x).squeeze(), y)  # expect
    loss.backward()
""",
    """
import torch
from torch import nn
from torch.utils.data import DataLoader
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(3, 1)
    def forward(self, x):
        return self.f(x)
def train(ds):
    model, criterion = Net(), nn.MSELoss()
    for x, y in DataLoader(ds, 16, True):
        out = model(x).squeeze()  # expect
        criterion(out, y).backward()
""",
    """
import torch, torch.nn as nn
model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
train_loader = torch.utils.data.DataLoader(ds, 8, shuffle=True)
for x, y in train_loader:
    pred = torch.squeeze(model(x))  # expect
    nn.functional.l1_loss(pred, y).backward()
""",
)
GOOD = """
import torch
from torch import nn
net = nn.Linear(4, 1)
loader = torch.utils.data.DataLoader(ds, batch_size=32, shuffle=True, drop_last=True)
for x, y in loader:
    loss = nn.functional.mse_loss(net(x).squeeze(-1), y)
    loss = nn.functional.mse_loss(net(x).squeeze(), y)
    loss = nn.functional.mse_loss(net(x), y.squeeze())
    shown = net(x).squeeze()
"""


def find(project: Project) -> Iterator[Evidence]:
    training = [c for c in project.calls(*LOADERS) if is_training_loader(project, c)]
    if not training or any(only(project, option(project, c, "drop_last", 8)) not in (None, False) for c in training):
        return
    told: set[int] = set()
    for loss in losses(project):
        for value in loss.node.args[:1]:
            call = _squeeze(project, value, loss.scope)
            if call is None or id(call.node) in told:
                continue
            told.add(id(call.node))
            text = "in a batch of one sample this removes the batch axis as well"
            surely = any(leaves_one(run, call.node) for run in rehearsals(project))
            yield sighting(__name__, call, text, proof=[training[0]], severity=None if surely else "suggestion")


def _squeeze(project: Project, node: ast.expr, scope: Scope) -> Call | None:
    """``f(x).squeeze()`` or ``torch.squeeze(f(x))`` of a network, behind one name at most."""
    if isinstance(node, ast.Name):
        found = [b for b in project.lookup(node.id, scope) if b.kind == "assign" and not b.path]
        if len(found) != 1 or found[0].value is None or found[0].scope is not scope:
            return None
        node = found[0].value
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    call = Call(node, scope)
    if call.name != "squeeze":
        return None
    inner = node.args[0] if written(node.func) == "torch.squeeze" and len(node.args) == 1 else call.receiver
    bare = not node.args or written(node.func) == "torch.squeeze"
    if not bare or not isinstance(inner, ast.Call) or not isinstance(inner.func, ast.Name | ast.Attribute):
        return None
    return call if is_module(project, inner.func, scope) else None
