"""Frozen batch norm goes back to training mode.

What: batch-norm layers are put into ``eval()`` once before the loop, and ``model.train()`` is called in the loop.
Why it matters: ``train()`` switches them all back: their statistics drift though their weights are frozen.
When it is fine: where the freeze is repeated after each ``train()`` or lives in an overridden ``train``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import written
from trainwreck.code.facts import (
    in_loop,
    later,
)
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
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
