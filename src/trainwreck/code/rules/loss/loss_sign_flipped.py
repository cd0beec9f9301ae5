"""The loss is minimised with the wrong sign.

What: the only loss of the program is the negative of a distance or cross entropy, and a plain optimizer minimises
it.
Why it matters: the error is maximised: the loss falls without bound and predictions get worse.
When it is fine: for adversarial ascent, or with ``maximize=True``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import names_in, source
from trainwreck.code.objective import Term, objectives
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers, further
from trainwreck.code.rehearsal.questions.answer_margins import both_raised
from trainwreck.code.rehearsal.questions.attraction import pushed_apart
from trainwreck.code.rehearsal.questions.box_penalties import penalty_turned
from trainwreck.code.rehearsal.questions.corrupted import drawn_preferred
from trainwreck.code.rehearsal.questions.densities import likelihood_turned, logarithm_turned
from trainwreck.code.rehearsal.questions.distilling import pushed_from_teacher
from trainwreck.code.rehearsal.questions.drawn_items import drawn_pushed_up, order_turned, single_scores
from trainwreck.code.rehearsal.questions.energies import against_sampler
from trainwreck.code.rehearsal.questions.exact_solutions import sign_of_residual
from trainwreck.code.rehearsal.questions.flows import stretched
from trainwreck.code.rehearsal.questions.forms import clip_turned
from trainwreck.code.rehearsal.questions.held_small import one_taken_off, smallness_punished
from trainwreck.code.rehearsal.questions.known_pairs import pairs_apart, triplets_turned
from trainwreck.code.rehearsal.questions.own_direction import uphill
from trainwreck.code.rehearsal.questions.penalties import wrong_way
from trainwreck.code.rehearsal.questions.preferences import likelihood_minimised
from trainwreck.code.rehearsal.questions.pulling import (
    choices_dulled,
    divergence_maximised,
    margin_turned,
    pulled_apart,
    sets_apart,
    views_apart,
)
from trainwreck.code.rehearsal.questions.quantiles import sides_exchanged
from trainwreck.code.rehearsal.questions.shares_of_overlap import overlap_falls
from trainwreck.code.rehearsal.questions.signs import divergence, flipped
from trainwreck.code.rehearsal.questions.soft import squashed_wrongly, temperature_turned
from trainwreck.code.rehearsal.questions.spread import narrowed
from trainwreck.code.rehearsal.questions.targets import error_raised
from trainwreck.code.rehearsal.questions.uncertainty import unbounded
from trainwreck.code.rehearsal.questions.variational import one_sign_wrong
from trainwreck.code.rehearsal.questions.without_end import falls_without_end, labels_make_no_difference
from trainwreck.code.rehearsal.questions.worked_flows import sign_wrong
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import is_loss
from trainwreck.code.terms import LIKELIHOOD, calls_in, error_kinds, formula, gaussian_kl
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
import torch.nn.functional as F
def train(model, loader):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        opt.zero_grad()
        loss = -F.cross_entropy(model(x), y)  # expect
        loss.backward()
        opt.step()
""",
    """
import torch
from torch import nn
class Trainer:
    def __init__(self, model):
        self.model = model
        self.opt = torch.optim.Adam(model.parameters())
        self.criterion = nn.MSELoss()
    def step(self, x, y):
        for _ in range(3):
            self.opt.zero_grad()
            loss = self.criterion(self.model(x), y)
            (-loss).backward()  # expect
            self.opt.step()
""",
    """
import torch
import torch.nn.functional as F
def elbo(x, recon, mu, logvar):
    rec = F.mse_loss(recon, x, reduction="none").sum(1).mean()
    kl = (-0.5 * (1 + logvar - mu.pow(2) - logvar.exp())).sum(1).mean()
    return -rec - kl
def train(vae, loader, opt):
    for x in loader:
        recon, mu, logvar = vae(x)
        loss = elbo(x, recon, mu, logvar)  # expect
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    """
import torch
class Agent:
    def update(self, batch, ent_coef=0.01):
        dist = torch.distributions.Categorical(logits=self.policy(batch.obs))
        pg = -(dist.log_prob(batch.actions) * batch.advantages).mean()
        entropy = dist.entropy().mean()
        loss = pg + ent_coef * entropy  # expect
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
""",
    """
