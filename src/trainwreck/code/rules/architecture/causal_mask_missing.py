"""A causal mask is made and never used.

What: the attention registers a lower-triangular mask, and its ``forward`` applies softmax without it.
Why it matters: every position sees the token it has to predict; the loss is far too good, generation is poor.
When it is fine: with ``is_causal=True``, or where a mask is passed in.
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
class Attention(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.register_buffer("mask", torch.tril(torch.ones(n, n)))
    def forward(self, q, k, v):
        att = q @ k.transpose(-2, -1)
        att = att.softmax(-1)  # expect
        return att @ v
"""
GOOD = """
import torch
from torch import nn
class Attention(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.register_buffer("mask", torch.tril(torch.ones(n, n)))
    def forward(self, q, k, v):
        att = (q @ k.transpose(-2, -1)).masked_fill(self.mask == 0, float("-inf"))
        return att.softmax(-1) @ v
"""


def find(project: Project) -> Iterator[Evidence]:
    for owner in modules(project):
        name = _mask(project, owner)
        forward = owner.method("forward")
        if not name or forward is None:
            continue
        used = any(
            isinstance(n, ast.Attribute) and n.attr == name and isinstance(n.ctx, ast.Load)
            for walked in project.walked.values()
            for n in ast.walk(walked.top.module.tree)
        )
        text = written(forward.node)
        if used or "is_causal" in text or "mask" in " ".join(forward.params):
            continue
        for node in project.within(forward, ast.Call):
            if isinstance(node, ast.Call) and last_name(node.func) in ("softmax", "scaled_dot_product_attention"):
                yield sighting(__name__, (node, forward), f"the causal mask self.{name} is made and not applied here")
                break


def _mask(project: Project, owner: Scope) -> str:
    """Name of a buffer or attribute that holds a triangular mask."""
    for call in project.calls("register_buffer"):
        if call.scope.owner is owner and len(call.node.args) >= 2 and _triangular(call.node.args[1]):
            first = call.node.args[0]
            return str(first.value) if isinstance(first, ast.Constant) else ""
    for name, bindings in owner.attributes.items():
        if any(b.value is not None and _triangular(b.value) for b in bindings):
            return name
    return ""


def _triangular(node: ast.expr) -> bool:
    return any(isinstance(n, ast.Call) and last_name(n.func) in ("tril", "triu") for n in ast.walk(node))
