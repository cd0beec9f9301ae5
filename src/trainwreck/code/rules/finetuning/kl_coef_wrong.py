"""A reference model that nothing refers to, or that the policy is driven away from.

What: ``sync_ref_model=True`` with ``beta=0``; an estimate of the divergence that is taken off the loss, or that is
worked out and is no part of it, while the weight that is set for it is read by nothing.
Why it matters: with beta 0 there is no reference model, and the policy is held by nothing; with the wrong sign the
policy is rewarded for leaving it.
When it is fine: where the KL term is left out on purpose, and the reference model with it.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.arguments import contradicted
from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.leashes import linear, misbuilt, paid_to_leave, turned_round
from trainwreck.code.rehearsal.questions.loose_leashes import held_by_nothing
from trainwreck.core.evidence import Evidence

_GROUPS = """
import torch
from torch import nn
policy, reference = nn.Linear(8, 5), nn.Linear(8, 5)
opt = torch.optim.Adam(policy.parameters(), 1e-3)
for x, picked, adv, old in batches:
    new = torch.log_softmax(policy(x), -1).gather(1, picked[:, None])[:, 0]
    with torch.no_grad():
        ref = torch.log_softmax(reference(x), -1).gather(1, picked[:, None])[:, 0]
    ratio = (new - old).exp()
    gain = torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv)
    gap = ref - new
    kl = gap.exp() - gap - 1
    loss = -(gain - 0.04 * kl).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
BAD = (
    """
from trl import GRPOConfig
args = GRPOConfig(
    output_dir="o",
    beta=0.0,  # expect
    sync_ref_model=True,
)
""",
    _GROUPS.replace("(gain - 0.04 * kl).mean()", "(gain + 0.04 * kl).mean()  # expect"),
    _GROUPS.replace("kl = gap.exp() - gap - 1", "kl = gap - gap.exp() + 1  # expect"),
    _GROUPS.replace("-(gain - 0.04 * kl).mean()", "-gain.mean() - 0.04 * kl.mean()  # expect"),
    _GROUPS.replace("kl = gap.exp() - gap - 1", "kl = 0.5 * gap.pow(2)")
    .replace("gain - 0.04", "gain + 0.04")
    .replace("* kl).mean()", "* kl).mean()  # expect"),
)
GOOD = (
    _GROUPS,
    _GROUPS.replace("-(gain - 0.04 * kl).mean()", "-gain.mean() + 0.04 * kl.mean()"),
    _GROUPS.replace("kl = gap.exp() - gap - 1", "kl = 0.5 * gap.pow(2)"),
    """
from trl import GRPOConfig
args = GRPOConfig(output_dir="o", beta=0.04, sync_ref_model=True)
free = GRPOConfig(output_dir="o", beta=0.0)
plain = GRPOConfig(output_dir="o")
""",
)


def find(project: Project) -> Iterator[Evidence]:
    found = contradicted(project, __name__)
    yield from further(__name__, project, found, turned_round, linear, misbuilt, paid_to_leave, held_by_nothing)
