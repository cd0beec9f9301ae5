"""A method is named without brackets.

What: ``model.eval`` or ``optimizer.step`` stands as a statement of its own; nothing is called. Or a test asks for a
method, and not for its answer (``if stopper.done:``).
Why it matters: the mode, step or reset that the line is meant for never happens, and no error says so.
When it is fine: never as a statement; as a value (``fn = model.eval``) it is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
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
    """
import torch
class Stopper:
    def __init__(self):
        self.count = 0
    def done(self):
        return self.count > 3
class Trainer:
    def __init__(self):
        self.stop = Stopper()
        self.device = "cuda" if torch.cuda.is_available else "cpu"  # expect
    def fit(self, loader):
        for batch in loader:
            if self.stop.count > 1 and self.stop.done:  # expect
                break
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
class Stopper:
    done = False
    @property
    def tired(self):
        return self.count > 3
    def spent(self):
        return self.count > 9
def loop(model, loader):
    stop = Stopper()
    while not stop.done:
        if stop.tired or stop.spent():
            break
        if model.training and callable(stop.spent):
            stop.count += 1
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


ASKED = ("torch.cuda.is_available", "torch.distributed.is_initialized", "torch.distributed.is_available",
         "torch.backends.mps.is_available", "torch.is_grad_enabled", "torch.cuda.is_bf16_supported")  # fmt: skip
"""Functions that answer a question: named without brackets they are always true."""


def find(project: Project) -> Iterator[Evidence]:
    for walked in project.walked.values():
        for scope in walked.scopes:
            for node in project.within(scope, ast.Expr):
                assert isinstance(node, ast.Expr)
                value = node.value
                if isinstance(value, ast.Attribute) and (value.attr in METHODS or _is_function(project, value, scope)):
                    yield sighting(
                        __name__, (node, scope), f"{written(value)} is named but not called: brackets are missing"
                    )
            for asking in project.within(scope, ast.If, ast.While, ast.IfExp, ast.Assert):
                assert isinstance(asking, ast.If | ast.While | ast.IfExp | ast.Assert)
                for value in _asked(asking.test):
                    if isinstance(value, ast.Attribute) and _is_function(project, value, scope):
                        text = f"{written(value)} is asked and not called, which is always true: brackets are missing"
                        yield sighting(__name__, (value, scope), text)


def _asked(test: ast.expr) -> Iterator[ast.expr]:
    """The parts of a test that are asked whether they are true."""
    match test:
        case ast.BoolOp(values=values):
            for value in values:
                yield from _asked(value)
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            yield from _asked(inner)
        case _:
            yield test


def _is_function(project: Project, value: ast.Attribute, scope: Scope) -> bool:
    """True for a plain method of a class of the program, which no object of it has something else in the place of."""
    if project.dotted(value, scope) in ASKED:
        return True
    owner = project.class_of(value.value, scope)
    method = project.find_method(owner, value.attr) if owner is not None else None
    if owner is None or method is None or any(value.attr in c.attributes for c in project.bases(owner)):
        return False
    if not (isinstance(value.value, ast.Name) and value.value.id == "self") and (
        sum(b.kind != "append" for b in project.bindings(value.value, scope)) > 1
    ):
        return False  # it may be an object of another class
    bound = method.parent.bindings.get(value.attr, ()) if method.parent is not None else ()
    return not method.decorators and len(bound) <= 1
