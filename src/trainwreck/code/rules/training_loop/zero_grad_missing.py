"""Gradients are never reset.

What: the training step has ``backward()`` and ``step()`` but no ``zero_grad()`` anywhere that belongs to this
optimizer.
Why it matters: gradients of all steps add up; the effective learning rate grows without bound.
When it is fine: with gradients set to None by hand, or with LBFGS closures that reset them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.order import OPTIMIZERS, TrainingStep, constructors, kind_of, repeated, training_steps
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.handed_gradients import adds_to_the_last
from trainwreck.code.rehearsal.questions.optimizing import never_cleared
from trainwreck.code.rehearsal.questions.own_updates import own_step_uncleared
from trainwreck.code.rule import guess, sighting
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def train(model, loader, criterion):
    for x, y in loader:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        criterion(model(x), y).backward()  # expect
        optimizer.step()
""",
    """
import torch
def train(model, loader, criterion):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()  # expect
        optimizer.step()
""",
    """
import torch
import torch.nn.functional as F
class Trainer:
    def __init__(self, model, cfg):
        self.model = model
        self.opt = torch.optim.SGD(model.parameters(), lr=cfg["lr"])
    def step(self, x, y):
        loss = F.mse_loss(self.model(x), y)
        loss.backward()  # expect
        self.opt.step()
        return loss.item()
    def run(self, loader):
        for x, y in loader:
            self.step(x, y)
""",
    """
import torch
class Game:
    def __init__(self, g, d):
        self.g, self.d = g, d
        self.og = torch.optim.Adam(g.parameters())
        self.od = torch.optim.Adam(d.parameters())
    def critic(self, real, z):
        loss = self.d(self.g(z).detach()).mean() - self.d(real).mean()
        loss.backward()  # expect
        self.od.step()
    def generator(self, z):
        self.og.zero_grad()
        (-self.d(self.g(z)).mean()).backward()
        self.og.step()
    def play(self, loader, z):
        for real in loader:
            self.critic(real, z)
            self.generator(z)
""",
)
GOOD = (
    """
import torch
def train(model, loader, criterion):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        loss.backward()
        if i % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()
""",
    """
import torch
from probabilistic.util import zero_grads
def fit(loss_fn, optim, steps, params=()):
    for step in range(steps):
        zero_grads(params)
        loss, params = loss_fn(step)
        loss.backward()
        optim.step()
""",
    """
import torch
def reset(model):
    for p in model.parameters():
        p.grad = None
def train(model, loader, criterion):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        reset(model)
        criterion(model(x), y).backward()
        optimizer.step()
""",
    """
import torch
def steer(net, latents, times):
    for t in times:
        x = latents.detach().clone().requires_grad_()
        opt = torch.optim.SGD([x], lr=0.1)
        net(x, t).square().mean().backward()
        opt.step()
        latents = x.detach()
""",
    """
import torch
def train(g, d, loader):
    og, od = torch.optim.Adam(g.parameters()), torch.optim.Adam(d.parameters())
    for x in loader:
        od.zero_grad()
        d(x).mean().backward()
        od.step()
        for o in (og, od):
            o.zero_grad()
        d(g(x)).mean().backward()
        og.step()
""",
)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _seen(project), never_cleared, own_step_uncleared, adds_to_the_last)


def _seen(project: Project) -> Iterator[Evidence]:
    for step in training_steps(project):
        if not step.steps or step.zeros or not repeated(project, step.scope, step.backward[0].node):
            continue
        if _fresh(project, step):
            continue
        if any(kind_of(project, s) in ("optimizer", "scaler") for s in step.steps) and not _reset_anywhere(
            project, step
        ):
            yield sighting(__name__, step.backward[0], "gradients are never reset before this", proof=step.steps[:1])

    yield from _one_of_several(project)


def _one_of_several(project: Project) -> Iterator[Evidence]:
    """An optimizer that is never reset, in a program that resets only others, each of them known."""
    reset: set[int] = set()
    zeros = list(project.calls("zero_grad"))
    for zero in zeros:
        made = _optimizer(project, zero)
        if made is None:
            return
        reset.add(id(made.node))
    for training in training_steps(project):
        if not zeros or _by_hand(training) or not repeated(project, training.scope, training.backward[0].node):
            continue
        for step in training.steps:
            made = _optimizer(project, step)
            if made is not None and id(made.node) not in reset and len(training.backward) == 1:
                text = f"gradients of {written(step.receiver)} are never reset before this, only those of others are"
                first = training.backward[0].node
                here = [z for z in zeros if z.scope is training.scope and z.node.lineno < first.lineno]
                instead = max(here, key=lambda z: z.node.lineno, default=None)
                place = instead if instead is not None else training.backward[0]
                yield sighting(__name__, place, text, proof=[step, training.backward[0] if instead else zeros[0]])


def _optimizer(project: Project, call: Call) -> Call | None:
    """What built the optimizer that ``call`` is a method of, None where that is open."""
    found = list(constructors(project, call.receiver, call.scope)) if call.receiver is not None else []
    return found[0] if len(found) == 1 and found[0].name in OPTIMIZERS else None


def _fresh(project: Project, step: TrainingStep) -> bool:
    """True where each backward has a new optimizer over new leaves: nothing is there that could be reset.

    Weights of a module outlive an optimizer that is built again and again, so their gradients still add up.
    """
    made = _optimizer(project, step.steps[0])
    if made is None or made.scope is not step.scope or "parameters" in written(made.node):
        return False
    return _loop(step, made.node) is _loop(step, step.backward[0].node)


def _loop(step: TrainingStep, node: ast.AST) -> ast.AST | None:
    """The innermost loop of the step's scope around ``node``, None outside of all."""
    loops = [n for n in ast.walk(step.scope.node) if isinstance(n, ast.For | ast.While | ast.AsyncFor)]
    around = [loop for loop in loops if any(inner is node for inner in ast.walk(loop))]
    return max(around, key=lambda loop: (loop.lineno, loop.col_offset), default=None)


def _by_hand(step: TrainingStep) -> bool:
    text = step.scope.module.text
    return any(word in text for word in (".grad = None", ".grad=None", "grad.zero_", "set_to_none(", "autograd.grad"))


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    for step in training_steps(project):
        if step.steps and not step.zeros:
            yield guess(__name__, step.backward[0], "gradients of earlier steps are still there when this runs")
            return


def _reset_anywhere(project: Project, step: TrainingStep) -> bool:
    """True if anything in the same file could reset gradients."""
    path = step.scope.module.path
    if any(c.scope.module.path == path for c in project.calls("zero_grad", "zero_grads", "zero_", "set_to_none")):
        return True
    for walked_scope in project.walked[path].scopes:
        if any(name.endswith(".grad") for name in walked_scope.bindings):
            return True
    text = step.scope.module.text
    if ".grad = None" in text or "grad.zero_" in text or "zero_gradients" in text:
        return True
    return any(_elsewhere(project, n, step) for n in ast.walk(step.body) if isinstance(n, ast.Call))


def _elsewhere(project: Project, node: ast.Call, step: TrainingStep) -> bool:
    target = project.resolve(node.func, step.scope)
    return target is not None and "zero_grad" in written(Call(node, step.scope).node) + written(target.node)
