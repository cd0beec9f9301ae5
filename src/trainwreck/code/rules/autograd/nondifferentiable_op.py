"""The prediction passes through an operation without a gradient.

What: ``argmax``, ``round``, a comparison or a cast to integers lies between the network and the loss that runs
backward.
Why it matters: no gradient passes; either ``backward()`` fails or the weights before it never change.
When it is fine: on targets and for metrics.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import (
    network,
)
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import losses
from trainwreck.code.spine import ends
from trainwreck.core.evidence import Evidence

BAD = (
    """
from torch import nn
def train(model, loader, optimizer):
    criterion = nn.MSELoss()
    for x, y in loader:
        pred = model(x).argmax(dim=1).float()  # expect
        loss = criterion(pred, y)
        loss.backward()
        optimizer.step()
""",
    """
import torch
import torch.nn.functional as F
def train(model, loader, optimizer):
    for x, y in loader:
        out = torch.round(torch.sigmoid(model(x)))  # expect
        F.binary_cross_entropy(out, y).backward()
        optimizer.step()
""",
    """
import torch.nn.functional as F
def train(model, loader, optimizer):
    for x, y in loader:
        pred = (model(x) > 0.5).float()  # expect
        loss = F.mse_loss(pred, y)
        loss.backward()
""",
)
GOOD = """
import torch
import torch.nn.functional as F
def train(model, loader, optimizer):
    for x, y in loader:
        out = model(x)
        loss = F.cross_entropy(out, y.argmax(dim=1))
        loss.backward()
        acc = (out.argmax(1) == y).float().mean()
        hard = out + (out.round() - out).detach()
        F.mse_loss(hard, y).backward()
def evaluate(model, loader):
    with torch.no_grad():
        for x, y in loader:
            mae = F.l1_loss(model(x).round(), y)
"""
DEAD = frozenset(
    ["argmax", "argmin", "round", "sign", "floor", "ceil", "long", "int", "bool", "argsort", "multinomial"]
)


def find(project: Project) -> Iterator[Evidence]:
    for call in project.calls("backward"):
        if call.receiver is None:
            continue
        for loss_node, scope in ends(project, call.receiver, call.scope, reshapes=False):
            if not isinstance(loss_node, ast.Call) or not any(loss_node is known.node for known in losses(project)):
                continue
            value = Call(loss_node, scope).argument("input", 0)
            found = ends(project, value, scope) if value is not None else []
            if len(found) != 1 or not _dead(project, *found[0]):
                continue
            text = "no gradient passes this operation, and it lies between the network and the loss"
            yield sighting(__name__, found[0], text, proof=[Call(loss_node, scope), call])


def _dead(project: Project, node: ast.expr, scope: Scope) -> bool:
    if isinstance(node, ast.Compare):
        operands = [node.left, *node.comparators]
    elif isinstance(node, ast.Call) and last_name(node.func) in DEAD and isinstance(node.func, ast.Attribute):
        operands = [node.func.value, *node.args]
    else:
        return False
    return any(
        isinstance(n, ast.Call) and _runs_network(project, n, scope) for o in operands for n in ast.walk(o)
    ) or any(
        isinstance(n, ast.Call) and _runs_network(project, n, s) for o in operands for n, s in ends(project, o, scope)
    )


def _runs_network(project: Project, node: ast.Call, scope: Scope) -> bool:
    text = written(node.func).lower()
    return network(project, node.func, scope) or text.split(".")[-1] in ("model", "net", "network", "classifier")
