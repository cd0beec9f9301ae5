"""Generator and discriminator pull at the same label.

What: the discriminator calls fakes by the same label that the generator wants for them.
Why it matters: there is no game: the generator helps the discriminator.
When it is fine: with losses of another form (Wasserstein, hinge).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.adversarial import sides
from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.adversarial import swapped
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.spine import ends
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def train(gen, disc, loader, opt_g, opt_d, bce):
    for real in loader:
        ones, zeros = torch.ones(8, 1), torch.zeros(8, 1)
        fake = gen(torch.randn(8, 4))
        d_loss = bce(disc(real), ones) + bce(disc(fake.detach()), zeros)
        opt_d.zero_grad()
        d_loss.backward()
        opt_d.step()
        g_loss = bce(disc(fake), zeros)  # expect
        opt_g.zero_grad()
        g_loss.backward()
        opt_g.step()
""",
    """
import torch
import torch.nn.functional as F
class Gan:
    def step(self, real):
        fake = self.gen(torch.randn(8, 4))
        real_out, fake_out = self.disc(real), self.disc(fake.detach())
        bce = F.binary_cross_entropy_with_logits
        d_loss = bce(self.disc(real), torch.ones(8)) + bce(self.disc(fake.detach()), torch.zeros(8))
        d_loss.backward()
        g_loss = bce(self.disc(fake), torch.zeros(8))  # expect
        g_loss.backward()
""",
    """
import torch
import torch.nn.functional as F
class GAN:
    def __init__(self, G, D):
        self.G, self.D = G, D
        self.opt_g, self.opt_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
    def d_step(self, real):
        fake = self.G(torch.randn(len(real), 8)).detach()
        ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)
        loss = F.binary_cross_entropy_with_logits(self.D(real), zeros)
        loss = loss + F.binary_cross_entropy_with_logits(self.D(fake), ones)  # expect
        self.opt_d.zero_grad()
        loss.backward()
        self.opt_d.step()
    def g_step(self, n):
        loss = F.binary_cross_entropy_with_logits(self.D(self.G(torch.randn(n, 8))), torch.ones(n, 1))
        self.opt_g.zero_grad()
        loss.backward()
        self.opt_g.step()
""",
    """
import torch
import torch.nn.functional as F
def train(gen, disc, data):
    g_opt, d_opt = torch.optim.Adam(gen.parameters()), torch.optim.Adam(disc.parameters())
    for real in data:
        fake = gen(torch.randn(len(real), 8))
        d_loss = F.softplus(-disc(real)).mean() + F.softplus(disc(fake.detach())).mean()
        d_opt.zero_grad()
        d_loss.backward()
        d_opt.step()
        g_loss = F.softplus(disc(gen(torch.randn(len(real), 8)))).mean()  # expect
        g_opt.zero_grad()
        g_loss.backward()
        g_opt.step()
""",
)
GOOD = (
    """
import torch
def train(gen, disc, loader, bce):
    for real in loader:
        ones, zeros = torch.ones(8, 1), torch.zeros(8, 1)
        fake = gen(torch.randn(8, 4))
        d_loss = bce(disc(real), ones) + bce(disc(fake.detach()), zeros)
        d_loss.backward()
        g_loss = bce(disc(fake), ones)
        g_loss.backward()
""",
    """
import torch
import torch.nn.functional as F
def train(gen, critic, data):
    g_opt, c_opt = torch.optim.Adam(gen.parameters()), torch.optim.Adam(critic.parameters())
    for real in data:
        fake = gen(torch.randn(len(real), 8))
        c_loss = critic(fake.detach()).mean() - critic(real).mean()
        c_opt.zero_grad()
        c_loss.backward()
        c_opt.step()
        g_loss = -critic(gen(torch.randn(len(real), 8))).mean()
        g_opt.zero_grad()
        g_loss.backward()
        g_opt.step()
        hinge = F.relu(1 - critic(real)).mean() + F.relu(1 + critic(fake.detach())).mean()
        hinge.backward()
        c_opt.step()
""",
)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), swapped)


def _written(project: Project) -> Iterator[Evidence]:
    found = list(_by_side(project))
    yield from found or _in_one_function(project)


def _by_side(project: Project) -> Iterator[Evidence]:
    """What the discriminator wants of its samples against what the generator wants of its own."""
    for side in sides(project):
        if side.trains != "d":
            continue
        wanted = {kind: {s.want for s in side.scores if s.samples == kind} for kind in ("real", "fake")}
        if any(len(w) != 1 or 0 in w for w in wanted.values()):
            continue
        real, fake = wanted["real"].pop(), wanted["fake"].pop()
        worst = next(s for s in side.scores if s.samples == "fake")
        if real == fake:
            text = "the discriminator is to score real and generated samples alike"
            yield sighting(__name__, (project.statement(worst.term.node, worst.term.scope), worst.term.scope), text)
            continue
        for other in sides(project):
            own = [s for s in other.scores if s.samples == "fake" and not s.cut]
            if other.trains != "g" or not own or own[0].want != fake:
                continue
            place = worst if real < 0 else own[0]
            text = "the generator wants the label that the discriminator gives to fakes already"
            where = (project.statement(place.term.node, place.term.scope), place.term.scope)
            yield sighting(__name__, where, text, proof=[other.backward, side.backward])
            break


def _in_one_function(project: Project) -> Iterator[Evidence]:
    scopes = {c.scope for c in project.calls("backward")}
    for scope in scopes:
        detached: dict[str, tuple[str, Call]] = {}
        plain: list[tuple[str, str, Call]] = []
        for call in project.calls_by_scope.get(scope, ()):
            if len(call.node.args) != 2 or not isinstance(call.node.args[0], ast.Call) or not call.node.args[0].args:
                continue
            inner = call.node.args[0]
            label = _label(project, call.node.args[1], scope)
            argument = inner.args[0]
            if label is None or not re.search("disc|critic|netd", written(inner.func), re.IGNORECASE):
                continue
            if (
                isinstance(argument, ast.Call)
                and last_name(argument.func) == "detach"
                and isinstance(argument.func, ast.Attribute)
            ):
                detached[written(argument.func.value)] = (label, call)
            else:
                plain.append((written(argument), label, call))
        for name, label, call in plain:
            if name in detached and detached[name][0] == label:
                text = "the generator wants the label that the discriminator gives to fakes already"
                yield sighting(__name__, call, text, proof=[detached[name][1]])


def _label(project: Project, node: ast.expr, scope: Scope) -> str | None:
    """``ones`` or ``zeros``, where the target is made by one of them."""
    for value, _ in ends(project, node, scope):
        if isinstance(value, ast.Call):
            name = last_name(value.func)
            if name.startswith(("ones", "zeros")):
                return name.split("_")[0]
    return None
