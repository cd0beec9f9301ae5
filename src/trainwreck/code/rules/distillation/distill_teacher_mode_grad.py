"""The teacher is trained along or left in training mode.

What: the training step calls the teacher with gradients on, and nothing puts it into evaluation mode or freezes it.
Why it matters: dropout makes its targets random, batch norm follows the student's data, and its graph costs memory.
When it is fine: for a teacher that learns too (mutual learning).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import bound_to, later, made, source, text_of, trains
from trainwreck.code.order import training_steps, under_no_grad
from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.distilling import loaded_and_stepped, teacher_state
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
import torch.nn.functional as F
def train(student, teacher, loader):
    opt = torch.optim.Adam(student.parameters())
    for x, y in loader:
        soft = teacher(x)  # expect
        loss = F.mse_loss(student(x), soft)
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    """
import torch
class Distiller:
    def fit(self):
        for x in self.loader:
            loss = ((self.student(x) - self.teacher(x)) ** 2).mean()  # expect
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
""",
    """
import torch
import torch.nn.functional as F
from torch import nn
def net(width, drop):
    return nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Dropout(drop), nn.Linear(width, 3))
def fit(model, loader, opt):
    model.train()
    for x, y in loader:
        opt.zero_grad()
        F.cross_entropy(model(x), y).backward()
        opt.step()
    return model
def distil(teacher, student, loader, T=2.0):
    opt = torch.optim.Adam(student.parameters())
    teacher.requires_grad_(False)  # expect
    student.train()
    for x, _ in loader:
        with torch.no_grad():
            soft = F.softmax(teacher(x) / T, dim=1)
        loss = F.kl_div(F.log_softmax(student(x) / T, dim=1), soft, reduction="batchmean") * T**2
        opt.zero_grad()
        loss.backward()
        opt.step()
def main(loader, other):
    big = net(64, 0.4)
    teacher = fit(big, other, torch.optim.Adam(big.parameters()))
    distil(teacher, net(8, 0.0), loader)
""",
    """
import torch
import torch.nn.functional as F
from torch import nn
class Teacher(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)
    def forward(self, x):
        return self.bn(self.conv(x)).mean((2, 3))
class Distiller:
    def __init__(self, student):
        self.teacher, self.student = Teacher(), student
        self.teacher.load_state_dict(torch.load("teacher.pt", weights_only=True))
        self.opt = torch.optim.Adam(student.parameters())
    def step(self, x):
        with torch.no_grad():
            t = self.teacher(x)  # expect
        loss = F.mse_loss(self.student(x), t)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
""",
)
GOOD = """
import torch
import torch.nn.functional as F
def train(student, teacher, loader, opt):
    teacher.eval()
    for x, y in loader:
        with torch.no_grad():
            soft = teacher(x)
        loss = F.mse_loss(student(x), soft)
        opt.zero_grad()
        loss.backward()
        opt.step()
class Quiet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.drop = torch.nn.Linear(4, 4), torch.nn.Dropout(0.1)
def accuracy(net, x):
    net.eval()
    return net(x)
"""
NOISY = pattern(r"Dropout|BatchNorm|dropout\(|batch_norm\(|InstanceNorm|DropPath")
AVERAGED = pattern(
    r"ema|lerp_|moving_average|deepcopy\(\s*(self\.)?student|momentum_update|mean.?teacher", re.IGNORECASE
)
TEACHER = pattern(r"(^|[._])teacher(_model|_net|_network)?$")


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, _written(project), teacher_state, loaded_and_stepped)


def _written(project: Project) -> Iterator[Evidence]:
    found = list(_with_gradients(project))
    yield from found or _in_training_mode(project)


def _in_training_mode(project: Project) -> Iterator[Evidence]:
    """A teacher with dropout or batch norm, never put into evaluation mode."""
    text = source(project)
    if AVERAGED.search(text) or re.search(r"teacher\w*[^\n]*\.(eval\(\)|train\(False\))|\.train\(False\)", text):
        return
    if not trains(project):
        return
    for walked in project.walked.values():
        for node, scope in walked.calls:
            if not TEACHER.search(written(node.func)) or not _distils(project, scope):
                continue
            if not NOISY.search(_code_of(project, node.func, scope)) or _evaluated_elsewhere(project):
                return
            frozen = [
                c
                for c in project.calls("requires_grad_")
                if c.scope is scope and c.receiver is not None and TEACHER.search(written(c.receiver))
            ]
            place = frozen[0] if frozen else Call(node, scope)
            yield sighting(__name__, place, "the teacher is never put into evaluation mode", proof=[Call(node, scope)])
            return


def _distils(project: Project, scope: Scope) -> bool:
    """True for a function that trains something else with the teacher's output."""
    return "student" in text_of(project, scope) and any(
        c.name == "backward" for c in project.calls_by_scope.get(scope, ())
    )


def _code_of(project: Project, node: ast.expr, scope: Scope) -> str:
    """The code that builds the teacher; everything where that is unknown."""
    owner = project.class_of(node, scope)
    if owner is not None:
        return text_of(project, owner) + "".join(
            text_of(project, c) for c in project.classes if c.name in text_of(project, owner)
        )
    calls = made(project, node, scope)
    texts = [written(c.node) + text_of(project, c.scope) for c in calls if project.called(c).startswith("torch.nn")]
    return "".join(texts) if texts else source(project)


def _handed_out_ready(project: Project) -> bool:
    """True if a function gives back a network that it has put into evaluation mode: ``return net.eval()``."""
    for call in project.calls("eval"):
        name = written(call.receiver)
        for value in call.scope.returns:
            ready = value is not None and any(n is call.node for n in ast.walk(value))
            if ready or (value is not None and written(value) == name and later(value, call.node)):
                return True
    return False


def _evaluated_elsewhere(project: Project) -> bool:
    """True if a teacher is handed to a function that leaves it in evaluation mode, or may come from one that did."""
    if _handed_out_ready(project):
        return True
    for walked in project.walked.values():
        for node, scope in walked.calls:
            for place, argument in enumerate(node.args):
                if not TEACHER.search(written(argument)):
                    continue
                target = project.resolve(node.func, scope)
                names = target.positional if target is not None and target.kind == "function" else []
                names = names[1:] if names[:1] == ["self"] else names
                if target is None or place >= len(names):
                    continue
                body, name = text_of(project, target), names[place]
                if f"{name}.eval()" in body and f"{name}.train(" not in body:
                    return True
    return False


def _with_gradients(project: Project) -> Iterator[Evidence]:
    text = source(project)
    if re.search(
        r"teacher\w*(\.module)?\.(eval|requires_grad_)\(|teacher\w*\.parameters\(\)|teacher\w*\s*=.*\.eval\(\)|freeze|mutual|set_requires_grad",
        text,
    ):
        return
    for step in training_steps(project):
        for node in ast.walk(step.body):
            if not isinstance(node, ast.Call) or not re.search(r"(^|[._])teacher(_model|_net)?$", written(node.func)):
                continue
            if under_no_grad(project, node, step.scope) is not None or ".detach(" in written(
                project.statement(node, step.scope)
            ):
                continue
            name = bound_to(project, Call(node, step.scope))
            if name and f"{name}.detach(" in text:
                continue
            yield sighting(
                __name__,
                (node, step.scope),
                "the teacher runs with gradients and in training mode",
                proof=step.backward[:1],
            )
            break
