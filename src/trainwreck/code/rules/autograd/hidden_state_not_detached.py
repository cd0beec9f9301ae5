"""A recurrent state is carried over training steps without ``detach()``.

What: inside the training loop, ``out, state = model(x, state)`` takes the state of the step before, and the graph
of that step has been freed by ``backward()``.
Why it matters: the second backward fails; with ``retain_graph=True`` memory and time grow with every step.
When it is fine: with ``state.detach()`` at the start of the step, or a fresh state for each batch.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import names
from trainwreck.code.order import inside, training_steps, under_no_grad
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.mixing import carried as graph_carried
from trainwreck.code.rule import guess, sighting
from trainwreck.code.scopes import Binding, Scope
from trainwreck.code.seek import is_module
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

SURFACES = (r"backward through the graph a second time", r"modified by an inplace operation")
BAD = """
import torch
from torch import nn
class Net(nn.Module):
    def forward(self, x, h):
        return self.rnn(x, h)
def train(loader, opt):
    net = Net()
    h = torch.zeros(1, 4, 8)
    for x, y in loader:
        out, h = net(x, h)  # expect
        loss = (out - y).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
GOOD = """
import torch
from torch import nn
class Net(nn.Module):
    def forward(self, x, h):
        return self.rnn(x, h)
def train(loader, opt):
    net = Net()
    h = torch.zeros(1, 4, 8)
    for x, y in loader:
        out, h = net(x, h.detach())
        loss = (out - y).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
def other(loader, opt):
    net = Net()
    h = None
    for x, y in loader:
        h = cut(h)
        out, h = net(x, h)
        (out - y).pow(2).mean().backward()
def cut(h):
    return None if h is None else h.detach()
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), graph_carried)


def _written(project: Project) -> Iterator[Evidence]:
    for call, name, _certain in _carried(project):
        if _certain:
            text = f"{name} carries the graph of the step before into this step: it is never detached in the loop"
            yield sighting(__name__, call, text)


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    for call, name, _certain in _carried(project):
        if call.scope in surface.scopes:
            yield guess(__name__, call, f"{name} is carried over from the step before without being detached")
            return


def _carried(project: Project) -> Iterator[tuple[Call, str, bool]]:
    for step in training_steps(project):
        if step.loop is None or any(c.argument("retain_graph") is not None for c in step.backward):
            continue
        for name, bindings in step.scope.bindings.items():
            within = [b for b in bindings if b.node is step.body or inside(project, b.node, step.scope, step.body)]
            taken = [b for b in within if _takes(b, name)]
            if not taken or len(within) == len(bindings) or any(_cut(project, b, name) for b in within):
                continue
            value = taken[0].value
            assert isinstance(value, ast.Call)
            call = Call(value, step.scope)
            if under_no_grad(project, value, step.scope) or _detaches_inside(project, call):
                continue
            if _reset(project, step.body, step.scope, name):
                continue
            yield call, name, is_module(project, value.func, step.scope)


def _takes(binding: Binding, name: str) -> bool:
    value = binding.value
    if binding.kind != "assign" or not isinstance(value, ast.Call):
        return False
    arguments = [*value.args, *(k.value for k in value.keywords)]
    return any(isinstance(a, ast.Name) and a.id == name for a in arguments)


def _cut(project: Project, binding: Binding, name: str) -> bool:
    """True if this binding of the state cuts it off (in place or through a function of the project)."""
    if "detach" in written(binding.value) or ".data" in written(binding.value) or "no_grad" in written(binding.value):
        return True
    value = binding.value
    if value is None or binding.kind != "assign" or name not in names(value):
        return True  # made anew, or taken from what is looped over
    if isinstance(value, ast.Call):
        target = project.resolve(value.func, binding.scope)
        if target is not None and target.kind == "function":
            return "detach" in written(target.node) or ".data" in written(target.node)
    return False


def _detaches_inside(project: Project, call: Call) -> bool:
    owner = project.class_of(call.node.func, call.scope)
    forward = project.find_method(owner, "forward") if owner is not None else None
    return forward is not None and "detach" in written(forward.node)


def _reset(project: Project, body: ast.AST, scope: Scope, name: str) -> bool:
    for node in ast.walk(body):
        if isinstance(node, ast.Call) and written(node.func).endswith(".detach_") and name in written(node.func):
            return True
    return False
