"""An attribute that torch does not know.

What: `x.require_grad = ...`: the name is `requires_grad`.
Why it matters: a new attribute is set and nothing else: the tensor stays as it was, and nothing is said.
When it is fine: for an attribute that the class itself reads.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code import edits
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.surface import scope_at
from trainwreck.core.evidence import Evidence

BAD = """
import torch
def freeze(model):
    for p in model.parameters():
        p.require_grad = False  # expect
"""
GOOD = """
import torch
class Layer:
    def __init__(self):
        self.require_grad = False
    def run(self, x):
        return x if self.require_grad else x.detach()
def freeze(model):
    for p in model.parameters():
        p.requires_grad = False
"""


def find(project: Project) -> Iterator[Evidence]:
    for walked in project.walked.values():
        if ".require_grad" not in walked.top.module.text or "torch" not in walked.top.module.text:
            continue
        uses = [n for n in walked.parents if isinstance(n, ast.Attribute) and n.attr == "require_grad"]
        if any(isinstance(n.ctx, ast.Load) for n in uses):
            continue
        for node in sorted(uses, key=lambda n: n.lineno):
            scope = scope_at(walked.top, node.lineno)
            fix = edits.rename_attribute(node, "requires_grad", scope, "write requires_grad")
            text = "require_grad is no attribute of tensors: this sets a new one and freezes nothing"
            yield sighting(__name__, (node, scope), text, fix=fix)
