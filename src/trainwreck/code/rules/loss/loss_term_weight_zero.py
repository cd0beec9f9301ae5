"""A loss term is computed and never used, or its weight is zero.

What: the training step assigns a loss (``kl``, ``aux_loss``, ``reg``) that nothing reads afterwards; or an error on
labels, or the KL term of a variational model, enters what runs backward with a factor that is always 0.
Why it matters: the term costs time and changes nothing: the objective is not the one that was meant.
When it is fine: where it is only logged, which is a use; for optional regularisers and entropy bonuses that are off.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.bounds import origin
from trainwreck.code.calls import written
from trainwreck.code.facts import function_of, text_of
from trainwreck.code.objective import Term, multipliers, objectives
from trainwreck.code.order import training_steps
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.densities import spread_free
from trainwreck.code.rehearsal.questions.dropped_terms import divergence_left_out, never_added, overwritten_sum
from trainwreck.code.rehearsal.questions.log_dets import left_out
from trainwreck.code.rehearsal.questions.never_counts import weight_stays_zero
from trainwreck.code.rehearsal.questions.squashed import density_of_squashed, stretch_left_out
from trainwreck.code.rehearsal.questions.unweighed import conditions_left_out, weight_never_read
from trainwreck.code.rehearsal.questions.variational import logarithm_missing
from trainwreck.code.rehearsal.questions.worked_flows import stretch_wrong
from trainwreck.code.rule import sighting
from trainwreck.code.terms import error_kinds, gaussian_kl
from trainwreck.code.values import values
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch.nn.functional as F
def train(model, loader, opt):
    for x in loader:
        recon, mu, logvar = model(x)
        recon_loss = F.mse_loss(recon, x)
        kl_loss = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum()  # expect
        loss = recon_loss
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    """
class Trainer:
    def fit(self):
        for x, y in self.loader:
            out, aux = self.model(x)
            task_loss = self.criterion(out, y)
            aux_loss = self.criterion(aux, y)  # expect
            total = task_loss
            self.opt.zero_grad()
            total.backward()
            self.opt.step()
""",
    """
import argparse
from torch import nn
class Losses:
    def __init__(self, w_box, w_cls):
        self.w = {"box": w_box, "cls": w_cls}
        self.box, self.cls = nn.SmoothL1Loss(), nn.CrossEntropyLoss()
    def __call__(self, out, batch):
        parts = {"box": self.box(out[0], batch["box"]), "cls": self.cls(out[1], batch["label"])}
        return sum(self.w[k] * v for k, v in parts.items())
def main(model, loader, opt):
    ap = argparse.ArgumentParser()
    ap.add_argument("--w-box", type=float, default=1.0)
    ap.add_argument("--w-cls", type=float, default=0.0)  # expect
    a = ap.parse_args()
    criterion = Losses(a.w_box, a.w_cls)
    for batch in loader:
        opt.zero_grad()
        criterion(model(batch["x"]), batch).backward()
        opt.step()
""",
    """
from dataclasses import dataclass
import torch.nn.functional as F
@dataclass
class Config:
    lr: float = 1e-3
    depth_weight: float = 0.0  # expect
def train(model, loader, opt, cfg: Config = Config()):
    for x, seg, depth in loader:
        s, d = model(x)
        loss = F.cross_entropy(s, seg) + cfg.depth_weight * F.l1_loss(d, depth)
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    """
import torch.nn.functional as F
def train(vae, loader, opt, beta=0.0):  # expect
    for x in loader:
        rec, mu, logvar = vae(x)
        loss = F.mse_loss(rec, x, reduction="sum")
        loss += beta * (-0.5 * (1 + logvar - mu.pow(2) - logvar.exp())).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    """
import copy
import torch.nn.functional as F
PLAN = {"terms": {"seg": 1.0, "edge": 2.0}, "lr": 1e-3}
CHANGES = {"terms.edge": 0.0, "lr": 1e-2}  # expect
def merged(plan, changes):
    out = copy.deepcopy(plan)
    for path, value in changes.items():
        *heads, tail = path.split(".")
        at = out
        for head in heads:
            at = at[head]
        at[tail] = value
    return out
class Objective:
    def __init__(self, terms):
        self.terms = terms
    def __call__(self, out, y):
        parts = {"seg": F.cross_entropy(out[0], y[0]), "edge": F.binary_cross_entropy_with_logits(out[1], y[1])}
        return sum(self.terms[k] * v for k, v in parts.items())
