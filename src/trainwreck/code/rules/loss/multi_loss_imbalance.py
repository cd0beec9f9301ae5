"""One term of a sum of losses counts a hundred times as much as another.

What: two errors of what runs backward have weights whose ratio is 100 or more; or a regression on targets that the
program itself makes hundreds wide (``1500 + 400 * s``) is summed with a classification, without scaling the targets.
Why it matters: the gradient is that of the large term; the other task does not learn.
When it is fine: where the small weight balances a large scale (a sum against a mean, GIoU against boxes).
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator

from trainwreck.code.bounds import interval, origin
from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.flow import back
from trainwreck.code.objective import Term, multipliers, objectives
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.balance import outweighed
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import is_loss
from trainwreck.code.terms import error_kinds, reductions
from trainwreck.code.values import number, values
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch.nn.functional as F
cfg = {"w_depth": 500.0, "w_seg": 1.0}  # expect
def train(model, loader, opt):
    for x, depth, seg in loader:
        d, s = model(x)
        loss = cfg["w_depth"] * F.l1_loss(d, depth) + cfg["w_seg"] * F.cross_entropy(s, seg)
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    """
import torch.nn.functional as F
class Trainer:
    def __init__(self, net, opt, aux=1000):  # expect
        self.net, self.opt, self.aux = net, opt, aux
    def step(self, x, a, b):
        p, q = self.net(x)
        loss = F.cross_entropy(p, a)
        loss = loss + self.aux * F.cross_entropy(q, b)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
""",
    """
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
class Houses(Dataset):
    def __init__(self, n, rng):
        self.x = rng.normal(size=(n, 4)).astype(np.float32)
        self.price = (200000 + 50000 * self.x[:, 0]).astype(np.float32)  # expect
        self.kind = (self.x[:, 1] > 0).astype(np.int64)
    def __getitem__(self, i):
        return self.x[i], self.price[i], self.kind[i]
def main(model, rng, opt):
    mse, ce = nn.MSELoss(), nn.CrossEntropyLoss()
    for x, price, kind in DataLoader(Houses(100, rng), 8):
        p, k = model(x)
        loss = mse(p, price) + ce(k, kind)
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
)
GOOD = """
import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
class Houses(Dataset):
    def __init__(self, n, rng):
        self.x = rng.normal(size=(n, 4)).astype(np.float32)
        price = (200000 + 50000 * self.x[:, 0]).astype(np.float32)
        self.price = (price - price.mean()) / price.std()
        self.kind = (self.x[:, 1] > 0).astype(np.int64)
    def __getitem__(self, i):
        return self.x[i], self.price[i], self.kind[i]
def train(model, rng, opt, gan_weight=100.0):
    for x, price, kind in DataLoader(Houses(100, rng), 8):
        p, k, adv = model(x)
        loss = 5.0 * F.l1_loss(p, price) + 0.1 * F.cross_entropy(k, kind)
        pix = gan_weight * F.l1_loss(p, price) + F.binary_cross_entropy_with_logits(adv, torch.ones_like(adv))
        tiny = F.cross_entropy(k, kind) + 0.001 * p.pow(2).mean()
        loss.backward()
        (pix + tiny).backward()
        opt.step()
"""
RATIO = 300.0
"""Between weights: pix2pix (arXiv:1611.07004) uses 100 for L1 beside an adversarial term; detectors stay below 20."""
WIDE = 100.0
"""Targets with a spread or mean of this size give errors of that size beside a cross entropy of about 1."""
PENALTY = pattern(r"reg|penal|l2|l1_|decay|adv|gan|aux|smooth|tv|consist|cycle|ident", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), outweighed)


def _written(project: Project) -> Iterator[Evidence]:
    for call, terms in objectives(project):
        errors = [(t, error_kinds(project, t)) for t in terms]
        errors = [(t, kinds) for t, kinds in errors if kinds]
        if len(errors) < 2 or len({id(t.node) for t, _ in errors}) < 2:
            continue
        yield from _by_weight(project, call, [t for t, _ in errors])
        yield from _by_scale(project, call, errors)


