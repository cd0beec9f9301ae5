"""The generator's loss is computed on detached samples.

What: ``fake = gen(z).detach()`` (or under ``no_grad``) is used for the discriminator and then for the generator's
loss.
Why it matters: no gradient reaches the generator; its loss rises while its weights stay.
When it is fine: where only the discriminator's part uses the detached samples.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.flow import back
from trainwreck.code.order import constructors, position, training_steps
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = """
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
"""
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
"""


def find(project: Project) -> Iterator[Evidence]:
    for training in training_steps(project):
        told: set[int] = set()
        if len({written(s.receiver) for s in training.steps}) < 2:
            continue
        for backward in training.backward:
            step = _next_step(training.steps, backward)
            owned = _owned(project, step) if step is not None else ""
            if step is None or not owned or backward.receiver is None:
                continue
            cut, whole = [], False
            for found in back(project, backward.receiver, backward.scope):
                node = found.node
                if not isinstance(node, ast.Call) or written(node.func) != owned or found.scope is not backward.scope:
                    continue
                chain = [s for s in found.chain()[1:] if isinstance(s.node, ast.Call)]
                cuts = [s for s in chain if last_name(s.node) == "detach"]
                cut += cuts[:1]
                whole = whole or not cuts
            if cut and not whole and id(cut[0].node) not in told:
                told.add(id(cut[0].node))
                text = f"the samples of {owned} are detached here, and its own loss is computed on them"
                yield sighting(__name__, cut[0], text, proof=[backward, step])


def _next_step(steps: list[Call], backward: Call) -> Call | None:
    after = [s for s in steps if position(s.node) > position(backward.node)]
    return min(after, key=lambda s: position(s.node)) if after else None


def _owned(project: Project, step: Call) -> str:
    """The name whose parameters the optimizer has."""
    for made in constructors(project, step.receiver, step.scope) if step.receiver is not None else ():
        for argument in made.node.args[:1]:
            if isinstance(argument, ast.Call) and last_name(argument.func) == "parameters":
                return written(argument.func).rsplit(".", 1)[0]
    return ""
