"""Every label of a batch is the ignored one.

What: the code that puts -100 into the labels covers all of them.
Why it matters: the loss is a mean over nothing: NaN, or exactly zero.
When it is fine: for single samples within a batch.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rule import guess
from trainwreck.code.surface import Surface
from trainwreck.core.evidence import Evidence

BAD = """
def mask(labels, prompt):
    labels[:prompt] = -100  # expect # place
    return labels
"""
GOOD = """
def add(a):
    return a - 100
"""


def locate(project: Project, surface: Surface | None) -> Iterator[Evidence]:
    for scope in project.scopes:
        for node in project.within(scope, ast.Assign, ast.Call, ast.ListComp, ast.BinOp, ast.IfExp):
            for child in ast.iter_child_nodes(node):
                if (
                    isinstance(child, ast.UnaryOp)
                    and isinstance(child.operand, ast.Constant)
                    and child.operand.value == 100
                ):
                    yield guess(__name__, (node, scope), "labels are set to the ignored one here")
                    return
        for bindings in scope.bindings.values():
            for binding in bindings:
                value = binding.value
                if isinstance(value, ast.Name) and "IGNORE" in value.id.upper():
                    yield guess(__name__, (binding.node, scope), "labels are set to the ignored one here")
                    return
