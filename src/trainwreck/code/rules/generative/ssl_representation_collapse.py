"""Two views are pulled together and nothing keeps the embeddings apart.

What: the objective is only the similarity (or distance) of two embeddings by networks that learn: no stop-gradient,
no averaged target network, no negatives, no term on variance or covariance.
Why it matters: a constant embedding is optimal, and training finds it (SimSiam, arXiv:2011.10566, section 4.1).
When it is fine: with ``detach`` on one side, with negatives, VICReg or Barlow Twins terms.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.facts import source
from trainwreck.code.objective import Term, objectives
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.all_alike import constant_is_best
from trainwreck.code.rehearsal.questions.corrupted import nothing_asked
from trainwreck.code.rehearsal.questions.self_targets import dulled, uncentred
from trainwreck.code.rehearsal.questions.views import collapsing
from trainwreck.code.rule import sighting
from trainwreck.code.terms import formula
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch.nn.functional as F
from torch import nn
class Siam(nn.Module):
    def __init__(self):
        super().__init__()
        self.f, self.h = nn.Linear(8, 8), nn.Linear(8, 8)
    def forward(self, a, b):
        za, zb = self.f(a), self.f(b)
        pa, pb = self.h(za), self.h(zb)
        return -(F.cosine_similarity(pa, zb, dim=-1).mean() + F.cosine_similarity(pb, za, dim=-1).mean()) / 2  # expect
def train(loader, opt):
    model = Siam()
    for a, b in loader:
        loss = model(a, b)
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    """
import torch.nn.functional as F
def distance(p, z):
    p, z = F.normalize(p, dim=-1), F.normalize(z, dim=-1)
    return 2 - 2 * (p * z).sum(-1).mean()  # expect
def train(encoder, predictor, loader, opt):
    for view1, view2 in loader:
        z1, z2 = encoder(view1), encoder(view2)
        loss = distance(predictor(z1), z2)
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
)
GOOD = """
import torch
import torch.nn.functional as F
from torch import nn
def neg_cos(p, z):
    return -F.cosine_similarity(p, z.detach(), dim=-1).mean()
def train(f, h, loader, opt, teacher_vectors):
    for a, b in loader:
        loss = neg_cos(h(f(a)), f(b))
        loss.backward()
        fit = F.mse_loss(f(a), b)
        fit.backward()
        opt.step()
"""
KEPT_APART = pattern(
    r"detach|no_grad|stop_?grad|momentum|ema|target_(net|encoder|network)|std\(|var\(|cov|eye\(|off_diag|cross_entropy|"
    r"logsumexp|negative|triplet|margin|queue|deepcopy|teacher|relu\(.*margin",
    re.IGNORECASE,
)
TWO_VIEWS = pattern(
    r"(?<![.\w])view|_view|view_?\d|aug|siam|byol|simclr|self.?superv|predictor|projector|positive", re.IGNORECASE
)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(
        __name__, project, _written(project), collapsing, dulled, uncentred, constant_is_best, nothing_asked
    )


def _written(project: Project) -> Iterator[Evidence]:
    text = source(project)
    if not TWO_VIEWS.search(text) or KEPT_APART.search(_code(text)):
        return
    for call, terms in objectives(project):
        if terms and all(_pulls(t) for t in terms):
            place = (project.statement(terms[0].node, terms[0].scope), terms[0].scope)
            yield sighting(
                __name__, place, "the two views are pulled together and nothing keeps them apart", proof=[call]
            )
            return


def _code(text: str) -> str:
    """The text without its evaluation under ``no_grad`` decorators: these say nothing about training."""
    return re.sub(
        r"(?<=\n)([ \t]*)@torch\.(no_grad|inference_mode)\(\)\s+def \w+\(.*?(?=\n\1?\S|\Z)", "", text, flags=re.S
    )


def _pulls(term: Term) -> bool:
    """True for a similarity with a minus, a distance of normalised vectors, or the constant beside it."""
    node = formula(term)
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Call) and last_name(node.func) == "cosine_similarity":
        return term.sign < 0
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and written(node.left) in ("2", "2.0", "1", "1.0"):
        return True
    product = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)
    return term.sign < 0 and product and "normalize" in written(term.scope.node)
