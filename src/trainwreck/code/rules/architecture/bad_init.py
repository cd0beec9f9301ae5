"""All weights start at one value.

What: a loop over all parameters sets each of them to a constant.
Why it matters: all units of a layer stay equal for ever (or at zero, where no gradient flows): the network has one
unit per layer.
When it is fine: for biases, or single layers that are meant to start at zero.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.core.evidence import Evidence

BAD = (
    """
from torch import nn
def init(model):
    for p in model.parameters():
        nn.init.zeros_(p)  # expect
""",
    """
import torch
def init(model):
    for name, p in model.named_parameters():
        torch.nn.init.constant_(p, 0.1)  # expect
""",
    """
def init(net):
    for p in net.parameters():
        p.data.fill_(0.01)  # expect
""",
)
GOOD = """
from torch import nn
def init(model, grads):
    for name, p in model.named_parameters():
        if "bias" in name:
            nn.init.zeros_(p)
        else:
            nn.init.xavier_uniform_(p)
    for p in model.parameters():
        if p.dim() > 1:
            nn.init.xavier_uniform_(p)
    for p in model.parameters():
        p.grad.zero_()
def _init_weights(self, module):
    if isinstance(module, LossWeighting):
        for p in module.parameters():
            nn.init.zeros_(p)
"""
CONSTANT = frozenset(["zeros_", "ones_", "constant_", "fill_", "zero_"])


def find(project: Project) -> Iterator[Evidence]:
    for walked in project.walked.values():
        for scope in walked.scopes:
            for loop in project.within(scope, ast.For):
                assert isinstance(loop, ast.For)
                if not re.search(r"\.(named_)?parameters\(\)$", written(loop.iter)) or len(loop.body) != 1:
                    continue
                statement = loop.body[0]
                if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
                    continue
                call = statement.value
                name = written(loop.target.elts[-1]) if isinstance(loop.target, ast.Tuple) else written(loop.target)
                base = call.func.value if isinstance(call.func, ast.Attribute) else None
                subject = call.args[0] if call.args and "init" in written(call.func) else base
                if (
                    last_name(call.func) in CONSTANT
                    and subject is not None
                    and written(subject) in (name, f"{name}.data")
                    and not _of_one_kind(project, loop, scope)
                    and not re.search(
                        r"grad|ema|shadow|teacher|target|accum|mask|avg|head|zero_module|zero_init",
                        written(loop.iter) + scope.name,
                        re.IGNORECASE,
                    )
                ):
                    yield sighting(
                        __name__,
                        (statement, scope),
                        "every weight gets the same value: the units of a layer never differ",
                    )


def _of_one_kind(project: Project, loop: ast.For, scope: Scope) -> bool:
    """True under ``isinstance(module, X)``: somebody chose it for this kind of module."""
    return any(isinstance(a, ast.If) and "isinstance(" in written(a.test) for a in project.ancestors(loop, scope))
