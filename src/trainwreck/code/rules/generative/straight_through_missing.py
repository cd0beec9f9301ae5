"""A quantised value goes on without a straight-through estimator.

What: the nearest code (``argmin``, then a lookup) is returned as it is, not as ``z + (q - z).detach()``.
Why it matters: ``argmin`` has no gradient; the encoder learns nothing from the reconstruction.
When it is fine: with a straight-through or Gumbel estimator, or EMA codebooks that add it later.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.calls import last_name, written
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.scopes import Scope
from trainwreck.code.seek import modules
from trainwreck.core.evidence import Evidence

BAD = """
import torch
from torch import nn
class Quantizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.codes = nn.Embedding(16, 8)
    def forward(self, z):
        idx = torch.cdist(z, self.codes.weight).argmin(1)
        q = self.codes(idx)  # expect
        return q, idx
"""
GOOD = """
import torch
from torch import nn
class Quantizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.codes = nn.Embedding(16, 8)
    def forward(self, z):
        idx = torch.cdist(z, self.codes.weight).argmin(1)
        q = self.codes(idx)
        q = z + (q - z).detach()
        return q, idx
    def indices(self, z):
        return torch.cdist(z, self.codes.weight).argmin(1)
"""


def find(project: Project) -> Iterator[Evidence]:
    for owner in modules(project):
        for method in owner.children:
            if method.kind != "function" or method.name == "__init__" or not _nearest(project, method):
                continue
            text = written(method.node)
            if "detach()" in text and _estimates(project, method):
                continue
            if "gumbel" in text.lower() or "straight" in text.lower() or ".apply(" in text or "no_grad" in text:
                continue
            for value in method.returns:
                parts = value.elts if isinstance(value, ast.Tuple) else [value] if value is not None else []
                for part in parts[:1]:
                    if isinstance(part, ast.Name) and _looked_up(project, method, part.id):
                        last = max(method.bindings[part.id], key=lambda b: b.line)
                        text_ = f"{part.id} is the nearest code and goes on without a straight-through estimate"
                        yield sighting(__name__, (last.node, method), text_)


def _nearest(project: Project, method: Scope) -> bool:
    return any(isinstance(n, ast.Call) and last_name(n.func) == "argmin" for n in project.within(method, ast.Call))


def _estimates(project: Project, method: Scope) -> bool:
    """True if there is ``z + (q - z).detach()`` in any arrangement."""
    for node in project.within(method, ast.BinOp):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            for side in (node.left, node.right):
                if (
                    isinstance(side, ast.Call)
                    and last_name(side.func) == "detach"
                    and isinstance(side.func, ast.Attribute)
                ):
                    if isinstance(side.func.value, ast.BinOp):
                        return True
                    return True
    return False


def _looked_up(project: Project, method: Scope, name: str) -> bool:
    """True if ``name`` comes from a lookup by the index of the nearest code."""
    indices = {
        n
        for n, bindings in method.bindings.items()
        for b in bindings
        if b.value is not None and "argmin" in written(b.value)
    }
    for binding in method.bindings.get(name, ()):
        value = binding.value
        for node in ast.walk(value) if value is not None else ():
            inner = node.args if isinstance(node, ast.Call) else [node.slice] if isinstance(node, ast.Subscript) else []
            if any(isinstance(a, ast.Name) and a.id in indices for a in inner):
                return True
    return False
