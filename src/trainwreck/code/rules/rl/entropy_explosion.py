"""The agent acts at random from beginning to end, or ever more often.

What: the threshold below which a random action is drawn never falls, grows with the steps, or is compared the wrong
way round; or the bonus for entropy weighs as much as standardised advantages.
Why it matters: what was learned is hardly ever used, and the returns stay those of chance.
When it is fine: for data that a random policy is to gather; for a share that falls.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.code.project import Project
from trainwreck.code.rehearsal.questions import further
from trainwreck.code.rehearsal.questions.exploring import always_random
from trainwreck.code.rehearsal.questions.returns import entropy_outweighs
from trainwreck.core.evidence import Evidence

_ACT = """
import random
import torch
from torch import nn
q = nn.Linear(4, 3)
opt = torch.optim.Adam(q.parameters())
HIGH, LOW, OVER = 1.0, 0.05, 5000
def share(step):
    return SHARE
def act(s, step):
    if random.random() < share(step):
        return random.randrange(3)
    return q(s).argmax().item()
for step in range(20000):
    s = torch.randn(4)
    a = act(s, step)
    loss = (q(s)[a] - s.sum()) ** 2
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
_BONUS = """
import torch
from torch import nn
from torch.distributions import Categorical
net = nn.Linear(4, 3)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
CLIP, BONUS = 0.2, WEIGHT
for obs, act, old, gain in batches:
    adv = (gain - gain.mean()) / (gain.std() + 1e-8)
    pi = Categorical(logits=net(obs))
    ratio = (pi.log_prob(act) - old).exp()
    goal = torch.min(ratio * adv, ratio.clamp(1 - CLIP, 1 + CLIP) * adv).mean()
    loss = -goal - BONUS * pi.entropy().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
BAD = (
    _BONUS.replace("WEIGHT", "1.0  # expect"),
    _ACT.replace("SHARE", "LOW + min(step / OVER, 1.0) * (HIGH - LOW)  # expect"),
    _ACT.replace("SHARE", "max(HIGH, HIGH - step / OVER)  # expect"),
)
GOOD = (
    _BONUS.replace("WEIGHT", "0.01"),
    _ACT.replace("SHARE", "HIGH + min(step / OVER, 1.0) * (LOW - HIGH)"),
    _ACT.replace("SHARE", "max(LOW, HIGH - step / OVER)"),
    _ACT.replace("SHARE", "LOW"),
)


def find(project: Project) -> Iterator[Evidence]:
    yield from further(__name__, project, (), always_random, entropy_outweighs)
