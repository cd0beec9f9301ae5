"""The scale of an adapter is its rank over alpha, or alpha over another size.

What: ``scale = r / alpha`` in a layer with two low-rank matrices, or ``alpha / in_features``.
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
BAD = (
    _LAYER.replace("SCALE", "rank / alpha  # expect"),
    _LAYER.replace("SCALE", "alpha / base.in_features  # expect"),
)
GOOD = (
    _LAYER.replace("SCALE", "alpha / rank"),
    _LAYER.replace("SCALE", "alpha / rank**0.5"),
)
RANK = pattern(r"(^|[._])(r|rank|lora_r|lora_rank)$")
ALPHA = pattern(r"(^|[._])(lora_)?alpha$")
WIDTH = pattern(r"in_features|out_features|hidden|embed_dim|d_model")
MATRIX = pattern(r"nn\.Parameter|nn\.Linear|\bParameter\(|\bLinear\(")


def find(project: Project) -> Iterator[Evidence]:
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
