"""The balance of a router's experts is pushed the wrong way.

What: the product of each expert's share of the rows and its mean probability enters the loss with a minus.
Why it matters: it is smallest where all experts are used alike (arXiv:2101.03961); maximised, it drives all rows to
one of them.
When it is fine: for an entropy of the mean probabilities, which is largest where they are even.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.gates import weighs_nothing, worst_experts
from trainwreck.code.rehearsal.questions.routing import balance_turned
from trainwreck.core.evidence import Evidence

BAD = """
import torch
import torch.nn.functional as F
from torch import nn
class MoE(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.experts = nn.Linear(8, 4), nn.ModuleList([nn.Linear(8, 8) for _ in range(4)])
    def forward(self, x):
        p = self.gate(x).softmax(-1)
        w, i = p.max(-1)
        aux = (p.mean(0) * F.one_hot(i, 4).float().mean(0)).sum() * 4
        out = torch.stack([e(x) for e in self.experts], 1)
        return w[:, None] * out[torch.arange(len(x)), i], aux
def train(loader):
    moe = MoE()
    opt = torch.optim.Adam(moe.parameters())
    for x, y in loader:
        h, aux = moe(x)
        loss = F.mse_loss(h, y) - 0.01 * aux  # expect
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
GOOD = BAD.replace("- 0.01 * aux  # expect", "+ 0.01 * aux")


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, (), balance_turned, worst_experts, weighs_nothing)
