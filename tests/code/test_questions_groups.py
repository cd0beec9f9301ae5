"""Questions about deep stacks and about groups of answers, in several spellings. ``# here`` marks the line; without one
all is well."""

from __future__ import annotations

import pytest

from marked import answered, marked
from trainwreck.code.rehearsal.questions import Question
from trainwreck.code.rehearsal.questions.depth import saturating_stack
from trainwreck.code.rehearsal.questions.grouping import other_temperature, regrouped

HEAD = """
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F
from torch.distributions import Categorical
"""
TRAIN = """
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for x, y in loader:
    opt.zero_grad()
    F.cross_entropy(net(x), y).backward()
    opt.step()
"""
STACKS = (
    """
net = nn.Sequential(
    nn.Linear(10, 32),
    nn.Sigmoid(),  # here
    nn.Linear(32, 32), nn.Sigmoid(), nn.Linear(32, 32), nn.Sigmoid(), nn.Linear(32, 32), nn.Sigmoid(), nn.Linear(32, 3))
""",
    """
class Net(nn.Module):
    def __init__(self, depth=4):
        super().__init__()
        self.first = nn.Linear(10, 64)
        self.layers = nn.ModuleList([nn.Linear(64, 64) for _ in range(depth)])
        self.head = nn.Linear(64, 3)
    def forward(self, x):
        x = torch.sigmoid(self.first(x))  # here
        for layer in self.layers:
            x = torch.sigmoid(layer(x))
        return self.head(x)
net = Net()
""",
    """
def block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.Sigmoid(), nn.MaxPool2d(2))  # here
net = nn.Sequential(block(1, 8), block(8, 16), block(16, 32), block(32, 64), nn.Flatten(), nn.Linear(64, 3))
""",
    """
layers = [nn.Linear(10, 32), nn.Sigmoid()]  # here
for _ in range(4):
    layers += [nn.Linear(32, 32), nn.Sigmoid(), nn.Dropout(0.1)]
net = nn.Sequential(*layers, nn.Linear(32, 3))
""",
    # two hidden layers train
    "net = nn.Sequential(nn.Linear(10, 32), nn.Sigmoid(), nn.Linear(32, 32), nn.Sigmoid(), nn.Linear(32, 3))\n",
    # normalisation in between
    """
def block(i, o):
    return nn.Sequential(nn.Linear(i, o), nn.BatchNorm1d(o), nn.Sigmoid())
net = nn.Sequential(block(10, 8), block(8, 16), block(16, 32), block(32, 64), block(64, 64), nn.Linear(64, 3))
""",
    # a way past
    """
class Net(nn.Module):
    def __init__(self, depth=14):
        super().__init__()
        self.first, self.head = nn.Linear(10, 64), nn.Linear(64, 3)
        self.layers = nn.ModuleList([nn.Linear(64, 64) for _ in range(depth)])
    def forward(self, x):
        x = self.first(x)
        for layer in self.layers:
            x = x + torch.tanh(layer(x))
        return self.head(x)
net = Net()
""",
    # weights that make up for it
    """
net = nn.Sequential(*[m for _ in range(4) for m in (nn.Linear(10, 10), nn.Sigmoid())], nn.Linear(10, 3))
for m in net.modules():
    if isinstance(m, nn.Linear):
        nn.init.xavier_normal_(m.weight, gain=4.0)
""",
    "net = nn.Sequential(*[m for _ in range(4) for m in (nn.Linear(10, 10), nn.ReLU())], nn.Linear(10, 3))\n",
)
POLICY = """
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
G, N = 4, 16
"""
GROUPS = (
    """
for _ in range(100):
    obs = torch.randn(N, 10).repeat(G, 1)
    d = Categorical(logits=net(obs))
    a = d.sample()
    r = reward(obs, a).view(-1, G)  # here
    adv = (r - r.mean(1, keepdim=True)) / (r.std(1, keepdim=True) + 1e-6)
    loss = -(d.log_prob(a) * adv.flatten()).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    """
def advantages(rewards, group):
    table = rewards.reshape(group, -1)  # here
    return (table - table.mean(dim=0)).reshape(-1)
for _ in range(100):
    obs = torch.repeat_interleave(torch.randn(N, 10), G, dim=0)
    d = Categorical(logits=net(obs))
    a = d.sample()
    loss = -(d.log_prob(a) * advantages(reward(obs, a), G)).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    """
for _ in range(100):
    obs = torch.randn(N, 10).repeat_interleave(G, 0)
    d = Categorical(logits=net(obs))
    a = d.sample()
    r = reward(obs, a).view(N, G)
    loss = -(d.log_prob(a) * (r - r.mean(1, keepdim=True)).flatten()).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    """
for _ in range(100):
    obs = torch.randn(N, 10).repeat(G, 1)
    d = Categorical(logits=net(obs))
    a = d.sample()
    r = reward(obs, a).view(G, N)
    loss = -(d.log_prob(a) * (r - r.mean(0)).flatten()).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
)
TEMPERATURES = (
    """
for _ in range(100):
    obs = torch.randn(16, 10)
    a = Categorical(logits=net(obs) / 0.7).sample()
    logp = F.log_softmax(net(obs), -1).gather(1, a[:, None]).squeeze(1)  # here
    loss = -(logp * reward(obs, a)).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    """
for _ in range(100):
    obs = torch.randn(16, 10)
    with torch.no_grad():
        a = torch.multinomial((net(obs) / 1.5).softmax(-1), 1).squeeze(1)
        old = (net(obs) / 1.5).log_softmax(-1).gather(1, a[:, None])
    new = net(obs).log_softmax(-1).gather(1, a[:, None])  # here
    loss = -((new - old).exp() * reward(obs, a)).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    """
for _ in range(100):
    obs = torch.randn(16, 10)
    a = Categorical(logits=net(obs) / 2.0).sample()
    loss = -(Categorical(logits=net(obs)).log_prob(a) * reward(obs, a)).mean()  # here
    opt.zero_grad(); loss.backward(); opt.step()
""",
    # both at one temperature
    """
for _ in range(100):
    obs = torch.randn(16, 10)
    a = Categorical(logits=net(obs) / 0.7).sample()
    logp = F.log_softmax(net(obs) / 0.7, -1).gather(1, a[:, None]).squeeze(1)
    loss = -(logp * reward(obs, a)).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    """
for _ in range(100):
    obs = torch.randn(16, 10)
    d = Categorical(logits=net(obs) / 2.0)
    a = d.sample()
    loss = -(d.log_prob(a) * reward(obs, a)).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    # the old likelihood is kept in a list, and both come from one function with an argument
    """
def policy(obs, heat=1.0):
    return Categorical(logits=net(obs) / heat)
for _ in range(100):
    seen, acts, logs, gains = [], [], [], []
    for _ in range(20):
        obs = torch.randn(16, 10)
        with torch.no_grad():
            d = policy(obs, 1.7)
            a = d.sample()
        for box, item in zip((seen, acts, logs, gains), (obs, a, d.log_prob(a), reward(obs, a))):
            box.append(item)
    O, A, L, R = map(torch.stack, (seen, acts, logs, gains))
    for part in torch.randperm(20).split(5):
        ratio = (policy(O[part]).log_prob(A[part]) - L[part]).exp()  # here
        loss = -torch.min(ratio * R[part], ratio.clamp(0.8, 1.2) * R[part]).mean()
        opt.zero_grad(); loss.backward(); opt.step()
""",
    """
HEAT = 0.5
for _ in range(100):
    obs = torch.randn(16, 10)
    with torch.no_grad():
        a = torch.multinomial(net(obs).softmax(-1), 1)
        old = net(obs).log_softmax(-1).gather(1, a)
    new = (net(obs) / HEAT).log_softmax(-1).gather(1, a)  # here
    loss = -((new - old).exp() * reward(obs, a)).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    """
for _ in range(100):
    obs = torch.randn(16, 10)
    acts = torch.stack([Categorical(logits=net(obs) * 0.4).sample() for _ in range(4)], 1)
    logp = torch.log_softmax(net(obs), 1).gather(1, acts)  # here
    loss = -(logp * reward(obs, acts)).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    # the same temperature on both ways, written in two ways; one; and one that is not known
    """
def policy(obs, heat=1.0):
    return Categorical(logits=net(obs) / heat)
for _ in range(100):
    obs = torch.randn(16, 10)
    acts = torch.stack([policy(obs, 2.0).sample() for _ in range(4)])
    logp = torch.log_softmax(net(obs) * 0.5, 1).gather(1, acts.t())
    loss = -(logp * reward(obs, acts)).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    """
def policy(obs, heat=1.0):
    return Categorical(logits=net(obs) / heat)
for _ in range(100):
    obs = torch.randn(16, 10)
    a = policy(obs).sample()
    loss = -(F.log_softmax(net(obs), -1).gather(1, a[:, None]) * reward(obs, a)).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    """
def policy(obs, heat):
    return Categorical(logits=net(obs) / heat)
for it in range(100):
    obs = torch.randn(16, 10)
    a = policy(obs, max(1.0, 2.0 - it / 50)).sample()
    loss = -(policy(obs, 1.0).log_prob(a) * reward(obs, a)).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    """
for _ in range(100):
    obs = torch.randn(16, 10)
    p = net(obs).softmax(-1)
    a = torch.multinomial(p / p.sum(-1, keepdim=True) * 1.0, 1)
    loss = -(net(obs).log_softmax(-1).gather(1, a) * reward(obs, a)).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    # learning from what was drawn, as from any text; the draws that were right; with the weights of importance sampling
    """
for _ in range(100):
    obs = torch.randn(16, 10)
    with torch.no_grad():
        a = torch.multinomial((net(obs) / 1.2).softmax(-1), 1)
        keep = reward(obs, a) > 0
    nll = -F.log_softmax(net(obs), -1).gather(1, a)
    loss = (nll * keep).sum() / keep.sum().clamp(min=1)
    opt.zero_grad(); loss.backward(); opt.step()
""",
    """
for _ in range(100):
    obs = torch.randn(16, 10)
    with torch.no_grad():
        behaviour = F.log_softmax(net(obs) / 1.5, -1)
        a = torch.multinomial(behaviour.exp(), 1)
    logp = F.log_softmax(net(obs), -1).gather(1, a)
    rho = (logp.detach() - behaviour.gather(1, a)).exp().clamp(max=2.0)
    loss = -(rho * reward(obs, a) * logp).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    """
for _ in range(100):
    obs = torch.randn(16, 10)
    a = Categorical(logits=net(obs) / 0.7).sample()
    loss = F.cross_entropy(net(obs), a)
    opt.zero_grad(); loss.backward(); opt.step()
""",
)
CASES = [
    *((saturating_stack, code + TRAIN) for code in STACKS),
    *((regrouped, POLICY + code) for code in GROUPS),
    *((other_temperature, POLICY + code) for code in TEMPERATURES),
]


@pytest.mark.parametrize(("question", "code"), CASES)
def test_marked_lines_are_answered_and_no_other(question: Question, code: str) -> None:
    assert answered(question, HEAD + code) == marked(HEAD + code)
