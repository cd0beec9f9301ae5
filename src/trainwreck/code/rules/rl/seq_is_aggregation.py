"""The importance ratio of a whole answer is put together wrongly from those of its tokens.

What: the ratios of the tokens are averaged, and their average is clipped.
Why it matters: that is the likelihood ratio of nothing: one token that became likely outweighs all that became
unlikely, and long answers are clipped by chance.
When it is fine: the exponential of the average of the log-ratios; losses of tokens that are averaged after clipping.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import answers
from trainwreck.code.rehearsal.questions.same_policy import averaged_ratios
from trainwreck.code.topics import REWARDS
from trainwreck.core.evidence import Evidence

_UPDATE = """
import torch
from torch import nn
net = nn.Sequential(nn.Embedding(20, 16), nn.Linear(16, 20))
opt = torch.optim.Adam(net.parameters(), 1e-3)
for ids, old, adv, real in batches:
    logp = net(ids).log_softmax(-1)
    new = logp.gather(-1, ids.unsqueeze(-1)).squeeze(-1)
    before = old.log_softmax(-1).gather(-1, ids.unsqueeze(-1)).squeeze(-1)
    ratio = RATIO
    loss = -torch.min(ratio * adv, ratio.clamp(0.9, 1.1) * adv).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WORDS = REWARDS
BAD = (
    _UPDATE.replace("RATIO", "((new - before).exp() * real).sum(1) / real.sum(1)  # expect"),
    _UPDATE.replace("RATIO", "torch.exp(new - before).mean(dim=-1)  # expect"),
)
GOOD = (
    _UPDATE.replace("RATIO", "(((new - before) * real).sum(1) / real.sum(1)).exp()"),
    _UPDATE.replace("RATIO", "(new - before).exp()"),
)


def find(project: Project) -> Iterator[Evidence]:
    yield from answers(__name__, project, averaged_ratios)
