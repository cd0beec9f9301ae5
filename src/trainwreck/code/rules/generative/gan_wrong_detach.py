"""The discriminator's step pushes gradients into the generator.

What: the discriminator loss uses undetached fakes, and the generator's gradients are not cleared before its own
step.
Why it matters: the generator gets the gradient that makes its fakes easier to tell apart, on top of its own.
When it is fine: where the generator's ``zero_grad`` comes after the discriminator's backward.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.facts import (
    later,
)
from trainwreck.code.order import (
    position,
    training_steps,
    under_no_grad,
)
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.adversarial import leaking
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
def train(gen, disc, loader, opt_g, opt_d, bce, ones, zeros, noise):
    for real in loader:
        opt_g.zero_grad()
        opt_d.zero_grad()
        fake = gen(noise())
        d_loss = bce(disc(real), ones) + bce(disc(fake), zeros)  # expect
        d_loss.backward(retain_graph=True)
        opt_d.step()
        g_loss = bce(disc(fake), ones)
        g_loss.backward()
        opt_g.step()
""",
)
GOOD = """
def train(gen, disc, loader, opt_g, opt_d, bce, ones, zeros, noise):
    for real in loader:
        opt_d.zero_grad()
        fake = gen(noise())
        d_loss = bce(disc(real), ones) + bce(disc(fake.detach()), zeros)
        d_loss.backward()
        opt_d.step()
        opt_g.zero_grad()
        g_loss = bce(disc(fake), ones)
        g_loss.backward()
        opt_g.step()
    for real in loader:
        fake = gen(noise())
        d_loss = bce(disc(real), ones) + bce(disc(fake), zeros)
        d_loss.backward(retain_graph=True)
        opt_d.step()
        opt_g.zero_grad()
        g_loss = bce(disc(fake), ones)
        g_loss.backward()
        opt_g.step()
"""
DISC = pattern(r"(^|[._])(d|disc|discriminator|critic|netd|d_net)$", re.IGNORECASE)
GEN = pattern(r"(^|[._])(g|gen|generator|netg|g_net)$", re.IGNORECASE)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), leaking)


def _written(project: Project) -> Iterator[Evidence]:
    for step in training_steps(project):
        calls = sorted((c for c in step.backward if isinstance(c.receiver, ast.Name)), key=lambda c: position(c.node))
        if len(calls) != 2 or step.loop is None:
            continue
        first, second = calls
        assigns = {
            written(n.targets[0]): n
            for n in ast.walk(step.body)
            if isinstance(n, ast.Assign) and not later(n, first.node)
        }
        loss = assigns.get(written(first.receiver))
        if loss is None:
            continue
        fakes = [
            n.args[0].id
            for n in ast.walk(loss.value)
            if isinstance(n, ast.Call) and DISC.search(written(n.func)) and n.args and isinstance(n.args[0], ast.Name)
        ]
        made_by_gen = [
            f
            for f in fakes
            if f in assigns
            and isinstance(assigns[f].value, ast.Call)
            and GEN.search(written(getattr(assigns[f].value, "func", assigns[f].value)))
        ]
        if not made_by_gen or under_no_grad(project, assigns[made_by_gen[0]].value, step.scope) is not None:
            continue
        between = [z for z in step.zeros if later(z.node, first.node) and later(second.node, z.node)]
        if not between:
            yield sighting(
                __name__,
                (loss, step.scope),
                "the fakes are not detached here, and the generator keeps this gradient",
                proof=calls,
            )