import torch.nn.functional as F
def train(net, head, loader, opt):
    for a, b in loader:
        za, zb = net(a), net(b)
        loss = F.cosine_similarity(head(za), zb.detach(), dim=-1).mean()  # expect
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    """
import torch.nn.functional as F
def train(vae, loader, opt, beta=1.0):
    for x in loader:
        recon, mu, logvar = vae(x)
        kl = 0.5 * (mu.pow(2) + logvar.exp() - 1 - logvar).sum(1).mean()
        loss = F.mse_loss(recon, x) - beta * kl  # expect
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = nn.Linear(64, 16), nn.Linear(8, 64)
    def forward(self, x):
        mu, latent_logvar = self.enc(x).chunk(2, -1)
        return self.dec(mu + torch.randn_like(mu) * torch.exp(latent_logvar / 2)), mu, latent_logvar
def train(loader, net=Net()):
    opt = torch.optim.Adam(net.parameters())
    for x in loader:
        recon, mu, lv = net(x)
        kl = 0.5 * torch.sum(lv.exp() - lv - 1 - mu ** 2, dim=1).mean()  # expect
        loss = ((recon - x) ** 2).sum(1).mean() + kl
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
)
GOOD = (
    """
import torch
import torch.nn.functional as F
def train(model, loader):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        opt.zero_grad()
        logp = -F.log_softmax(model(x), 1)
        loss = -F.cosine_similarity(model(x), y).mean() + F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
""",
    """
import torch
import torch.nn.functional as F
def elbo(x, recon, mu, logvar):
    rec = F.mse_loss(recon, x, reduction="none").sum(1).mean()
    kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp(), dim=1).mean()
    return -rec - kl
def train(vae, loader, opt, policy):
    for x in loader:
        recon, mu, logvar = vae(x)
        loss = -elbo(x, recon, mu, logvar)
        opt.zero_grad()
        loss.backward()
        dist = policy(x)
        nll = -dist.log_prob(x).mean() - F.cosine_similarity(mu, recon.detach()).mean()
        pg = -(dist.log_prob(x) * x).mean() - 0.01 * dist.entropy().mean()
        (nll + pg).backward()
        semi = F.mse_loss(recon, x) + 0.1 * dist.entropy().mean()
        semi.backward()
        opt.step()
