"""A method is named without brackets.

What: ``model.eval`` or ``optimizer.step`` stands as a statement of its own; nothing is called.
Why it matters: the mode, step or reset that the line is meant for never happens, and no error says so.
When it is fine: never as a statement; as a value (``fn = model.eval``) it is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.core.evidence import Evidence

BAD = (
    """
def evaluate(model, loader):
    model.eval  # expect
    for x, y in loader:
        model(x)
""",
    """
def train(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        model(x, y).backward()
        optimizer.step  # expect
""",
    """
class Trainer:
    def fit(self):
        for batch in self.loader:
            self.optimizer.zero_grad  # expect
            self.model(batch).backward()
            self.optimizer.step()
""",
)
GOOD = (
    """
import torch
def evaluate(model, loader, hook):
    switch = model.eval
    switch()
    hook(model.train)
    model.eval()
    torch.cuda.empty_cache()
""",
    """
class Settings:
    train: bool
    eval: bool
def show(config):
    return config.train, config.eval
""",
)
METHODS = frozenset(
    [
        "eval",
        "train",
        "step",
        "zero_grad",
        "backward",
        "empty_cache",
        "barrier",
        "no_grad",
        "set_epoch",
        "unscale_",
        "update",
    ]
)


def find(project: Project) -> Iterator[Evidence]:
    for walked in project.walked.values():
        for scope in walked.scopes:
            for node in project.within(scope, ast.Expr):
                assert isinstance(node, ast.Expr)
                value = node.value
                if isinstance(value, ast.Attribute) and value.attr in METHODS:
                    yield sighting(
                        __name__, (node, scope), f"{written(value)} is named but not called: brackets are missing"
                    )
