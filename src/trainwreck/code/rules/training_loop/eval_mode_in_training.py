"""The model stays in evaluation mode after the first evaluation.

What: ``train()`` is called once before the loop, ``eval()`` in every round of it.
Why it matters: from the second epoch on dropout is off and BatchNorm uses frozen statistics.
When it is fine: where ``train()`` stands in the loop, or the evaluation function switches back.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.order import loops, training_steps
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence

BAD = """
def evaluate(model, loader):
    model.eval()
    return sum(model(x).sum() for x in loader)
def main(model, loader, opt):
    model.train()  # expect
    for epoch in range(3):
        for x, y in loader:
            loss = (model(x) - y).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        evaluate(model, loader)
"""
GOOD = """
def evaluate(model, loader):
    model.eval()
    out = sum(model(x).sum() for x in loader)
    model.train()
    return out
def main(model, loader, opt):
    model.train()
    for epoch in range(3):
        for x, y in loader:
            loss = (model(x) - y).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        evaluate(model, loader)
"""


def find(project: Project) -> Iterator[Evidence]:
    for training in training_steps(project):
        scope = training.scope
        around = loops(project, training.backward[0].node, scope)
        if not around:
            continue
        outer = around[-1]
        if _switches(project, outer, scope, "train", 0) or not _switches(project, outer, scope, "eval", 0):
            continue
        before = [
            c
            for c in project.calls("train")
            if c.scope is scope and c.line < outer.lineno and c.receiver is not None and not c.node.args
        ]
        if before:
            yield sighting(__name__, before[-1], "training mode is set once before the loop, evaluation mode inside it")
        elif scope.kind == "function" and scope.owner is None and not any(True for _ in project.calls("train")):
            yield sighting(__name__, (outer, scope), "evaluation mode is set inside this loop and training mode never")


def _switches(project: Project, body: ast.AST, scope: Scope, name: str, depth: int) -> bool:
    """True if ``.train()`` or ``.eval()`` is called in ``body`` or in functions of the project that it calls."""
    for node in ast.walk(body):
        if not isinstance(node, ast.Call):
            continue
        call = Call(node, scope)
        if call.name == name and call.receiver is not None:
            return True
        target = project.resolve(node.func, scope) if depth < 3 else None
        if target is None or target.kind != "function" or target.name in ("forward", "__init__"):
            continue
        if f".{name}(" in written(target.node) or _switches(project, target.node, target, name, depth + 1):
            return True
    return False
