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
from trainwreck.code.facts import (
    bound_to,
    source,
)
from trainwreck.code.order import (
    training_steps,
    under_no_grad,
)
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
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
"""


def find(project: Project) -> Iterator[Evidence]:
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
