"""The device is chosen and never used.

What: ``device = "cuda" if torch.cuda.is_available() else "cpu"`` and nothing is moved to it.
Why it matters: training runs on the CPU, many times slower, without a word.
When it is fine: where a framework moves things by itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.facts import (
    ENGINES,
    source,
    trains,
)
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")  # expect
def train(model, loader, optimizer):
    for x in loader:
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
""",
    """
import torch
class Trainer:
    def __init__(self, model):
        self.device = "cuda" if torch.cuda.is_available() else "cpu"  # expect
        self.model = model
    def fit(self, loader):
        print(self.device)
        for x in loader:
            self.model(x).sum().backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
""",
)
GOOD = """
import torch
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
def train(model, loader, optimizer):
    model.to(device)
    for x in loader:
        model(x.to(device)).sum().backward()
        optimizer.step()
"""


def find(project: Project) -> Iterator[Evidence]:
    if not trains(project) or ENGINES.search(source(project)) or len(project.walked) > 1:
        return
    for walked in project.walked.values():
        for scope in walked.scopes:
            for node in project.within(scope, ast.Assign):
                assert isinstance(node, ast.Assign)
                text = written(node.value)
                if (
                    "is_available()" not in text
                    or "'cuda" not in text
                    or not isinstance(node.value, ast.IfExp | ast.Call)
                ):
                    continue
                name = written(node.targets[0])
                uses = [
                    n
                    for n in ast.walk(walked.top.module.tree)
                    if isinstance(n, ast.Name | ast.Attribute) and written(n) == name and isinstance(n.ctx, ast.Load)
                ]
                if (
                    all(_told(project, n, scope) for n in uses)
                    and ".cuda(" not in walked.top.module.text
                    and "set_default_device" not in walked.top.module.text
                ):
                    yield sighting(__name__, (node, scope), f"{name} is chosen here, and nothing is moved to it")


def _told(project: Project, node: ast.AST, scope: Scope) -> bool:
    """True for a use inside print or a log call only."""
    for above in project.ancestors(node, scope):
        if isinstance(above, ast.Call):
            return last_name(above.func) in ("print", "info", "debug", "warning")
        if isinstance(above, ast.stmt):
            return False
    return False