def _by_weight(project: Project, call: Call, errors: list[Term]) -> Iterator[Evidence]:
    weighed = []
    for term in errors:
        product = 1.0
        for factor in multipliers(project, term.factors):
            low, high = interval(project, factor.node, factor.scope)
            if low != high or not math.isfinite(low) or low <= 0:
                product = 0.0
                break
            product = product / low if factor.inverse else product * low
        weighed.append((product, term))
    if any(w == 0 for w, _ in weighed) or any("sum" in r for t in errors for r in reductions(project, t)):
        return
    weighed.sort(key=lambda pair: pair[0])
    (small, low_term), (large, high_term) = weighed[0], weighed[-1]
    if large / small < RATIO or PENALTY.search(" ".join((*low_term.names, *high_term.names))):
        return
    odd = high_term if large > 1 else low_term
    factors = [f for f in multipliers(project, odd.factors) if not f.inverse]
    if factors:
        place = origin(project, factors[0].node, factors[0].scope)
        text = f"{written(high_term.node)[:50]} counts {large / small:g} times as much as {written(low_term.node)[:50]}"
        yield sighting(__name__, place, text, proof=[call])


def _by_scale(project: Project, call: Call, errors: list[tuple[Term, set[str]]]) -> Iterator[Evidence]:
    """A regression with wide targets beside a classification."""
    classes = [
        t for t, kinds in errors if kinds & {"crossentropy", "bcewithlogits", "nll", "binarycrossentropywithlogits"}
    ]
    for term, kinds in errors:
        if not classes or not kinds & {"mse", "l1", "smoothl1", "huber"} or not isinstance(term.node, ast.Call):
            continue
        loss = Call(term.node, term.scope)
        target = loss.argument("target", 1)
        if target is None or not is_loss(project, loss) or _weight(project, term) < 0.1:
            continue
        place = _wide(project, target, term.scope)
        if place is not None:
            yield sighting(
                __name__, place, "the targets are hundreds wide and not scaled, beside a classification", proof=[call]
            )
            return


def _weight(project: Project, term: Term) -> float:
    product = 1.0
    for factor in multipliers(project, term.factors):
        found = number(project, factor.node, factor.scope)
        product *= 1.0 if found is None else (1 / found if factor.inverse and found else found)
    return product


def _wide(project: Project, target: ast.expr, scope: Scope) -> tuple[ast.AST, Scope] | None:
    """Where the target gets its scale (or the identity that stands for a scaling); None if it is scaled or unknown."""
    identity: tuple[ast.AST, Scope] | None = None
    for step in back(project, target, scope):
        node = step.node
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            found = _identity(project, node, step.scope)
            if found is None:
                return None
            identity = found
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and identity is None:
            identity = _centred(project, node, step.scope)
        if isinstance(node, ast.Call) and last_name(node.func) in (
            "log",
            "log1p",
            "fit_transform",
            "transform",
            "normalize",
        ):
            return None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and step.depth < 40:
            if _a_setting(project, node, step.scope):
                continue
            low, high = _largest(project, node, step.scope)
            if high >= WIDE and low >= 0:
                return identity or (project.statement(node, step.scope), step.scope)
    return None


def _centred(project: Project, node: ast.BinOp, scope: Scope) -> tuple[ast.AST, Scope] | None:
    """``y - m`` with the mean of the data: half of a standardisation, where the other half is missing."""
    for step in back(project, node.right, scope):
        if isinstance(step.node, ast.Call) and last_name(step.node.func) in ("mean", "average", "nanmean"):
            return project.statement(node, scope), scope
        if step.depth > 6:
            break
    return None


def _a_setting(project: Project, node: ast.BinOp, scope: Scope) -> bool:
    """True for a sum that a function of the program, or a generator, is given: a seed or a size, no target."""
    above = project.parent(node, scope)
    above = project.parent(above, scope) if isinstance(above, ast.keyword) else above
    if not isinstance(above, ast.Call):
        return False
    return "seed" in last_name(above.func) or isinstance(project.resolve(above.func, scope), Scope)


def _identity(project: Project, node: ast.BinOp, scope: Scope) -> tuple[ast.AST, Scope] | None:
    """``(y - m) / s`` with m = 0 and s = 1: where these are written."""
    for step in back(project, node.right, scope):
        if (
            isinstance(step.node, ast.Constant)
            and step.node.value in (1, 1.0)
            and not isinstance(step.node.value, bool)
        ):
            return project.statement(step.node, step.scope), step.scope
        if isinstance(step.node, ast.Call):
            return None
    return None


def _largest(project: Project, node: ast.BinOp, scope: Scope) -> tuple[float, float]:
    """The smaller and the larger of the plain numbers in ``a + b * noise``."""
    found = [
        abs(k.value)
        for part in ast.walk(node)
        if isinstance(part, ast.Constant)
        for k in values(project, part, scope)
        if isinstance(k.value, int | float) and not isinstance(k.value, bool)
    ]
    return (min(found), max(found)) if found else (0.0, 0.0)
