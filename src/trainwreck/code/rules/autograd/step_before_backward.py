"""An optimizer changes the weights between the forward pass of a loss and its backward pass.

What: a loss is computed, another optimizer steps over the same network, then the loss goes backward.
Why it matters: autograd saved the old weights; it notices that they were changed in place and fails. Where it does
not notice, the gradient belongs to other weights.
When it is fine: where the loss does not use what the optimizer changes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.flow import back
from trainwreck.code.order import constructors, position, training_steps
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.freed import stepped_between
from trainwreck.code.rule import guess, sighting
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

SURFACES = (r"modified by an inplace operation",)
ERROR = "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation"
BAD = """
import torch
from torch import nn
def main(data):
    actor, critic = nn.Linear(4, 2), nn.Linear(4, 1)
    a_opt = torch.optim.Adam(actor.parameters())
    c_opt = torch.optim.Adam(critic.parameters())
    for x in data:
        c_loss = critic(x).pow(2).mean()
        a_loss = -critic(actor(x)).mean()
        c_opt.zero_grad()
        c_loss.backward()
        c_opt.step()  # expect
        a_opt.zero_grad()
        a_loss.backward()  # fails
        a_opt.step()
"""
GOOD = """
import torch
from torch import nn
def main(data):
    actor, critic = nn.Linear(4, 2), nn.Linear(4, 1)
    a_opt = torch.optim.Adam(actor.parameters())
    c_opt = torch.optim.Adam(critic.parameters())
    for x in data:
        c_loss = critic(x).pow(2).mean()
        c_opt.zero_grad()
        c_loss.backward()
        c_opt.step()
        a_loss = -critic(actor(x)).mean()
        a_opt.zero_grad()
        a_loss.backward()  # fails
        a_opt.step()
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), stepped_between)


def _written(project: Project) -> Iterator[Evidence]:
    for step, loss, certain in _between(project):
        if certain:
            text = f"this changes weights that {loss} was computed with, before its backward pass"
            yield sighting(__name__, step, text)


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    for step, loss, _certain in _between(project):
        if step.scope in surface.scopes:
            yield guess(__name__, step, f"this changes weights between the forward and the backward pass of {loss}")
            return


def _between(project: Project) -> Iterator[tuple[Call, str, bool]]:
    """Optimizer steps written between the making of a loss and its ``backward()`` in the same step."""
    for training in training_steps(project):
        for backward in training.backward:
            receiver = backward.receiver
            if not isinstance(receiver, ast.Name):
                continue
            made = [
                b for b in training.scope.bindings.get(receiver.id, ()) if position(b.node) < position(backward.node)
            ]
            if not made:
                continue
            last = max(made, key=lambda b: position(b.node))
            for step in training.steps:
                if position(last.node) < position(step.node) < position(backward.node) and _same_block(
                    project, last.node, step
                ):
                    yield step, receiver.id, _uses(project, receiver, step)


def _same_block(project: Project, node: ast.AST, step: Call) -> bool:
    statement = project.statement(step.node, step.scope)
    return project.parent(statement, step.scope) is project.parent(node, step.scope)


def _uses(project: Project, loss: ast.expr, step: Call) -> bool:
    """True if the loss is computed with the network whose parameters the optimizer has."""
    if step.receiver is None:
        return False
    owned: set[str] = set()
    for made in constructors(project, step.receiver, step.scope):
        for value in made.node.args[:1]:
            for node in ast.walk(value):
                if isinstance(node, ast.Call) and written(node.func).endswith((".parameters", ".named_parameters")):
                    owned.add(written(node.func).rsplit(".", 1)[0])
    for found in back(project, loss, step.scope):
        if found.scope is step.scope and isinstance(found.node, ast.Call) and written(found.node.func) in owned:
            chain = " ".join(written(s.node) for s in found.chain()[1:])
            if "detach" not in chain:
                return True
    return False