def train(model, loader, opt):
    plan = merged(PLAN, CHANGES)
    objective = Objective(plan["terms"])
    for x, y in loader:
        opt.zero_grad()
        objective(model(x), y).backward()
        opt.step()
""",
)
GOOD = """
def train(model, loader, opt, log):
    for x, y in loader:
        out, reg_loss, aux_loss = model(x, y)
        kl_loss = out.mean()
        log(kl_loss)
        rec_loss = out.sum()
        loss = rec_loss + reg_loss
        opt.zero_grad()
        loss.backward()
        opt.step()
def optional(policy, loader, opt, args, ent_coef=0.0, aux_weight=0.0, reg=0.0):
    for x, y, z in loader:
        dist, aux = policy(x)
        loss = F.mse_loss(dist.mean, y) - ent_coef * dist.entropy().mean() + reg * policy.weight.pow(2).sum()
        if aux_weight > 0:
            loss = loss + aux_weight * F.mse_loss(aux, z)
        opt.zero_grad()
        loss.backward()
        opt.step()
def keep_ranks_together(model, x, y, z):
    first, second = model(x)
    loss = 0 * (F.mse_loss(first, y) + F.l1_loss(second, z))
    loss.backward()
"""
TERM = pattern(r"(^|_)(loss|kl|kld|penalty|regulari[sz]er|reg)(_|\d|$)", re.IGNORECASE)


OPTIONAL = pattern(r"aux|reg|l1|l2|smooth|penal|distil|entropy|ent_|decay|consist|percept|lpips|ema", re.IGNORECASE)
"""Words of terms that many programs ship switched off."""


def find(project: Project) -> Iterator[Evidence]:
    alone = (spread_free, weight_never_read, weight_stays_zero, conditions_left_out)
    squashed = (stretch_left_out, density_of_squashed, stretch_wrong)
    asked = (
        left_out,
        never_added,
        overwritten_sum,
        divergence_left_out,
        logarithm_missing,
        *squashed,
        *alone,
    )
    yield from further(__name__, project, _written(project), *asked)


def _written(project: Project) -> Iterator[Evidence]:
    yield from _unused(project)
    yield from _weightless(project)


def _weightless(project: Project) -> Iterator[Evidence]:
    told: set[int] = set()
    for call, terms in objectives(project):
        if len(terms) < 2 or all(_weighed_nothing(project, t) for t in terms):
            continue  # ``0 * loss``: a backward that only keeps the ranks together
        for term in terms:
            supervised = error_kinds(project, term) or gaussian_kl(term)
            if not supervised or OPTIONAL.search(" ".join(term.names)) or _asked(project, term):
                continue
            for factor in multipliers(project, term.factors):
                known = [k.value for k in values(project, factor.node, factor.scope)]
                if factor.inverse or known not in ([0], [0.0]) or OPTIONAL.search(written(factor.node)):
                    continue
                node, scope = origin(project, factor.node, factor.scope)
                if id(node) not in told:
                    told.add(id(node))
                    text = f"{written(term.node)[:60]} enters the objective with weight 0"
                    yield sighting(__name__, (node, scope), text, proof=[call])


def _weighed_nothing(project: Project, term: Term) -> bool:
    return any(isinstance(f.node, ast.Constant) and f.node.value == 0 for f in multipliers(project, term.factors))


def _asked(project: Project, term: Term) -> bool:
    """True where the term is added only if its weight is set."""
    weights = {written(f.node) for f in term.factors}
    for above in project.ancestors(term.node, term.scope):
        if isinstance(above, ast.If | ast.IfExp) and any(w in written(above.test) for w in weights):
            return True
    return False


def _unused(project: Project) -> Iterator[Evidence]:
    for step in training_steps(project):
        if not step.steps or len(step.backward) != 1:
            continue
        read = {n.id for n in ast.walk(step.scope.node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        if "locals(" in text_of(project, step.scope):
            continue
        for node in ast.walk(step.body):
            if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
                continue
            name = node.targets[0].id
            if (
                TERM.search(name)
                and name not in read
                and isinstance(node.value, ast.Call | ast.BinOp)
                and not name.startswith("_")
                and function_of(project, node, step.scope) is step.scope.node
            ):
                yield sighting(
                    __name__,
                    (node, step.scope),
                    f"{name} is computed and never added to what runs backward",
                    proof=step.backward,
                )
