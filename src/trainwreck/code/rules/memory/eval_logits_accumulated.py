"""Whole outputs of the evaluation are kept on the GPU.

What: an evaluation loop without gradients appends the raw output of the network on the GPU for every batch.
Why it matters: memory grows with the size of the test set until it is full.
When it is fine: with ``.cpu()``, for labels or scalars, for small sets.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainwreck.code.facts import (
    HELD,
    loop_over,
    made,
    source,
)
from trainwreck.code.order import (
    under_no_grad,
)
from trainwreck.code.project import Project
from trainwreck.code.rule import sighting
from trainwreck.code.spine import ends
from trainwreck.code.values import number
from trainwreck.core.evidence import Evidence

BAD = """
import torch
from torch import nn
class Lm(nn.Module):
    def __init__(self, vocab_size=50257):
        super().__init__()
        self.emb = nn.Embedding(vocab_size, 512)
        self.head = nn.Linear(512, vocab_size)
    def forward(self, x):
        return self.head(self.emb(x))
@torch.no_grad()
def evaluate(val_loader):
    model = Lm().cuda().eval()
    logits = []
    for x in val_loader:
        logits.append(model(x.cuda()))  # expect
    return torch.cat(logits)
"""
GOOD = """
import torch
from torch import nn
model = nn.Linear(4, 2).cuda()
@torch.no_grad()
def evaluate(val_loader):
    out = []
    for x in val_loader:
        out.append(model(x).cpu())
        out.append(model(x).argmax(1))
        out.append(model(x))
    return out
"""
WIDE = 10000
"""Columns from which the outputs of ten thousand samples take 400 MB in fp32."""


def find(project: Project) -> Iterator[Evidence]:
    if "cuda" not in source(project):
        return
    for call in project.calls("append"):
        value = call.node.args[0] if len(call.node.args) == 1 else None
        if (
            value is None
            or under_no_grad(project, call.node, call.scope) is None
            or loop_over(project, call.node, call.scope, HELD) is None
        ):
            continue
        found = ends(project, value, call.scope, reshapes=False)
        for node, scope in found:
            layers = made(project, node.func, scope) if isinstance(node, ast.Call) else []
            if len(found) == 1 and len(layers) == 1 and layers[0].name == "Linear":
                width = number(project, layers[0].argument("out_features", 1), layers[0].scope)
                if width is not None and width >= WIDE:
                    text = f"outputs of {width:,.0f} columns are kept on the GPU for every batch"
                    yield sighting(__name__, call, text, proof=layers)
