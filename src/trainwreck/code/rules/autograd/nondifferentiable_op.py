"""The prediction passes through an operation without a gradient.

What: ``argmax``, ``round``, a comparison or a cast to integers lies between the network and the loss that runs
backward.
Why it matters: no gradient passes; either ``backward()`` fails or the weights before it never change.
When it is fine: on targets and for metrics.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import (
    network,
)
from trainwreck.code.flow import back
from trainwreck.code.params import learners, parts
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers, further
from trainwreck.code.rehearsal.questions.actors import unreached
from trainwreck.code.rehearsal.questions.cuts import hard
from trainwreck.code.rehearsal.questions.idle_terms import hard_term, rounded
from trainwreck.code.rehearsal.questions.partly import latent_hard
from trainwreck.code.rehearsal.questions.sampling import without_path
from trainwreck.code.rehearsal.questions.untaught import untaught_router
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
    """
import torch
from torch import nn
class Binary(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = nn.Linear(4, 8), nn.Linear(8, 2)
    def forward(self, x):
        code = torch.round(torch.sigmoid(self.enc(x)))  # expect
        return self.dec(code)
def train(loader, ce):
    net = Binary()
    opt = torch.optim.Adam(net.parameters())
    for x, y in loader:
        ce(net(x), y).backward()
        opt.step()
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
SEEN = (without_path, unreached, latent_hard, hard_term, rounded, untaught_router)
DEAD = frozenset(
    ["argmax", "argmin", "round", "sign", "floor", "ceil", "long", "int", "bool", "argsort", "multinomial"]
)


def find(project: Project) -> Iterator[Evidence]:
    found = list(_written(project))
    yield from found
    if not found:
        yield from further(__name__, project, answers(__name__, project, hard), *SEEN)


def _written(project: Project) -> Iterator[Evidence]:
    found = list(_before_the_loss(project))
    yield from found or _inside(project)


HARD = frozenset(["round", "sign", "floor", "ceil", "heaviside", "argmax"])


def _inside(project: Project) -> Iterator[Evidence]:
    """A network that learns: the output of a layer is rounded and handed to the next layer as it is."""
    for owner in learners(project):
        layers = parts(project, owner) if project.is_a(owner, "Module") else {}
        for method in owner.children if layers else ():
            text = written(method.node) if method.kind == "function" else ""
            if (
                method.kind != "function"
                or method.name == "__init__"
                or re.search(r"detach|no_grad|\.apply\(|straight|gumbel", text)
            ):
                continue
            for node in project.within(method, ast.Call):
                if not isinstance(node, ast.Call) or not node.args or not _layer(node, layers):
                    continue
                for value, where in ends(project, node.args[0], method):
                    if where is method and _hard(project, value, method, layers):
                        text = f"no gradient passes this, and {written(node.func)} goes on from it"
                        yield sighting(__name__, (value, method), text, proof=[Call(node, method)])
                        return


def _layer(node: ast.Call, layers: dict[str, Call]) -> bool:
    return written(node.func).removeprefix("self.") in layers and written(node.func).startswith("self.")


def _hard(project: Project, node: ast.expr, method: Scope, layers: dict[str, Call]) -> bool:
    """``round(...)`` or a comparison of the output of a layer."""
    if isinstance(node, ast.Call) and last_name(node.func) in HARD:
        inner = node.args[0] if node.args else node.func.value if isinstance(node.func, ast.Attribute) else None
    elif isinstance(node, ast.Compare):
        inner = node.left
    else:
        return False
    for step in back(project, inner, method) if inner is not None else ():
        if isinstance(step.node, ast.Call) and _layer(step.node, layers) and step.scope is method:
            return True
        if step.depth > 6:
            break
    return False


def _before_the_loss(project: Project) -> Iterator[Evidence]:
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
