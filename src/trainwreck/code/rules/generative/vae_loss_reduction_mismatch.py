"""The reconstruction is averaged and the KL term is summed.

What: ``F.mse_loss(recon, x)`` with its mean, plus ``-0.5 * torch.sum(1 + logvar - ...)`` over everything.
Why it matters: the KL term is larger by batch times pixels: the latent is ignored (posterior collapse).
When it is fine: where a weight or a division brings them to one scale.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import (
    made,
    option,
    text_of,
)
from trainwreck.code.objective import Factor, objectives, weight
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.variational import mismatched_reductions
from trainwreck.code.rule import sighting
from trainwreck.code.seek import losses
from trainwreck.code.spine import call_ends
from trainwreck.code.terms import error_kinds, gaussian_kl, is_kl, reductions
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
import torch.nn.functional as F
def loss_fn(recon, x, mu, logvar):
    rec = F.mse_loss(recon, x)
    kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())  # expect
    return rec + kl
""",
    """
import torch
from torch import nn
criterion = nn.BCELoss()
def vae_loss(out, x, mean, log_var):
    kld = -0.5 * (1 + log_var - mean**2 - log_var.exp()).sum()  # expect
    return criterion(out, x) + kld
""",
    """
import torch
import torch.nn.functional as F
def vae_loss(x, recon, mu, logvar, beta):
    rec = F.mse_loss(recon, x)
    kl = -0.5 * torch.sum(1 + logvar - mu**2 - logvar.exp(), dim=1).sum()  # expect
    return rec + beta * kl
def train(vae, loader, opt):
    for x in loader:
        recon, mu, logvar = vae(x)
        loss = vae_loss(x, recon, mu, logvar, 1.0)
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
)
GOOD = """
import torch
import torch.nn.functional as F
def loss_fn(recon, x, mu, logvar, beta):
    rec = F.mse_loss(recon, x, reduction="sum")
    kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    mean = -0.5 * torch.mean(1 + logvar - mu.pow(2) - logvar.exp())
    return rec + kl + F.mse_loss(recon, x) + mean
def scaled(recon, x, mu, logvar, beta):
    kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp()) / x.size(0)
    return F.mse_loss(recon, x) + kl
def weighted(recon, x, mu, logvar, beta):
    kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return F.mse_loss(recon, x) + beta * kl
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), mismatched_reductions)


def _written(project: Project) -> Iterator[Evidence]:
    told: set[int] = set()
    for item in (*_in_one_function(project), *_by_terms(project)):
        key = item.where.line or 0
        if key not in told:
            told.add(key)
            yield item


def _by_terms(project: Project) -> Iterator[Evidence]:
    """The reconstruction is a mean over all elements, the divergence a sum, and no weight makes up for it."""
    for call, terms in objectives(project):
        recon = next((t for t in terms if error_kinds(project, t) and not is_kl(t)), None)
        kl = next((t for t in terms if gaussian_kl(t)), None)
        if recon is None or kl is None or reductions(project, recon) != {"mean"} or reductions(project, kl) != {"sum"}:
            continue
        weights = [
            weight(project, t._replace(factors=tuple(f for f in t.factors if not _half(f)))) for t in (kl, recon)
        ]
        if weights[0] is None or weights[1] is None or weights[1] == 0 or weights[0] / weights[1] < HEAVY:
            continue
        text = "this sums over the batch and all dimensions, and the reconstruction beside it is a mean"
        yield sighting(__name__, (project.statement(kl.node, kl.scope), kl.scope), text, proof=[call])


HEAVY = 0.3
"""A weight below this is taken for one that balances the two reductions."""


def _half(factor: Factor) -> bool:
    return written(factor.node) in ("0.5", "-0.5", "2", "2.0")


def _in_one_function(project: Project) -> Iterator[Evidence]:
    for scope in project.functions:
        text = text_of(project, scope)
        if ".exp()" not in text and "exp(" not in text:
            continue
        for node in project.within(scope, ast.Assign):
            assert isinstance(node, ast.Assign)
            if not isinstance(node.targets[0], ast.Name) or not _summed_kl(node.value):
                continue
            name = node.targets[0].id
            for total in project.within(scope, ast.BinOp):
                assert isinstance(total, ast.BinOp)
                if not isinstance(total.op, ast.Add) or name not in (written(total.left), written(total.right)):
                    continue
                other = total.right if written(total.left) == name else total.left
                found = call_ends(project, other, scope)
                mean = [c for c in found if any(c.node is k.node for k in losses(project)) and _mean(project, c)]
                if len(found) == 1 and mean:
                    text = "this sums over the batch and all dimensions, and the reconstruction beside it is a mean"
                    yield sighting(__name__, (node, scope), text, proof=mean)
                    break


def _summed_kl(node: ast.expr) -> bool:
    text = written(node)
    product = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)
    return (
        product
        and text.startswith("-0.5 * ")
        and "exp" in text
        and (("torch.sum(" in text and "dim" not in text) or text.endswith(".sum()"))
    )


def _mean(project: Project, call: Call) -> bool:
    makers = [call, *made(project, call.node.func, call.scope)]
    return not any(option(project, m, "reduction") is not None or m.open_ended for m in makers)
