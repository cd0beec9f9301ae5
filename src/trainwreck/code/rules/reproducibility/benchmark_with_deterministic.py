"""Kernel autotuning together with deterministic mode.

What: ``cudnn.benchmark = True`` and ``cudnn.deterministic = True`` (or ``use_deterministic_algorithms(True)``) are
both set.
Why it matters: autotuning picks kernels by timing, run by run: the determinism that was asked for is not there.
When it is fine: in different branches of an option.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.order import (
    position,
)
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.values import is_true
from trainwreck.core.evidence import Evidence

BAD = (
    """
import torch
torch.backends.cudnn.deterministic = True
torch.backends.cudnn.benchmark = True  # expect
""",
    """
import torch
from torch.backends import cudnn
def setup():
    torch.use_deterministic_algorithms(True)
    cudnn.benchmark = True  # expect
""",
)
GOOD = """
import torch
def setup(fast):
    if fast:
        torch.backends.cudnn.benchmark = True
    else:
        torch.backends.cudnn.deterministic = True
def other():
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
"""


def find(project: Project) -> Iterator[Evidence]:
    for walked in project.walked.values():
        if "cudnn" not in walked.top.module.text:
            continue
        for scope in walked.scopes:
            found: dict[str, ast.AST] = {}
            for node in project.within(scope, ast.Assign, ast.Call):
                if isinstance(node, ast.Assign) and is_true(node.value):
                    target = written(node.targets[0])
                    if target.endswith("cudnn.benchmark"):
                        found["benchmark"] = node
                    if target.endswith("cudnn.deterministic"):
                        found["deterministic"] = node
                elif (
                    isinstance(node, ast.Call)
                    and last_name(node.func) == "use_deterministic_algorithms"
                    and node.args
                    and is_true(node.args[0])
                ):
                    found["deterministic"] = node
            if len(found) == 2 and _together(project, found["benchmark"], found["deterministic"], scope):
                path = scope.module.path
                proof = [(path, position(found["deterministic"])[0], written(found["deterministic"])[:80])]
                yield sighting(
                    __name__, (found["benchmark"], scope), "autotuning undoes the deterministic mode", proof=proof
                )


def _together(project: Project, one: ast.AST, two: ast.AST, scope: Scope) -> bool:
    """True if no condition lets only one of them run."""
    branches = [[a for a in project.ancestors(n, scope) if isinstance(a, ast.If)] for n in (one, two)]
    return branches[0] == branches[1] and not any(
        (project.statement(one, scope) in i.body) != (project.statement(two, scope) in i.body) for i in branches[0][:1]
    )