""",
)
ASCENT = pattern(
    r"adversar|attack|perturb|ascent|maximi[sz]e|domain|grad_?revers|\bgan\b|discrim|unlearn|forget|\btent\b|(?-i:\bMINE\b)",
    re.IGNORECASE,
)
KINDS = {
    "crossentropy",
    "mse",
    "l1",
    "smoothl1",
    "huber",
    "nll",
    "binarycrossentropywithlogits",
    "bcewithlogits",
    "bce",
}


def find(project: Project) -> Iterator[Evidence]:
    if ASCENT.search(source(project)):
        return
    asked = (one_sign_wrong, divergence, stretched, narrowed, against_sampler, unbounded, sides_exchanged, sign_wrong)
    found = next((f for q in asked if (f := list(answers(__name__, project, q)))), [])
    found = found or list(_written(project))
    yield from found
    if not found:
        pulls = (pulled_apart, views_apart, divergence_maximised, sets_apart, choices_dulled, margin_turned, wrong_way)
        rest = list(further(__name__, project, (), flipped, pushed_apart, pushed_from_teacher, *pulls))
        yield from rest or further(
            __name__,
            project,
            (),
            overlap_falls,
            drawn_pushed_up,
            likelihood_turned,
            drawn_preferred,
            logarithm_turned,
            falls_without_end,
            labels_make_no_difference,
            single_scores,
            likelihood_minimised,
            both_raised,
            smallness_punished,
            one_taken_off,
            pairs_apart,
            triplets_turned,
            order_turned,
            penalty_turned,
        )
        yield from answers(__name__, project, clip_turned)
        yield from answers(__name__, project, squashed_wrongly)
        yield from answers(__name__, project, temperature_turned)
        yield from answers(__name__, project, error_raised)
        yield from answers(__name__, project, uphill)
        yield from answers(__name__, project, sign_of_residual)


def _written(project: Project) -> Iterator[Evidence]:
    told: set[int] = set()
    for call, terms in objectives(project):
        wrong = [(t, why) for t in terms if (why := _wrong(project, t, terms))]
        if not wrong:
            continue
        place = _place(project, call, wrong[0][0], whole=len(wrong) == len(terms))
        if id(place[0]) not in told:
            told.add(id(place[0]))
            yield sighting(__name__, place, wrong[0][1], proof=[call])


def _wrong(project: Project, term: Term, terms: list[Term]) -> str:
    """Why the sign of the term is wrong, empty where it is not or nothing is known."""
    called = any(is_loss(project, c) for c in calls_in(term))  # a difference of two squares may be a margin
    if called and error_kinds(project, term) & KINDS and term.sign < 0:
        return "the negative of the error is minimised"
    if gaussian_kl(term) and _kl_sign(term) < 0:
        return "the divergence from the prior is maximised"
    policy = any(names_in(t.node, LIKELIHOOD) for t in terms if t is not term)
    bonus = any(c.name == "entropy" for c in calls_in(term))
    if bonus and term.sign > 0 and policy and not error_kinds(project, term):
        return "the entropy of the policy is minimised instead of rewarded"
    node = formula(term)
    if isinstance(node, ast.Call) and term.sign > 0:
        name = last_name(node.func)
        if name == "cosine_similarity" and "detach" in written(node):
            return "the similarity of the two views is minimised"
        learns = any(True for _ in project.calls("step"))  # gradients alone are a sensitivity
        if name == "log_prob" and learns and len(terms) == 1 and not isinstance(term.node, ast.BinOp):
            return "the likelihood of the data is minimised"
    return ""


def _kl_sign(term: Term) -> int:
    """+1 where the divergence is minimised: the sign of its ``exp(logvar)`` in the objective."""
    sign = term.sign
    node: ast.expr = term.node
    while True:
        match node:
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                sign, node = -sign, inner
            case ast.BinOp(op=ast.Mult(), left=left, right=right):
                negative, node = _negative(left, right)
                sign = -sign if negative else sign
            case ast.BinOp(op=ast.Div(), left=inner):
                node = inner
            case ast.Call(func=ast.Attribute(value=ast.Name(id="torch")), args=[inner, *_]):
                node = inner
            case ast.Call(func=ast.Attribute(value=inner, attr="sum" | "mean")):
                node = inner
            case _:
                break
    return sign * (_leaf_sign(node, 1) or sign)


def _negative(left: ast.expr, right: ast.expr) -> tuple[bool, ast.expr]:
    """Whether the constant of a product is negative, and its other side."""
    for number_, other in ((left, right), (right, left)):
        if isinstance(number_, ast.UnaryOp) and isinstance(number_.operand, ast.Constant):
            return True, other
        if isinstance(number_, ast.Constant):
            return False, other
    return False, right


def _leaf_sign(node: ast.expr, sign: int) -> int:
    """The sign of the exponential among the summands, 0 where there is none."""
    match node:
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            return _leaf_sign(left, sign) or _leaf_sign(right, sign)
        case ast.BinOp(op=ast.Sub(), left=left, right=right):
            return _leaf_sign(left, sign) or _leaf_sign(right, -sign)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return _leaf_sign(inner, -sign)
        case ast.Call() if last_name(node.func) == "exp":
            return sign
    return 0


def _place(project: Project, call: Call, term: Term, *, whole: bool) -> tuple[ast.AST, Scope]:
    """The line that gives the sign: of the whole objective, or where the term is added."""
    receiver = call.receiver
    if isinstance(receiver, ast.Name):
        found = [b for b in project.lookup(receiver.id, call.scope) if b.kind == "assign" and b.line <= call.line]
        last = max(found, key=lambda b: b.line, default=None)
    else:
        last = None
    names = {n.rsplit(".", 1)[-1] for n in term.names}
    if not whole:
        for scope in {term.scope, call.scope, *(f.scope for f in term.factors)}:
            for node in project.within(scope, ast.BinOp):
                assert isinstance(node, ast.BinOp)
                used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
                above = project.parent(node, scope)
                if names & used and isinstance(node.op, ast.Add | ast.Sub) and not isinstance(above, ast.BinOp):
                    return project.statement(node, scope), scope
        return project.statement(term.node, term.scope), term.scope
    if _signed(term, project):
        return project.statement(term.node, term.scope), term.scope
    return (last.node, last.scope) if last is not None else (call.node, call.scope)


def _signed(term: Term, project: Project) -> bool:
    """True where the minus stands in the statement of the term itself."""
    statement = project.statement(term.node, term.scope)
    return any(
        isinstance(n, ast.UnaryOp) and isinstance(n.op, ast.USub) and not isinstance(n.operand, ast.Constant)
        for n in ast.walk(statement)
    )
