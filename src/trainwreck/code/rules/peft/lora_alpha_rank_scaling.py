"""The scale of an adapter is its rank over alpha, or alpha over another size.

What: ``scale = r / alpha`` in a layer with two low-rank matrices, ``alpha / in_features``, or alpha alone where the
layer is told of its rank too.
Why it matters: LoRA scales by alpha over rank (arXiv:2106.09685, section 4.1); the other way round a higher rank makes
the adapter louder, and another size makes it silent.
When it is fine: alpha over the root of the rank (arXiv:2312.03732).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainwreck.code.pattern import pattern
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.seek import modules
from trainwreck.core.evidence import Evidence

_LAYER = """
import torch
from torch import nn
class Low(nn.Module):
    def __init__(self, base, rank=4, alpha=8):
        super().__init__()
        self.base = base
        self.down = nn.Parameter(torch.randn(rank, base.in_features) * 0.01)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scale = SCALE
    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.down.t() @ self.up.t())
"""
_ALPHA = """
import torch
from torch import nn
class Low(nn.Module):
    def __init__(self, base, rank=32, alpha=8.0):
        super().__init__()
        self.base, self.rank, self.alpha = base, rank, alpha
        self.down = nn.Parameter(torch.randn(rank, base.in_features) * 0.01)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scaling = SCALE
    def forward(self, x):
        return self.base(x) + self.scaling * (x @ self.down.t() @ self.up.t())
"""
BAD = (
    _ALPHA.replace("SCALE", "alpha  # expect"),
    _ALPHA.replace("SCALE", "self.alpha  # expect"),
    _LAYER.replace("SCALE", "rank / alpha  # expect"),
    _LAYER.replace("SCALE", "alpha / base.in_features  # expect"),
)
GOOD = (
    _ALPHA.replace("SCALE", "alpha").replace("self.scaling * (", "self.scaling / self.rank * ("),
    _ALPHA.replace("SCALE", "self.alpha / self.rank"),
    _LAYER.replace("SCALE", "alpha / rank"),
    _LAYER.replace("SCALE", "alpha / rank**0.5"),
)
RANK = pattern(r"(^|[._])(r|rank|lora_r|lora_rank)$")
ALPHA = pattern(r"(^|[._])(lora_)?alpha$")
WIDTH = pattern(r"in_features|out_features|hidden|embed_dim|d_model")
MATRIX = pattern(r"nn\.Parameter|nn\.Linear|\bParameter\(|\bLinear\(")


SCALE = pattern(r"(^|[._])(lora_)?scal(e|ing)$")


def find(project: Project) -> Iterator[Evidence]:
    yield from _divided(project)
    for owner in modules(project):
        text = ast.unparse(owner.node)
        for function in owner.children:
            alone = function.name == "__init__" and any(RANK.search(p) for p in function.params)
            if not alone or not any(ALPHA.search(p) for p in function.params) or len(MATRIX.findall(text)) < 2:
                continue
            if any(_by_rank(n) for n in ast.walk(owner.node)):
                continue
            for node in project.within(function, ast.Assign):
                if not isinstance(node, ast.Assign) or not SCALE.search(ast.unparse(node.targets[0])):
                    continue
                if isinstance(node.value, ast.Name | ast.Attribute) and ALPHA.search(ast.unparse(node.value)):
                    said = "the update is scaled by alpha alone: adapters are scaled by alpha over rank"
                    yield sighting(__name__, (node, function), said, severity="warning")


def _by_rank(node: ast.AST) -> bool:
    """True where something is divided by the rank, or multiplied by one over it."""
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, ast.Div) and bool(RANK.search(ast.unparse(node.target) + ast.unparse(node.value)))
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div):
        return False
    return re.search(r"(^|[._(])(r|rank|lora_r|lora_rank)\b", ast.unparse(node.right)) is not None


def _divided(project: Project) -> Iterator[Evidence]:
    for owner in modules(project):
        for function in owner.children:
            for node in project.within(function, ast.BinOp):
                if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div):
                    continue
                above, below = ast.unparse(node.left), ast.unparse(node.right)
                turned = RANK.search(above) and ALPHA.search(below)
                other = ALPHA.search(above) and WIDTH.search(below)
                if not (turned or other) or len(MATRIX.findall(ast.unparse(owner.node))) < 2:
                    continue
                if not re.search(r"\brank\b|\br\b|lora", ast.unparse(owner.node)):
                    continue
                text = "the rank is divided by alpha here: adapters are scaled by alpha over rank"
                if not turned:
                    text = "alpha is divided by the width of the layer here: adapters are scaled by alpha over rank"
                yield sighting(__name__, (node, function), text, severity="warning")
