"""The commitment term outweighs the reconstruction.

What: the term that pulls the encoder to the codebook (``mse(z, q.detach())``) has 20 times the weight of the
reconstruction or more.
Why it matters: the encoder then minimises its distance to the codes and forgets the input. VQ-VAE uses 0.25, and
finds 0.1 to 2 alike (arXiv:1711.00937, section 3.2).
When it is fine: where the reconstruction is a sum over pixels and the commitment a mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainwreck.code.bounds import interval, origin
from trainwreck.code.facts import source
from trainwreck.code.objective import Factor, multipliers, objectives
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.quantising import dominating
from trainwreck.code.rule import sighting
from trainwreck.code.terms import detached_pair, error_kinds, reductions
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
import torch.nn.functional as F
from torch import nn
class VQ(nn.Module):
    def __init__(self, k, d, beta=50.0):  # expect
        super().__init__()
        self.codebook, self.beta = nn.Embedding(k, d), beta
    def forward(self, z):
        q = self.codebook(torch.cdist(z, self.codebook.weight).argmin(1))
        loss = F.mse_loss(q, z.detach()) + self.beta * F.mse_loss(z, q.detach())
        return z + (q - z).detach(), loss
def train(enc, dec, loader, opt):
    vq = VQ(16, 4)
    for x in loader:
        q, vq_loss = vq(enc(x))
        loss = F.mse_loss(dec(q), x) + vq_loss
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    """
import torch
COMMIT = 100  # expect
def train(model, loader, opt):
    for x in loader:
        z = model.encode(x)
        q = model.codes[torch.cdist(z, model.codes).argmin(1)]
        rec = (model.decode(z + (q - z).detach()) - x).pow(2).mean()
        loss = rec + (q - z.detach()).pow(2).mean() + COMMIT * (z - q.detach()).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
)
GOOD = """
import torch
import torch.nn.functional as F
def train(model, loader, opt, beta=0.25):
    for x in loader:
        z = model.encode(x)
        q = model.codebook(torch.cdist(z, model.codebook.weight).argmin(1))
        rec = F.mse_loss(model.decode(z + (q - z).detach()), x)
        loss = rec + F.mse_loss(q, z.detach()) + beta * F.mse_loss(z, q.detach())
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
RATIO = 20.0
"""Ten times the largest weight that the paper calls robust."""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), dominating)


def _written(project: Project) -> Iterator[Evidence]:
    if "argmin" not in source(project) and ".min(" not in source(project):
        return
    for call, terms in objectives(project):
        recon = next((t for t in terms if error_kinds(project, t) and detached_pair(t) is None), None)
        if recon is None or "sum" in reductions(project, recon):
            continue
        base = _product(project, list(multipliers(project, recon.factors)))
        for term in terms:
            pair = detached_pair(term)
            factors = [f for f in multipliers(project, term.factors) if not f.inverse]
            if pair is None or not factors or f"({pair[0]} - {pair[1]}).detach()" not in source(project):
                continue
            product = _product(project, factors)
            if base and math.isfinite(product) and product / base >= RATIO:
                place = origin(project, factors[0].node, factors[0].scope)
                text = f"the commitment term counts {product / base:g} times as much as the reconstruction"
                yield sighting(__name__, place, text, proof=[call])


def _product(project: Project, factors: list[Factor]) -> float:
    product = 1.0
    for factor in factors:
        low, high = interval(project, factor.node, factor.scope)
        if low != high or low <= 0:
            return math.inf
        product = product / low if factor.inverse else product * low
    return product
