"""The optimizer never steps.

What: an optimizer is built and a loop runs ``backward()``, but nothing in the program ever calls ``step()``.
Why it matters: gradients are computed and thrown away; the weights keep their initial values.
When it is fine: where gradients are all that is wanted (saliency), or an engine steps.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import (
    ENGINES,
    bound_to,
    optimizers,
    source,
)
from trainwreck.code.order import (
    kind_of,
    repeated,
    training_steps,
)
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
def train(model, loader, criterion):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()  # expect
""",
    """
from torch.optim import SGD
class Trainer:
    def __init__(self, model):
        self.opt = SGD(model.parameters(), lr=0.1)
    def fit(self, loader):
        for batch in loader:
            self.opt.zero_grad()
            self.model(batch).mean().backward()  # expect
""",
    """
import torch
import torch.nn.functional as F
class Trainer:
    def __init__(self, net):
        self.net = net
        self.optim = torch.optim.Adam(net.parameters())
        self.sched = torch.optim.lr_scheduler.StepLR(self.optim, 10)
    def batch(self, x, y):
        self.optim.zero_grad()
        loss = F.cross_entropy(self.net(x), y)
        loss.backward()  # expect
        return loss.item()
    def fit(self, loader):
        for x, y in loader:
            self.batch(x, y)
        self.sched.step()
""",
)
GOOD = (
    """
import torch
def saliency(model, loader):
    for x, y in loader:
        model(x).max().backward()
""",
    """
import torch
from engine import update
def train(model, loader):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for x, y in loader:
        model(x).mean().backward()
        update(optimizer)
""",
    """
import torch
def train(model, loader, scaler):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for x, y in loader:
        scaler.scale(model(x).mean()).backward()
        scaler.step(optimizer)
""",
)


def find(project: Project) -> Iterator[Evidence]:
    if ENGINES.search(source(project)) or not optimizers(project):
        return
    stepping = [
        c
        for c in project.calls("step", "optimizer_step", "apply", "fit", "minimize")
        if kind_of(project, c) not in ("scheduler", "environment")
        and (c.name == "step" or project.resolve(c.node.func, c.scope) is None)
    ]
    if stepping or any(".step" in written(o.node) for o in optimizers(project)):
        return
    for built in optimizers(project):
        name = bound_to(project, built)
        if not name or _handed_on(project, name, built):
            continue
        for step in training_steps(project):
            again = repeated(project, step.scope, step.backward[0].node)
            if again and step.scope.module is built.scope.module:
                text = f"{name} is built, but nothing ever steps it after this"
                yield sighting(__name__, step.backward[0], text, proof=[built])
                return


def _handed_on(project: Project, name: str, built: Call) -> bool:
    """True if the optimizer is given to something outside that may step it, or returned."""
    for walked in project.walked.values():
        for node, scope in walked.calls:
            for value in (*node.args, *(k.value for k in node.keywords)):
                if (
                    name in written(value).split(",")
                    and project.resolve(node.func, scope) is None
                    and "lr_scheduler" not in project.called(Call(node, scope))
                ):
                    return True
    called = {id(c.node.func) for c in project.calls("step")}
    tree = built.scope.module.tree
    return any(isinstance(n, ast.Attribute) and n.attr == "step" and id(n) not in called for n in ast.walk(tree))
