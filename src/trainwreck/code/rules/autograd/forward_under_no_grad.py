"""Gradients are switched off where the training forward pass runs.

What: ``set_grad_enabled(False)`` (or ``inference_mode``) is left on after an evaluation, or the forward pass stands
under ``no_grad`` itself.
Why it matters: the loss has no graph; ``backward()`` fails, or a frozen part silently never learns.
When it is fine: in evaluation, for teachers and targets.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.flow import back
from trainwreck.code.order import turns_off, under_no_grad
from trainwreck.code.project import Project
from trainwreck.code.rule import guess, sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import is_module, modules
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

SURFACES = (r"does not require grad and does not have a grad_fn", r"Inference tensors cannot be saved for backward")
ERROR = "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn"
BAD = (
    """
import torch
def evaluate(model, loader):
    torch.set_grad_enabled(False)  # expect
    return sum(model(x).sum() for x in loader)
def train(model, loader):
    for x, y in loader:
        loss = (model(x) - y).pow(2).mean()
        loss.backward()  # fails
""",
    """
import torch
from torch import nn
class Net(nn.Module):
    @torch.no_grad()  # expect
    def forward(self, x):
        return self.lin(x)
def train(loader):
    model = Net()
    for x, y in loader:
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
""",
)
GOOD = """
import torch
def evaluate(model, loader):
    with torch.no_grad():
        return sum(model(x).sum() for x in loader)
def sweep(model, loader):
    torch.set_grad_enabled(False)
    evaluate(model, loader)
    torch.set_grad_enabled(True)
def train(model, loader):
    for x, y in loader:
        loss = (model(x) - y).pow(2).mean()
        loss.backward()  # fails
"""


def find(project: Project) -> Iterator[Evidence]:
    """The loss that goes backward is computed under ``no_grad`` itself, or by a ``forward`` that is."""
    for call in project.calls("backward"):
        if call.receiver is None:
            continue
        for step in back(project, call.receiver, call.scope):
            node = step.node
            if not isinstance(node, ast.Call) or not is_module(project, node.func, step.scope):
                continue
            owner = project.class_of(node.func, step.scope)
            forward = project.find_method(owner, "forward") if owner is not None else None
            decorator = next((d for d in forward.decorators if turns_off(d)), None) if forward is not None else None
            if decorator is not None and forward is not None and not step.path[1:]:
                yield sighting(__name__, (decorator, forward), "the whole forward pass runs without gradients")
                return


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    yield from _left_on(project)
    for call in surface.calls(project):
        if call.name != "backward" or call.receiver is None:
            continue
        for step in back(project, call.receiver, call.scope):
            around = under_no_grad(project, step.node, step.scope) if isinstance(step.node, ast.Call) else None
            if around is not None:
                yield guess(
                    __name__, (around, step.scope), "what the loss is made of is computed without gradients here"
                )
                return
    for owner in modules(project):
        for method in owner.children:
            for node in project.within(method, ast.With):
                if isinstance(node, ast.With) and any(turns_off(i.context_expr) for i in node.items):
                    yield guess(__name__, (node, method), "a part of the network runs without gradients here")
                    return


def _left_on(project: Project) -> Iterator[Evidence]:
    for call in project.calls("set_grad_enabled", "__enter__", "inference_mode", "no_grad"):
        statement = project.statement(call.node, call.scope)
        if not isinstance(statement, ast.Expr) or (call.name == "set_grad_enabled" and not turns_off(call.node)):
            continue
        if not _restored(project, call, call.scope):
            yield guess(__name__, call, "gradients are switched off here and not on again")


def _restored(project: Project, call: Call, scope: Scope) -> bool:
    for other in project.calls("set_grad_enabled"):
        if other.scope is scope and other.line > call.line and not turns_off(other.node):
            return "True" in written(other.node) or bool(other.node.args)
    return False
