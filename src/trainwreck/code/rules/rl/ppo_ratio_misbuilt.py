"""The clipped ratio of PPO is no ratio, or is clipped to a range without 1.

What: ``ratio = new - old`` without ``exp``; ``ratio.clamp(1 - eps, 1 - eps)``; the clipped product without the minimum;
the product with the advantage clipped instead of the ratio; an action drawn anew for the new side, something else kept
for the old one, the mean over an action's coordinates for their sum.
Why it matters: the trust region holds nothing: all samples are clipped, or none.
When it is fine: with ``exp(new - old)`` and ``1 - eps .. 1 + eps``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.forms import clipped_alone, ratio_misbuilt
from trainwreck.code.rehearsal.questions.kept_ratios import coordinates_averaged, no_density, other_action
from trainwreck.code.topics import REWARDS
from trainwreck.core.evidence import Evidence

_UPDATE = """
import torch
from torch import nn, optim
from torch.distributions import Categorical
net = nn.Linear(8, 3)
opt = optim.Adam(net.parameters())
for obs, act, old, adv in loader:
    logp = Categorical(logits=net(obs)).log_prob(act)
    ratio = RATIO
    loss = -torch.min(ratio * adv, ratio.clamp(LOW, HIGH) * adv).mean()MARK
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WORDS = REWARDS
BAD = (
    _UPDATE.replace("RATIO", "logp - old  # expect").replace("LOW, HIGH", "0.8, 1.2").replace("MARK", ""),
    _UPDATE.replace("RATIO", "(logp - old).exp()")
    .replace("LOW, HIGH", "1 - 0.2, 1 - 0.2")
    .replace("MARK", "  # expect"),
    _UPDATE.replace("RATIO", "torch.exp(logp - old)").replace("LOW, HIGH", "-0.2, 0.2").replace("MARK", "  # expect"),
)
GOOD = _UPDATE.replace("RATIO", "torch.exp(logp - old)").replace("LOW, HIGH", "0.8, 1.2").replace("MARK", "")


def find(project: Project) -> Iterator[Evidence]:
    yield from further(
        __name__, project, (), ratio_misbuilt, clipped_alone, other_action, no_density, coordinates_averaged
    )
