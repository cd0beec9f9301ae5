"""NaN is replaced or skipped without looking for its origin.

What: ``nan_to_num`` on a loss or on gradients, or a step that is left out where the loss is NaN.
Why it matters: the values that made it stay in the data or in the weights; training goes on with made-up numbers.
When it is fine: where it is counted and stops the run after a few.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, last_name, written
from trainwreck.code.facts import (
    bound_to,
    is_torch,
    names,
    names_in,
)
from trainwreck.code.order import (
    TrainingStep,
    training_steps,
)
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.cleaned import cleaned
from trainwreck.code.rehearsal.questions.gaps_in_figures import hidden_gaps
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def train(model, loader, optimizer, criterion):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss = torch.nan_to_num(loss)  # expect
        loss.backward()
        optimizer.step()
""",
    """
import torch
def train(model, loader, optimizer, criterion):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        if torch.isnan(loss):  # expect
            continue
        loss.backward()
        optimizer.step()
""",
    """
def clean(model):
    for p in model.parameters():
        if p.grad is not None:
            p.grad.nan_to_num_(0.0)  # expect
""",
)
GOOD = """
import torch
import math
def train(model, loader, optimizer, criterion):
    bad = 0
    for x, y in loader:
        x = torch.nan_to_num(x)
        loss = criterion(model(x), y)
        if not torch.isfinite(loss):
            raise ValueError("loss is not finite")
        if math.isnan(loss.item()):
            bad += 1
            continue
        loss.backward()
        optimizer.step()
    scores = torch.nan_to_num(loss.detach())
"""
LOSS = pattern(r"(^|_)(loss|losses|objective)(_|\d|$)|\.grad$", re.IGNORECASE)
TESTS = ("isnan", "isinf", "isfinite")


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), cleaned, hidden_gaps)


def _written(project: Project) -> Iterator[Evidence]:
    for call in project.calls("nan_to_num", "nan_to_num_"):
        value = call.node.args[0] if is_torch(project, call) and call.node.args else call.receiver
        if value is None or not (LOSS.search(written(value)) or _runs_backward(project, call)):
            continue
        if written(value).endswith(".grad") or any(
            written(c.receiver) == bound
            for c in project.calls("backward")
            if c.scope is call.scope
            for bound in [bound_to(project, call), written(value)]
            if c.receiver is not None
        ):
            yield sighting(
                __name__, call, f"{written(value)} is made finite here; where the NaN comes from stays hidden"
            )
    yield from _replaced(project)
    for step in training_steps(project):
        yield from _guarded_step(project, step)
        if step.loop is None:
            continue
        for node in ast.walk(step.loop):
            if not isinstance(node, ast.If) or not node.body or not isinstance(node.body[-1], ast.Continue):
                continue
            if not any(
                isinstance(n, ast.Call) and last_name(n.func) in TESTS for n in ast.walk(node.test)
            ) or not _of_loss(node.test, step):
                continue
            if not any(isinstance(n, ast.AugAssign | ast.Raise) for n in ast.walk(node)):
                yield sighting(
                    __name__,
                    (node, step.scope),
                    "steps with a NaN loss are left out, and its origin is not looked for",
                    proof=step.backward[:1],
                )


def _guarded_step(project: Project, step: TrainingStep) -> Iterator[Evidence]:
    """``if all(isfinite(p.grad) ...): optimizer.step()``, with nothing said where it isn't so."""
    for call in step.steps:
        for above in project.ancestors(call.node, call.scope):
            if above is step.loop:
                break
            if not isinstance(above, ast.If) or above.orelse:
                continue
            asked = [n for n in ast.walk(above.test) if isinstance(n, ast.Call) and last_name(n.func) in TESTS]
            clipped = any(_norm(project, a, call.scope) for n in asked for a in n.args)
            if clipped or any(".grad" in written(n) for n in asked):
                text = "steps with a NaN in the gradients are left out, and its origin is not looked for"
                yield sighting(__name__, (above, call.scope), text, proof=[call])
                return


def _norm(project: Project, value: ast.expr, scope: Scope) -> bool:
    """True for a name that stands for the norm of all gradients."""
    found = project.lookup(value.id, scope) if isinstance(value, ast.Name) else []
    makers = [b.value for b in found if b.kind == "assign" and isinstance(b.value, ast.Call)]
    return len(found) == 1 and any(last_name(m.func) in ("clip_grad_norm_", "get_total_norm") for m in makers)


def _runs_backward(project: Project, call: Call) -> bool:
    """True if the result is bound to the name that runs backward in this scope."""
    bound = bound_to(project, call)
    receivers = [c.receiver for c in project.calls("backward") if c.scope is call.scope]
    return bool(bound) and any(r is not None and written(r) == bound for r in receivers)


def _replaced(project: Project) -> Iterator[Evidence]:
    """``p.grad[p.grad.isnan()] = 0``, and ``where`` with such a test for a gradient or for what runs backward."""
    for call in project.calls(*TESTS):
        statement = project.statement(call.node, call.scope)
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            continue
        target = statement.targets[0]
        held = target.value if isinstance(target, ast.Subscript) else target
        chosen = isinstance(target, ast.Subscript) and any(n is call.node for n in ast.walk(target.slice))
        where = next((Call(n, call.scope) for n in ast.walk(statement.value)
                      if isinstance(n, ast.Call) and last_name(n.func) == "where"), None)  # fmt: skip
        gradient = written(held).endswith(".grad")
        if (chosen and gradient) or (where is not None and (gradient or _runs_backward(project, where))):
            text = f"{written(held)} is made finite here; where the NaN comes from stays hidden"
            yield sighting(__name__, (statement, call.scope), text)


def _of_loss(test: ast.expr, step: TrainingStep) -> bool:
    """True if the test reads something named like a loss, or what runs backward in this step."""
    own = {written(c.receiver) for c in step.backward if isinstance(c.receiver, ast.Name)}
    return names_in(test, LOSS) or bool(own & names(test))
