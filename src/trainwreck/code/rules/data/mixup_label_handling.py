"""Inputs are mixed, labels are not.

What: ``x = lam * x + (1 - lam) * x[perm]``, and no label is looked up with the same permutation.
Why it matters: half of each mixed sample carries a wrong label: the model is trained towards noise.
When it is fine: for consistency losses without labels, or where both labels enter the loss with lam and 1 - lam.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import trains
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.mixing import hardened, shares_exchanged, unmixed_inputs, unmixed_labels
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import losses
from trainwreck.core.evidence import Evidence

BAD = (
    """
import numpy as np, torch, torch.nn.functional as F
for x, y in loader:
    lam = np.random.beta(0.2, 0.2)
    perm = torch.randperm(len(x))
    x = lam * x + (1 - lam) * x[perm]  # expect
    loss = F.cross_entropy(model(x), y)
    loss.backward()
""",
    """
import torch
def mix(x, alpha):
    lam = torch.distributions.Beta(alpha, alpha).sample()
    index = torch.randperm(x.size(0))
    return lam * x + (1 - lam) * x[index, :]  # expect
def step(model, x, y, criterion):
    loss = criterion(model(mix(x, 0.4)), y)
    loss.backward()
""",
    """
import torch
from torch import nn
ce = nn.CrossEntropyLoss()
def train(model, loader, opt):
    for images, labels in loader:
        w = torch.rand(1)
        mixed = images.mul(w) + images[torch.randperm(images.shape[0])].mul(1 - w)  # expect
        ce(model(mixed), labels).backward()
        opt.step()
""",
)
GOOD = (
    """
import numpy as np, torch, torch.nn.functional as F
for x, y in loader:
    lam = np.random.beta(0.2, 0.2)
    perm = torch.randperm(len(x))
    mixed = lam * x + (1 - lam) * x[perm]
    out = model(mixed)
    loss = lam * F.cross_entropy(out, y) + (1 - lam) * F.cross_entropy(out, y[perm])
    loss.backward()
""",
    """
import torch
def mix(x, y, alpha):
    lam = torch.rand(1)
    index = torch.randperm(x.size(0))
    return lam * x + (1 - lam) * x[index], y, y[index], lam
def step(model, x, y, criterion):
    x, a, b, lam = mix(x, y, 1.0)
    out = model(x)
    (lam * criterion(out, a) + (1 - lam) * criterion(out, b)).backward()
""",
    """
import torch, torch.nn.functional as F
def penalty(critic, real, fake):
    eps = torch.rand(len(real), 1)
    mixed = eps * real + (1 - eps) * fake
    return critic(mixed).mean()
def step(model, x, index, lam):
    return lam * x + (1 - lam) * x[index], index
def smooth(x, y, decay, i):
    ema = decay * x + (1 - decay) * x[i]
    F.cross_entropy(ema, y).backward()
""",
)
PERMUTES = pattern(r"randperm|permutation|argsort|shuffle")
LABELLED = (
    "cross_entropy",
    "nll_loss",
    "CrossEntropyLoss",
    "NLLLoss",
    "criterion",
    "loss_fn",
    "BCEWithLogitsLoss",
    "binary_cross_entropy_with_logits",
)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), unmixed_labels, unmixed_inputs, hardened, shares_exchanged)


def _written(project: Project) -> Iterator[Evidence]:
    if not trains(project) or not any(len(c.node.args) > 1 for c in losses(project)):
        return
    for scope in project.scopes:
        if not PERMUTES.search(scope.module.text) or scope.kind == "class":
            continue
        for node in project.within(scope, ast.BinOp):
            assert isinstance(node, ast.BinOp)
            index = _mix(node)
            if index is None or not _permuted(project, index, scope):
                continue
            if _used(project, scope, index, node) or not _supervised(project, scope):
                continue
            text = "inputs are mixed with others of the batch here, and the labels stay those of the first"
            yield sighting(__name__, (node, scope), text)


def _mix(node: ast.BinOp) -> ast.expr | None:
    """The index of ``a * x + (1 - a) * x[index]``."""
    if not isinstance(node.op, ast.Add):
        return None
    one, other = _product(node.left), _product(node.right)
    if one is None or other is None:
        return None
    for (share, x), (rest, part) in ((one, other), (other, one)):
        if not isinstance(part, ast.Subscript) or written(part.value) != written(x):
            continue
        if isinstance(rest, ast.BinOp) and isinstance(rest.op, ast.Sub) and written(rest.right) == written(share):
            index = part.slice.elts[0] if isinstance(part.slice, ast.Tuple) and part.slice.elts else part.slice
            return None if isinstance(index, ast.Slice) else index
    return None


def _product(node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """(factor, value) of ``a * x`` or ``x.mul(a)``."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        one, other = node.left, node.right
        return (other, one) if isinstance(one, ast.Subscript) or isinstance(other, ast.BinOp) else (one, other)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "mul" and node.args:
        return node.args[0], node.func.value
    return None


def _permuted(project: Project, index: ast.expr, scope: Scope) -> bool:
    if isinstance(index, ast.Call):
        return bool(PERMUTES.search(written(index)))
    if not isinstance(index, ast.Name):
        return False
    found = [b for b in project.lookup(index.id, scope) if b.kind == "assign" and b.value is not None]
    return bool(found) and all(PERMUTES.search(written(b.value)) for b in found)


def _used(project: Project, scope: Scope, index: ast.expr, mix: ast.BinOp) -> bool:
    """True if the permutation serves for something else: other lookups, a return, an argument."""
    if not isinstance(index, ast.Name):
        return False
    inner = {id(n) for n in ast.walk(mix)}
    return any(
        isinstance(n, ast.Name) and n.id == index.id and isinstance(n.ctx, ast.Load) and id(n) not in inner
        for n in ast.walk(scope.node)
    )


def _supervised(project: Project, scope: Scope) -> bool:
    """True if a loss with labels is computed where the function is used, or in it."""
    users = {scope} | ({c.scope for c in project.callers(scope)} if scope.kind == "function" else set())
    return any(c.scope in users and (c.name in LABELLED or _classes(c)) for c in losses(project))


def _classes(call: Call) -> bool:
    return any(re.search(r"label|target|^y", written(a)) for a in call.node.args[1:2])
