"""The KL term of a variational model is weighted far above the reconstruction.

What: in what runs backward, the weight of a Gaussian KL term is 30 times that of the reconstruction or more (both
averaged alike), it is multiplied with the number of batches, or a warm-up of the weight has no upper end.
Why it matters: the cheapest way to a low loss is then to ignore the input: the posterior equals the prior, the
decoder paints the mean. The weights in use lie between 0.1 and about 10 (beta-VAE, arXiv:1804.03599, goes higher with
a capacity).
When it is fine: with a capacity term ``(kl - c).abs()``, or where the reconstruction is a sum and the KL a mean over
all.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator

from trainwreck.code.bounds import interval, origin
from trainwreck.code.calls import last_name, written
from trainwreck.code.objective import Factor, Term, multipliers, objectives
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.variational import heavy_divergence
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.terms import error_kinds, gaussian_kl, is_kl, reductions
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch.nn.functional as F
BETA = 200.0  # expect
def train(vae, loader, opt):
    for x in loader:
        recon, mu, logvar = vae(x)
        rec = F.mse_loss(recon, x, reduction="none").sum(1).mean()
        kl = (-0.5 * (1 + logvar - mu.pow(2) - logvar.exp())).sum(1).mean()
        loss = rec + BETA * kl
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    """
import torch
import torch.nn.functional as F
from torch.distributions import Normal, kl_divergence
class Trainer:
    def __init__(self, vae, loader):
        self.vae, self.loader = vae, loader
        self.opt = torch.optim.Adam(vae.parameters())
    def epoch(self):
        for x in self.loader:
            recon, q, prior = self.vae(x)
            rec = F.binary_cross_entropy_with_logits(recon, x, reduction="sum") / x.size(0)
            kl = kl_divergence(q, prior).sum(-1).mean()
            loss = rec + kl * len(self.loader)  # expect
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
""",
    """
import torch
import torch.nn.functional as F
hp = dict(epochs=40, warmup=4)
def objective(recon, x, mu, logvar, epoch):
    kl = -0.5 * torch.sum(1 + logvar - mu ** 2 - torch.exp(logvar), dim=1).mean()
    w = (epoch + 1) / hp["warmup"]  # expect
    return F.mse_loss(recon, x, reduction="sum") / len(x) + w * kl
def main(vae, loader, opt):
    for epoch in range(hp["epochs"]):
        for x in loader:
            recon, mu, logvar = vae(x)
            loss = objective(recon, x, mu, logvar, epoch)
            opt.zero_grad()
            loss.backward()
            opt.step()
""",
)
GOOD = """
import torch
import torch.nn.functional as F
hp = dict(epochs=40, warmup=4, beta=4.0)
def objective(recon, x, mu, logvar, epoch):
    kl = -0.5 * torch.sum(1 + logvar - mu ** 2 - torch.exp(logvar), dim=1).mean()
    w = hp["beta"] * min(1.0, (epoch + 1) / hp["warmup"])
    return F.mse_loss(recon, x, reduction="sum") / len(x) + w * kl
def capacity(recon, x, mu, logvar, c):
    kl = -0.5 * torch.sum(1 + logvar - mu ** 2 - torch.exp(logvar), dim=1).mean()
    return F.mse_loss(recon, x, reduction="sum") / len(x) + 1000.0 * (kl - c).abs()
def averaged(recon, x, mu, logvar):
    kl = -0.5 * torch.mean(1 + logvar - mu ** 2 - torch.exp(logvar))
    return F.mse_loss(recon, x, reduction="sum") / len(x) + 100.0 * kl
def scaled(recon, x, mu, logvar, loader):
    kl = -0.5 * torch.sum(1 + logvar - mu ** 2 - torch.exp(logvar), dim=1).mean()
    return F.mse_loss(recon, x, reduction="sum") / len(x) + kl / len(loader)
