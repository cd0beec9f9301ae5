"""A part of the graph is built once before the loop and used in every step.

What: a tensor that a network made before the loop goes into the loss inside it, again and again.
Why it matters: the first ``backward()`` frees that part; the second step fails.
When it is fine: for constants, under ``no_grad``, or after ``detach()``.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.flow import Step, back
from trainwreck.code.order import inside, training_steps, under_no_grad
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.freed import built_once
from trainwreck.code.rule import guess
from trainwreck.code.seek import is_module
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

SURFACES = (r"backward through the graph a second time",)
ERROR = "RuntimeError: Trying to backward through the graph a second time"
BAD = """
import torch
from torch import nn
def main(target, opt):
    net = nn.Linear(4, 4)
    code = net(torch.randn(8, 4))  # expect
    for _ in range(10):
        loss = (code - target).pow(2).mean()
        opt.zero_grad()
        loss.backward()  # fails
        opt.step()
"""
GOOD = """
import torch
from torch import nn
def main(target, opt):
    net = nn.Linear(4, 4)
    teacher = nn.Linear(4, 4)
    with torch.no_grad():
        code = teacher(torch.randn(8, 4))
    for _ in range(10):
        out = net(target)
        loss = (out - code).pow(2).mean()
        loss.backward()  # fails
        opt.step()
"""


def find(project: Project) -> Iterator[Evidence]:
    yield from answers(__name__, project, built_once)


def trace(project: Project, surface: Surface) -> Iterator[Evidence]:
    for step in _outside(project):
        if step.scope in surface.scopes:
            yield guess(__name__, step, "this is computed once before the loop and used in every step of it")
            return


def _outside(project: Project) -> Iterator[Step]:
    for training in training_steps(project):
        if training.loop is None or any(c.argument("retain_graph") is not None for c in training.backward):
            continue
        told: set[int] = set()
        for call in training.backward:
            if call.receiver is None:
                continue
            for step in back(project, call.receiver, call.scope):
                node = step.node
                if step.scope is not call.scope or not isinstance(node, ast.Call) or id(node) in told:
                    continue
                if inside(project, node, step.scope, training.body) or _hidden(project, step, training.body):
                    continue
                if node.lineno >= getattr(training.loop, "lineno", node.lineno + 1):
                    continue  # made after this loop, which is an inner one
                if _keeps_graph(project, step):
                    told.add(id(node))
                    yield step


def _hidden(project: Project, step: Step, body: ast.AST) -> bool:
    """True if a name that leads out of the loop is bound again inside it, so that the outer value is not used."""
    chain = step.chain()
    for found, name in itertools.pairwise(chain):
        if isinstance(name.node, ast.Name) and not inside(project, found.node, found.scope, body):
            bindings = name.scope.bindings.get(name.node.id, ())
            if any(b.kind != "append" and inside(project, b.node, name.scope, body) for b in bindings):
                return True
    return False


def _keeps_graph(project: Project, step: Step) -> bool:
    node = step.node
    assert isinstance(node, ast.Call)
    if under_no_grad(project, node, step.scope) or step.path:
        return False
    if any(
        "detach" in written(s.node) or ".data" in written(s.node) or ".item" in written(s.node) for s in step.chain()
    ):
        return False
    statement = project.statement(node, step.scope)
    if not isinstance(statement, ast.Assign) or statement.value is not node:
        return False
    call = Call(node, step.scope)
    named = project.called(call)
    return is_module(project, node.func, step.scope) and not named.startswith(("torch.nn.", "torch.optim"))
