"""Similarities are multiplied by the temperature.

What: ``sim * tau`` where a contrastive loss divides by it.
Why it matters: with a small temperature all logits are nearly equal; the loss stays near ln of the batch.
When it is fine: where the parameter is an inverse temperature (``logit_scale``).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import islice

from trainwreck.code.bounds import interval, origin
from trainwreck.code.calls import last_name, written
from trainwreck.code.facts import source
from trainwreck.code.flow import back
from trainwreck.code.project import Project
from trainwreck.code.rule import guess, sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch.nn.functional as F
def info_nce(z, tau=0.1):
    sim = z @ z.t() * tau  # expect
    return F.cross_entropy(sim, target)
""",
    """
import torch
import torch.nn.functional as F
class NCE(torch.nn.Module):
    def __init__(self, temperature=0.07):
        super().__init__()
        self.t = temperature
    def forward(self, a, b):
        sim = F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).t()
        return F.cross_entropy(sim * self.t, torch.arange(len(a)))  # expect
""",
    """
import torch
import torch.nn.functional as F
def info_nce(a, b, tau=20.0):  # expect
    a, b = F.normalize(a, dim=-1), F.normalize(b, dim=-1)
    logits = a @ b.T / tau
    return F.cross_entropy(logits, torch.arange(len(a)))
""",
)
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
    yield from _out_of_range(project)


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    for scope in project.scopes:
        for node in project.within(scope, ast.BinOp):
            if isinstance(node, ast.BinOp) and TEMPERATURE.search(written(node.right)):
                yield guess(__name__, (node, scope), "the temperature is applied here")
                return


def _is_temperature(project: Project, node: ast.expr, scope: Scope) -> bool:
    """True for what is called a temperature, or ``t`` with a value below 1."""
    if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        return False
    text = written(node)
    if TEMPERATURE.search(text):
        return True
    if not re.search(r"(^|[._])[tT]$", text):
        return False
    low, high = interval(project, node, scope)
    return low == high and 0 < low < 1


def _similarity(project: Project, node: ast.expr, scope: Scope) -> bool:
    """True for a product of embeddings, here or behind a name."""
    if SIMILARITY.search(written(node)):
        return True
    return isinstance(node, ast.Name) and any(
        b.value is not None and b.kind == "assign" and SIMILARITY.search(written(b.value))
        for b in scope.bindings.get(node.id, ())
    )


HOT, COLD = 2.0, 0.004
"""Published temperatures lie between 0.01 (the clip of CLIP, arXiv:2103.00020) and 1 (arXiv:2002.05709, table 5)."""


def _out_of_range(project: Project) -> Iterator[Evidence]:
    """Similarities of normalised embeddings divided by a temperature far outside of what works."""
    if not re.search(r"normalize\(|cosine_similarity", source(project)) or "cross_entropy" not in source(project):
        return
    for scope in project.scopes:
        for node in project.within(scope, ast.BinOp):
            if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div):
                continue
            if not TEMPERATURE.search(written(node.right)) or not _similarity(project, node.left, scope):
                continue
            if not re.search(r"arange|eye\(|diag", scope.module.text):
                continue
            low, high = interval(project, node.right, scope)
            if low == high and (low >= HOT or 0 < low <= COLD):
                text = f"a temperature of {low:g} makes the loss {'flat' if low >= HOT else 'a hard maximum'}"
                yield sighting(
                    __name__,
                    origin(project, node.right, scope),
                    text,
                    proof=[(scope.module.path, node.lineno, written(node)[:80])],
                )


def _scaled(project: Project, node: ast.BinOp, scope: Scope) -> bool:
    if not re.search(r"cross_entropy|logsumexp|log_softmax", scope.module.text):
        return False
    for side, other in ((node.right, node.left), (node.left, node.right)):
        if _is_temperature(project, side, scope) and _similarity(project, other, scope):
            # CLIP learns the logarithm of 1 / temperature and multiplies by its exponential
            return not any(_inverse(s.node) for s in islice(back(project, side, scope), 60))
    return False


def _inverse(node: ast.expr) -> bool:
    """True for ``x.exp()``, ``1 / x`` and what is called a scale."""
    match node:
        case ast.BinOp(left=ast.Constant(value=1), op=ast.Div()):
            return True
        case ast.Call():
            return last_name(node.func) == "exp"
        case ast.Name() | ast.Attribute():
            return "scale" in last_name(node)
    return False