def main(vae, loader, opt):
    for epoch in range(hp["epochs"]):
        for x in loader:
            recon, mu, logvar = vae(x)
            loss = objective(recon, x, mu, logvar, epoch) + capacity(recon, x, mu, logvar, 5.0)
            opt.zero_grad()
            loss.backward()
            averaged(recon, x, mu, logvar).backward()
            scaled(recon, x, mu, logvar, loader).backward()
            opt.step()
"""
TOO_MUCH = 30.0
"""Ratio of the weights. beta-VAE was studied up to 16 (ICLR 2017)."""
ENDLESS = 2.0
"""A warm-up of the weight that passes this factor has no upper end."""
RAMP = pattern(r"warm|anneal|ramp", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), heavy_divergence)


def _written(project: Project) -> Iterator[Evidence]:
    told: set[int] = set()
    for call, terms in objectives(project):
        recon = next((t for t in terms if error_kinds(project, t) and not is_kl(t)), None)
        for term in terms:
            if recon is None or not gaussian_kl(term) or id(term.node) in told:
                continue
            found = _reason(project, term, recon)
            if found is not None:
                told.add(id(term.node))
                place, text = found
                yield sighting(
                    __name__, place, text, proof=[(term.scope.module.path, call.line, written(call.node)[:80])]
                )


def _reason(project: Project, kl: Term, recon: Term) -> tuple[tuple[ast.AST, Scope], str] | None:
    ours = [f for f in multipliers(project, kl.factors) if not _half(f.node)]
    theirs = list(multipliers(project, recon.factors))
    batches = next((f for f in ours if _number_of_batches(project, f, ours)), None)
    if batches is not None and not any(_number_of_batches(project, f, theirs) for f in theirs):
        return _statement(project, batches), "the KL term is multiplied with the number of batches"
    ramp = next((f for f in ours if f.inverse and RAMP.search(written(f.node))), None)
    highest = _product(project, ours)
    if ramp is not None:
        moving = [f for f in ours if not f.inverse and math.isfinite(interval(project, f.node, f.scope)[1])]
        low, high = interval(project, ramp.node, ramp.scope)
        counted = [interval(project, f.node, f.scope) for f in moving]
        rounds = max((c[1] for c in counted if c[0] < c[1]), default=0.0)
        if low == high and low > 0 and rounds / low >= ENDLESS:
            return _statement(project, ramp), f"the warm-up of the KL weight does not end: it grows to {rounds / low:g}"
    base = _product(project, theirs)
    if not math.isfinite(highest) or not base or not math.isfinite(base) or highest / base < TOO_MUCH:
        return None
    if "mean" in reductions(project, kl) and "mean" not in reductions(project, recon):
        return None
    largest = max(
        (f for f in ours if not f.inverse and math.isfinite(interval(project, f.node, f.scope)[1])),
        key=lambda f: interval(project, f.node, f.scope)[1],
    )
    place = origin(project, largest.node, largest.scope)
    return place, f"the KL term counts {highest / base:g} times as much as the reconstruction"


def _half(node: ast.expr) -> bool:
    return written(node) in ("0.5", "-0.5", "2", "2.0")


def _product(project: Project, factors: list[Factor]) -> float:
    """The largest that the product can get."""
    product = 1.0
    for factor in factors:
        low, high = interval(project, factor.node, factor.scope)
        if factor.inverse:
            if low <= 0:
                return math.inf
            product /= low
        else:
            product *= high
    return product


def _number_of_batches(project: Project, factor: Factor, beside: list[Factor]) -> bool:
    """``len(loader)``, or ``len(data)`` beside a division by the batch size."""
    if factor.inverse or not isinstance(factor.node, ast.Call) or last_name(factor.node.func) != "len":
        return False
    if re.search(r"loader|batches", written(factor.node), re.IGNORECASE):
        return not any(f.inverse and "len(" in written(f.node) for f in beside)
    return any(f.inverse and re.search(r"batch|(^|_)bs($|_)", written(f.node)) for f in beside)


def _statement(project: Project, factor: Factor) -> tuple[ast.AST, Scope]:
    return project.statement(factor.node, factor.scope), factor.scope
