"""Pairs that do not count win the search for the hardest negative.

What: ``(distances * mask).min(...)``: the pairs that do not count get the distance 0, which is the smallest; or two
views stand in one list, and a softmax over its similarities keeps each row's pair with itself.
Why it matters: the hardest negative is then the anchor itself or a positive, and the loss pushes nothing apart.
When it is fine: for a maximum of distances (zero never wins), and where excluded pairs get a large number.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import trains
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.own_pairs import unmasked
from trainwreck.code.rehearsal.questions.similarities import masked_to_zero
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
import torch.nn.functional as F
def triplet(z, y, margin=0.2):
    d = torch.cdist(z, z)
    same = y[:, None] == y[None]
    pos = (d * same).max(1).values
    neg = (d * (~same)).min(1).values  # expect
    return F.relu(pos - neg + margin).mean()
def train(net, x, y):
    triplet(net(x), y).backward()
""",
    """
import torch
def loss(emb, labels):
    dist = (emb[:, None] - emb[None]).pow(2).sum(-1)
    negative_mask = (labels[:, None] != labels[None]).float()
    masked = dist * negative_mask
    hardest = masked.min(dim=1)[0]  # expect
    return torch.relu(1.0 - hardest).mean()
def train(net, x, y):
    loss(net(x), y).backward()
""",
    """
import torch
class Miner:
    def __call__(self, dist, different):
        d = dist.masked_fill(~different, 0.0)
        return torch.min(d, dim=1).values  # expect
def train(net, x, y, miner=Miner()):
    miner(torch.cdist(net(x), net(x)), y[:, None] != y).mean().backward()
""",
)
GOOD = """
import torch
import torch.nn.functional as F
def triplet(z, y, margin=0.2):
    d = torch.cdist(z, z)
    same = y[:, None] == y[None]
    pos = (d * same).max(1).values
    neg = (d + 1e6 * same).min(1).values
    other = d.masked_fill(same, float("inf")).min(1).values
    cost = (d * 2.0).min(1).values
    return F.relu(pos - neg + margin).mean() + other.mean() + cost.mean()
def train(net, x, y):
    triplet(net(x), y).backward()
"""
MASK = pattern(r"mask|same|diff|neg|pos|eye|~|!=|==|valid", re.IGNORECASE)
DISTANCE = pattern(r"dist|(^|\W)d(\W|$)|cdist|pairwise", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), masked_to_zero, unmasked)


def _written(project: Project) -> Iterator[Evidence]:
    if not trains(project):
        return
    for call in project.calls("min", "amin"):
        own = call.receiver is not None and project.bindings_of_values(call.receiver, call.scope)
        value = call.receiver if own else call.node.args[0] if call.node.args else None
        axis = call.node.args[0 if own else 1 :] or call.node.keywords
        if value is not None and axis and _zeroed(project, value, call.scope, 0):
            yield sighting(__name__, call, "the pairs that are masked out are 0 here, the smallest distance of all")


def _zeroed(project: Project, node: ast.expr, scope: Scope, depth: int) -> bool:
    """True for distances that a mask sets to zero."""
    match node:
        case ast.BinOp(op=ast.Mult(), left=left, right=right):
            for value, mask in ((left, right), (right, left)):
                if isinstance(mask, ast.Constant) or not DISTANCE.search(written(value)):
                    continue
                if MASK.search(written(mask)):
                    return True
        case ast.Call(func=func, args=[mask, fill, *_]) if last_name(func) == "masked_fill":
            zero = isinstance(fill, ast.Constant) and fill.value == 0
            return zero and bool(DISTANCE.search(written(Call(node, scope).receiver)))
        case ast.Name(id=name) if depth < 3:
            found = [b for b in scope.bindings.get(name, ()) if b.kind == "assign" and b.line < node.lineno]
            last = max(found, key=lambda b: b.line, default=None)
            return last is not None and last.value is not None and _zeroed(project, last.value, scope, depth + 1)
    return False
