"""Frozen batch norm goes back to training mode.

What: batch-norm layers are put into ``eval()`` once before the loop, and ``model.train()`` is called in the loop.
Why it matters: ``train()`` switches them all back: their statistics drift though their weights are frozen.
When it is fine: where the freeze is repeated after each ``train()`` or lives in an overridden ``train``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import Call, written
from trainwreck.code.facts import (
    in_loop,
    later,
)
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.frozen_norms import put_back
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence

BAD = """
import torch
from torch import nn
def main(model, loader, opt, epochs):
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.eval()
    for epoch in range(epochs):
        model.train()  # expect
        for x in loader:
            opt.zero_grad()
            model(x).sum().backward()
            opt.step()
"""
GOOD = """
import torch
from torch import nn
def freeze(model):
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.eval()
def main(model, loader, opt, epochs):
    for epoch in range(epochs):
        model.train()
        freeze(model)
        for x in loader:
            opt.zero_grad()
            model(x).sum().backward()
            opt.step()
"""


def find(project: Project) -> Iterator[Evidence]:
    found = list(_in_one_place(project))
    yield from further(__name__, project, found or _by_function(project), put_back)


def _by_function(project: Project) -> Iterator[Evidence]:
    """A function that freezes is called before the training alone, and ``train()`` is called in every turn."""
    freezers = [
        loop_scope
        for loop_scope in project.functions
        for loop in project.within(loop_scope, ast.For)
        if isinstance(loop, ast.For)
        and written(loop.iter).endswith(".modules()")
        and "BatchNorm" in written(loop)
        and ".eval()" in written(loop)
    ]
    if len(freezers) != 1 or freezers[0].name == "train":
        return
    callers = project.callers(freezers[0])
    again = [c for c in callers if in_loop(project, c.node, c.scope) is not None or _repeated(project, c.scope, 0)]
    if not callers or again:
        return
    homes = [c.scope for c in callers]
    for call in project.calls("train"):
        mode = call.argument("mode", 0)
        on = mode is None or not (isinstance(mode, ast.Constant) and mode.value is False)
        if not on or not isinstance(call.node.func, ast.Attribute):
            continue
        if call.scope in homes and not _undoes(project, call, callers):
            continue
        if call.scope is freezers[0]:
            continue  # in one place: the order there decides
        if project.resolve(call.node.func, call.scope) is not None or call.scope.name == "train":
            continue
        if in_loop(project, call.node, call.scope) is None and not _repeated(project, call.scope, 0):
            continue
        loop = callers[0]
        yield sighting(__name__, call, "this puts the frozen batch-norm layers back into training mode", proof=[loop])
        return


def _undoes(project: Project, call: Call, callers: list[Call]) -> bool:
    """True for ``net.train()`` in a loop below ``freeze(net)``, in one function."""
    before = [c for c in callers if c.scope is call.scope and c.line < call.line]
    same = any(written(call.receiver) in [written(a) for a in c.node.args] for c in before)
    return same and in_loop(project, call.node, call.scope) is not None


def _repeated(project: Project, scope: Scope, depth: int) -> bool:
    """True for a function that is called in a loop, or opens a ``with`` there."""
    callers = project.callers(scope) if scope.kind == "function" and depth < 3 else []
    return any(in_loop(project, c.node, c.scope) is not None or _repeated(project, c.scope, depth + 1) for c in callers)


def _in_one_place(project: Project) -> Iterator[Evidence]:
    for scope in project.scopes:
        if scope.kind == "class" or "BatchNorm" not in scope.module.text:
            continue
        for loop in project.within(scope, ast.For):
            assert isinstance(loop, ast.For)
            if (
                not written(loop.iter).endswith(".modules()")
                or "BatchNorm" not in written(loop)
                or ".eval()" not in written(loop)
            ):
                continue
            model = written(loop.iter).removesuffix(".modules()")
            for call in project.calls_by_scope.get(scope, ()):
                if (
                    call.name != "train"
                    or written(call.receiver) != model
                    or call.node.args
                    or not later(call.node, loop)
                ):
                    continue
                if in_loop(project, call.node, scope) is not None and in_loop(project, loop, scope) is None:
                    yield sighting(
                        __name__,
                        call,
                        "this puts the frozen batch-norm layers back into training mode",
                        proof=[(scope.module.path, loop.lineno, written(loop.iter))],
                    )
                    break
