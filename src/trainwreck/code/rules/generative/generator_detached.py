"""The generator's loss is computed on detached samples.

What: ``fake = gen(z).detach()`` (or under ``no_grad``) is used for the discriminator and then for the generator's
loss.
Why it matters: no gradient reaches the generator; its loss rises while its weights stay.
When it is fine: where only the discriminator's part uses the detached samples.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.adversarial import owner_of
from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import optimizers
from trainwreck.code.flow import back
from trainwreck.code.order import under_no_grad
from trainwreck.code.params import held
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.adversarial import maker_cut_off
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
from torch import nn
def main(data, bce):
    gen, disc = nn.Linear(4, 2), nn.Linear(2, 1)
    g_opt = torch.optim.Adam(gen.parameters())
    d_opt = torch.optim.Adam(disc.parameters())
    for real in data:
        fake = gen(torch.randn(8, 4)).detach()  # expect
        d_loss = bce(disc(real), 1) + bce(disc(fake), 0)
        d_opt.zero_grad()
        d_loss.backward()
        d_opt.step()
        g_loss = bce(disc(fake), 1)
        g_opt.zero_grad()
        g_loss.backward()
        g_opt.step()
""",
    """
import torch
import torch.nn.functional as F
class GAN:
    def __init__(self, G, D):
        self.G, self.D = G, D
        self.og, self.od = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
    def g_step(self, n):
        with torch.no_grad():  # expect
            fake = self.G(torch.randn(n, 8))
        loss = F.softplus(-self.D(fake)).mean()
        self.og.zero_grad()
        loss.backward()
        self.og.step()
""",
)
GOOD = """
import torch
from torch import nn
def main(data, bce):
    gen, disc = nn.Linear(4, 2), nn.Linear(2, 1)
    g_opt = torch.optim.Adam(gen.parameters())
    d_opt = torch.optim.Adam(disc.parameters())
    for real in data:
        fake = gen(torch.randn(8, 4))
        d_loss = bce(disc(real), 1) + bce(disc(fake.detach()), 0)
        d_opt.zero_grad()
        d_loss.backward()
        d_opt.step()
        g_loss = bce(disc(fake), 1)
        g_opt.zero_grad()
        g_loss.backward()
        g_opt.step()
def collect(env):
    actor, critic = nn.Linear(3, 1), nn.Linear(3, 1)
    a_opt, c_opt = torch.optim.Adam(actor.parameters()), torch.optim.Adam(critic.parameters())
    state = torch.tensor(env.reset())
    for step in range(1000):
        dist = torch.distributions.Normal(actor(state), 1.0)
        action, value = dist.sample(), critic(state)
        reached, reward, done = env.step(action.numpy())
        state = torch.tensor(reached)
        a_loss = -(dist.log_prob(action) * (reward - value.detach())).mean()
        a_opt.zero_grad()
        a_loss.backward()
        a_opt.step()
        c_loss = (value - reward).pow(2).mean()
        c_opt.zero_grad()
        c_loss.backward()
        c_opt.step()
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), maker_cut_off)


def _written(project: Project) -> Iterator[Evidence]:
    told: set[int] = set()
    for backward in project.calls("backward"):
        owned = owner_of(project, backward)
        receiver = backward.receiver
        if len(owned) != 1 or receiver is None or not _adversarial(project, receiver, backward, owned[0]):
            continue
        cut, whole = _samples(project, receiver, backward, owned[0])
        if cut and not whole and id(cut[0][0]) not in told and not _others(project, backward, owned):
            told.add(id(cut[0][0]))
            text = f"the samples of {owned[0]} are cut off here, and its own loss is computed on them"
            yield sighting(__name__, cut[0], text, proof=[backward])


def _samples(
    project: Project, receiver: ast.expr, backward: Call, owned: str
) -> tuple[list[tuple[ast.AST, Scope]], bool]:
    """Where the samples that a loss is computed on are cut off, and whether some of them are not."""
    cut: list[tuple[ast.AST, Scope]] = []
    whole = False
    for found in back(project, receiver, backward.scope):
        node = found.node
        if not isinstance(node, ast.Call) or written(node.func).rsplit(".", 1)[-1] != owned.rsplit(".", 1)[-1]:
            continue
        chain = [s for s in found.chain()[1:] if isinstance(s.node, ast.Call)]
        cuts: list[tuple[ast.AST, Scope]] = [(s.node, s.scope) for s in chain if last_name(s.node) == "detach"]
        around = under_no_grad(project, node, found.scope)
        if around is not None:
            cuts.append((around, found.scope))
        cut += cuts[:1]
        whole = whole or not cuts
    return cut, whole


def _others(project: Project, backward: Call, owned: list[str]) -> bool:
    """True where another backward that the same step follows reaches the maker: this one may be the judge's."""
    for other in project.calls_by_scope.get(backward.scope, ()):
        if other.name != "backward" or other.node is backward.node or other.receiver is None:
            continue
        if owner_of(project, other) == owned and _samples(project, other.receiver, other, owned[0])[1]:
            return True
    return False


def _adversarial(project: Project, receiver: ast.expr, backward: Call, owned: str) -> bool:
    """True if another network with an optimizer of its own scores what the loss is made of."""
    others = {
        written(item.node).rsplit(".", 1)[-1]
        for built in optimizers(project)
        for item in held(project, built)[0]
        if item.whole
    } - {owned.rsplit(".", 1)[-1]}
    return any(
        isinstance(s.node, ast.Call) and written(s.node.func).rsplit(".", 1)[-1] in others
        for s in back(project, receiver, backward.scope)
    )
