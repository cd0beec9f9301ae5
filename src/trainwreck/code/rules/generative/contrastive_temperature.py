"""Similarities are multiplied by the temperature.

What: ``sim * tau`` where a contrastive loss divides by it.
Why it matters: with a small temperature all logits are nearly equal; the loss stays near ln of the batch.
When it is fine: where the parameter is an inverse temperature (``logit_scale``).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.flow import back
from trainwreck.code.project import Project
from trainwreck.code.rule import guess, sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

BAD = """
import torch.nn.functional as F
def info_nce(z, tau=0.1):
    sim = z @ z.t() * tau  # expect
    return F.cross_entropy(sim, target)
"""
GOOD = """
import torch.nn.functional as F
def info_nce(z, logit_scale, tau=0.1):
    sim = z @ z.t() / tau
    other = z @ z.t() * logit_scale
    soft = F.kl_div(sim, other) * tau * tau
    return F.cross_entropy(sim + other, target) + soft
class Head(nn.Module):
    def logits(self, a, b, temperature):
        return a @ b.t() * temperature
    def forward(self, a, b):
        self.scale.data.clamp_(0, 4)
        return F.cross_entropy(self.logits(a, b, temperature=self.logit_scale.exp()), target)
"""
TEMPERATURE = re.compile(r"(^|[._])(tau|temp|temperature)$", re.IGNORECASE)
SIMILARITY = re.compile(r"@|matmul|\bmm\b|einsum|cosine_similarity")


def find(project: Project) -> Iterator[Evidence]:
    for scope in project.scopes:
        for node in project.within(scope, ast.BinOp):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and _scaled(project, node, scope):
                text = "similarities are multiplied by the temperature, which a contrastive loss divides by"
                yield sighting(__name__, (node, scope), text)


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    for scope in project.scopes:
        for node in project.within(scope, ast.BinOp):
            if isinstance(node, ast.BinOp) and TEMPERATURE.search(written(node.right)):
                yield guess(__name__, (node, scope), "the temperature is applied here")
                return


def _scaled(project: Project, node: ast.BinOp, scope: Scope) -> bool:
    for side, other in ((node.right, node.left), (node.left, node.right)):
        if TEMPERATURE.search(written(side)) and SIMILARITY.search(written(other)):
            # CLIP learns the logarithm of 1 / temperature and multiplies by its exponential
            if any(re.search(r"exp\(|scale|\b1(\.0*)? /", written(s.node)) for s in back(project, side, scope)):
                return False
            return (
                "cross_entropy" in scope.module.text
                or "logsumexp" in scope.module.text
                or "log_softmax" in scope.module.text
            )
    return False
