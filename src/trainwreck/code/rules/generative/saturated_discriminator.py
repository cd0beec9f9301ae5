"""The discriminator is set up to win: a learning rate far above the generator's, or a generator loss that saturates.

What: the optimizer of the discriminator has ten times the learning rate of the generator's or more; or the generator
minimises ``log(1 - D(fake))`` (``-softplus(D(fake))``, the negative of the discriminator's own loss on fakes).
Why it matters: once the discriminator tells all fakes apart, the saturating loss has next to no slope, and the
generator stands still (arXiv:1406.2661, section 3; arXiv:1701.04862).
When it is fine: a ratio of two to five (two time-scales, arXiv:1706.08500, uses 4).
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator

from trainwreck.code.bounds import interval, origin
from trainwreck.code.calls import last_name, written
from trainwreck.code.facts import optimizers, option
from trainwreck.code.objective import Term, objectives
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.adversarial import saturating
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
cfg = {"lr_g": 1e-4, "lr_d": 5e-3}  # expect
def main(gen, disc):
    opt_g = torch.optim.Adam(gen.parameters(), lr=cfg["lr_g"])
    opt_d = torch.optim.Adam(disc.parameters(), lr=cfg["lr_d"])
    return opt_g, opt_d
""",
    """
import torch
import torch.nn.functional as F
class Pair:
    def g_step(self, n):
        fake = self.G(torch.randn(n, 8))
        loss = -F.softplus(self.D(fake)).mean()  # expect
        self.g_opt.zero_grad()
        loss.backward()
        self.g_opt.step()
""",
    """
import torch
def generator_step(generator, discriminator, optim_g, z):
    fake = generator(z)
    score = torch.sigmoid(discriminator(fake))
    g_loss = torch.log(1 - score + 1e-8).mean()  # expect
    optim_g.zero_grad()
    g_loss.backward()
    optim_g.step()
""",
)
GOOD = """
import torch
import torch.nn.functional as F
def main(gen, disc, critic):
    opt_g = torch.optim.Adam(gen.parameters(), lr=1e-4)
    opt_d = torch.optim.Adam(disc.parameters(), lr=4e-4)
    for real in data():
        fake = gen(torch.randn(8, 2))
        d_loss = F.softplus(-disc(real)).mean() + F.softplus(disc(fake.detach())).mean()
        d_loss.backward()
        opt_d.step()
        d2 = -(torch.log(disc(real)) + torch.log(1 - disc(fake.detach()))).mean()
        d2.backward()
        opt_d.step()
        g_loss = F.softplus(-disc(fake)).mean()
        g_loss.backward()
        w_loss = -critic(fake).mean()
        w_loss.backward()
        opt_g.step()
"""
RATIO = 10.0
"""Two time-scale training uses 1 to 5 (arXiv:1706.08500); nobody reports more than that as useful."""
USUAL = 4e-4
"""A usual rate of Adam in adversarial training (between 1e-4 of arXiv:1802.05957 and 2e-3): tells which one is off."""
DISCRIMINATOR = pattern(r"(^|_|\.)(d|netd|disc\w*|discriminator\w*|critic)(_|\.|$)|^D$|\.D\b|\bnetD\b", re.IGNORECASE)
GENERATOR = pattern(r"(^|_|\.)(g|netg|gen|generator\w*)(_|\.|$)|^G$|\.G\b|\bnetG\b", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), saturating)


def _written(project: Project) -> Iterator[Evidence]:
    yield from _rates(project)
    for call, terms in objectives(project):
        if len(terms) <= 2 and not any(_real(t) for t in terms):
            for term in terms:
                if _saturates(project, term):
                    place = (project.statement(term.node, term.scope), term.scope)
                    yield sighting(
                        __name__,
                        place,
                        "this loss of the generator has no slope where fakes are found out",
                        proof=[call],
                    )


def _rates(project: Project) -> Iterator[Evidence]:
    rates: dict[str, list[tuple[float, ast.expr, Scope]]] = {"d": [], "g": []}
    for call in optimizers(project):
        params = call.argument("params", 0)
        side = _side(params) if params is not None else ""
        rate = option(project, call, "lr", 1)
        if side and rate is not None:
            low, high = interval(project, *rate)
            if low == high and low > 0:
                rates[side].append((low, *rate))
    if len(rates["d"]) != 1 or len(rates["g"]) != 1:
        return
    (d, d_node, d_scope), (g, g_node, g_scope) = rates["d"][0], rates["g"][0]
    if d / g >= RATIO:
        odd = (g_node, g_scope) if abs(math.log(g / USUAL)) > abs(math.log(d / USUAL)) else (d_node, d_scope)
        text = f"the discriminator learns {d / g:g} times as fast as the generator ({d:g} against {g:g})"
        yield sighting(__name__, origin(project, *odd), text)


def _side(params: ast.expr) -> str:
    """``d`` or ``g`` by what the optimizer is given the parameters of."""
    text = written(params).split(".parameters")[0].split(".named_parameters")[0].split("(")[-1].split("[")[-1]
    if DISCRIMINATOR.search(text) and not GENERATOR.search(text):
        return "d"
    return "g" if GENERATOR.search(text) and not DISCRIMINATOR.search(text) else ""


def _real(term: Term) -> bool:
    return bool(re.search(r"real|true|\bx\b", written(term.node), re.IGNORECASE))


def _saturates(project: Project, term: Term) -> bool:
    """``-softplus(D(fake))`` or ``+log(1 - D(fake))`` with fakes that carry gradients."""
    if "detach" in written(term.node):
        return False
    asked = [_flat(node, term.sign) for node in ast.walk(term.node) if isinstance(node, ast.Call)]
    return any(score is not None and _scores_fakes(project, score, term.scope) for score in asked)


def _flat(node: ast.Call, sign: int) -> ast.expr | None:
    """The scores in a loss that is flat where fakes are told apart, None for any other."""
    name, args = last_name(node.func), node.args
    first = args[0] if args else node.func.value if isinstance(node.func, ast.Attribute) else None
    if first is None:
        return None
    turned = isinstance(first, ast.UnaryOp)
    if (name == "softplus" and sign < 0 and not turned) or (name == "logsigmoid" and sign > 0 and turned):
        return first
    if name == "log" and sign > 0 and _one_minus(first):
        return first
    if name == "binary_cross_entropy_with_logits" and sign < 0 and len(args) > 1 and "zeros" in written(args[1]):
        return first
    return None


def _one_minus(node: ast.expr) -> bool:
    return any(
        isinstance(n, ast.BinOp) and isinstance(n.op, ast.Sub) and written(n.left) in ("1", "1.0")
        for n in ast.walk(node)
    )


def _scores_fakes(project: Project, node: ast.expr, scope: Scope, depth: int = 0) -> bool:
    """True if a discriminator is called on something generated, here or where a name in ``node`` was set."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call) and DISCRIMINATOR.search(written(inner.func)):
            arguments = " ".join(written(a) for a in inner.args)
            if re.search(r"fake|gen|sample|\bG\b|\bz\b", arguments, re.IGNORECASE) and "detach" not in arguments:
                return True
        if isinstance(inner, ast.Name) and depth < 2:
            for binding in project.lookup(inner.id, scope):
                value = binding.value if binding.kind == "assign" and binding.scope is scope else None
                if value is not None and value is not node and _scores_fakes(project, value, scope, depth + 1):
                    return True
    return False
