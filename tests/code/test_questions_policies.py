"""Questions about policies, preferences, teachers, adapters and experts, in several spellings. ``# here`` marks the
line; without one all is well."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable

import pytest

from marked import answered, marked
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.adapters import both_zero, frozen
from trainwreck.code.rehearsal.questions.averaging import never_moved
from trainwreck.code.rehearsal.questions.distilling import teacher_state, temperatures
from trainwreck.code.rehearsal.questions.episodes import cut_as_end
from trainwreck.code.rehearsal.questions.mixing import carried, unmixed_labels
from trainwreck.code.rehearsal.questions.policy import (
    advantage_turned,
    entropy_minimised,
    hanging_advantage,
    minimised,
)
from trainwreck.code.rehearsal.questions.preferences import own_reference, swapped
from trainwreck.code.rehearsal.questions.routing import balance_unused
from trainwreck.code.rehearsal.questions.same_policy import same_policy
from trainwreck.code.rehearsal.questions.strength import too_strong

HEAD = """
import collections, copy, math, random
import numpy as np, torch
from torch import nn, optim
import torch.nn.functional as F
from torch.distributions import Categorical, Normal
"""
ACTOR = """
class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.pi, self.v = nn.Linear(4, 3), nn.Linear(4, 1)
    def forward(self, s):
        return Categorical(logits=self.pi(s)), self.v(s).squeeze(-1)
class World:
    def reset(self):
        self.s = torch.randn(4)
        return self.s
    def step(self, a):
        self.s = self.s + 0.1 * torch.randn(4)
        return self.s, float(self.s.sum()), bool(self.s.abs().max() > 3)
agent, world = Agent(), World()
opt = optim.Adam(agent.parameters(), 1e-3)
def play():
    s, done, logps, values, rewards = world.reset(), False, [], [], []
    while not done:
        pi, v = agent(s)
        a = pi.sample()
        logps.append(pi.log_prob(a)); values.append(v)
        s, r, done = world.step(a)
        rewards.append(r)
    return torch.stack(logps), torch.stack(values), rewards
def togo(rewards, gamma=0.99):
    out, total = [], 0.0
    for r in reversed(rewards):
        total = r + gamma * total
        out.insert(0, total)
    return torch.tensor(out)
"""
ROLLS = """
net = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 3))
opt = optim.Adam(net.parameters(), 1e-3)
def roll():
    with torch.no_grad():
        s = torch.randn(256, 4)
        pi = Categorical(logits=net(s))
        a = pi.sample()
        return s, a, pi.log_prob(a), torch.randn(256)
"""
Q = """
q = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
slow = copy.deepcopy(q)
opt = optim.Adam(q.parameters(), 1e-3)
"""
LM = """
class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.r, self.o = nn.Embedding(10, 16), nn.GRU(16, 16, batch_first=True), nn.Linear(16, 10)
    def forward(self, ids): return self.o(self.r(self.e(ids))[0])
def seq(m, ids):
    lp = m(ids[:, :-1]).log_softmax(-1)
    return lp.gather(-1, ids[:, 1:, None]).squeeze(-1).sum(-1)
def pairs(): return {"chosen": torch.randint(0, 10, (8, 6)), "rejected": torch.randint(0, 10, (8, 6))}
policy = LM()
"""
TEACH = """
def make(w, p): return nn.Sequential(nn.Linear(20, w), nn.BatchNorm1d(w), nn.ReLU(), nn.Dropout(p), nn.Linear(w, 5))
big, small = make(256, 0.5), make(32, 0.1)
big.load_state_dict(torch.load("big.pt"))
opt = optim.Adam(small.parameters(), 1e-3)
def batches():
    for _ in range(100):
        yield torch.randn(32, 20), torch.randint(0, 5, (32,))
"""
SLIM = """
class Slim(nn.Module):
    def __init__(self, base, r=4, alpha=8):
        super().__init__()
        self.base, self.scale = base, alpha / r
        self.a = nn.Parameter(torch.randn(base.in_features, r) / r)
        self.b = nn.Parameter(torch.zeros(r, base.out_features))
    def forward(self, x): return self.base(x) + self.scale * (x @ self.a @ self.b)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
def fit(params):
    opt = optim.Adam(params, 1e-3)
    for step in range(100):
        x, y = torch.randn(16, 8), torch.randint(0, 3, (16,))
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
ZERO = SLIM.replace("torch.randn(base.in_features, r) / r)", "torch.zeros(base.in_features, r))")
EXPERTS = """
class Mix(nn.Module):
    def __init__(self, d=16, n=4):
        super().__init__()
        self.n, self.gate = n, nn.Linear(d, n)
        self.experts = nn.ModuleList([nn.Linear(d, d) for _ in range(n)])
    def forward(self, x):
        p = self.gate(x).softmax(-1)
        w, i = p.topk(2, dim=-1)
        out = torch.zeros_like(x)
        for k, expert in enumerate(self.experts):
            out = out + ((i == k) * w).sum(-1, keepdim=True) * expert(x)
        share = F.one_hot(i, self.n).float().sum(1).mean(0)
        self.extra = self.n * (share * p.mean(0)).sum()
        return out, self.extra
mix, head = Mix(), nn.Linear(16, 1)
opt = optim.Adam([*mix.parameters(), *head.parameters()], 1e-3)
"""
Question = Callable[[Rehearsing], Iterable[Answer]]
CASES: list[tuple[Question, str]] = [
    # ------------------------------------------------------------------ signs
    (
        advantage_turned,
        ACTOR
        + """
for episode in range(500):
    logp, v, rewards = play()
    gain = v.detach() - togo(rewards)  # here
    loss = -(logp * gain).mean() + F.mse_loss(v, togo(rewards))
    opt.zero_grad(); loss.backward(); opt.step()
""",
    ),
    (
        advantage_turned,
        ACTOR
        + """
def returns_minus(base, rewards):
    return -(togo(rewards) - base)  # here
for episode in range(500):
    logp, v, rewards = play()
    gain = returns_minus(v.detach(), rewards)
    gain = gain / (gain.std() + 1e-8)
    loss = (-logp * gain).sum()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    ),
    (
        advantage_turned,
        ACTOR
        + """
for episode in range(500):
    logp, v, rewards = play()
    back = togo(rewards)
    gain = back - v.detach()
    gain = (gain - gain.mean()) / (gain.std() + 1e-8)
    loss = -(logp * gain).mean() + F.mse_loss(v, back)
    opt.zero_grad(); loss.backward(); opt.step()
""",
    ),
    (
        minimised,
        ACTOR
        + """
for episode in range(500):
    logp, v, rewards = play()
    loss = (logp * togo(rewards)).mean()  # here
    opt.zero_grad(); loss.backward(); opt.step()
""",
    ),
    (
        minimised,
        ROLLS
        + """
for it in range(100):
    s, a, old, adv = roll()
    for epoch in range(4):
        new = Categorical(logits=net(s)).log_prob(a)
        ratio = torch.exp(new - old)
        kept = torch.clamp(ratio, 0.8, 1.2)
        loss = torch.min(ratio * adv, kept * adv).mean()  # here
        opt.zero_grad(); loss.backward(); opt.step()
""",
    ),
    (
        minimised,
        ROLLS
        + """
for it in range(100):
    s, a, old, adv = roll()
    loss = (F.cross_entropy(net(s), a, reduction="none") * adv).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    ),
    (
        minimised,
        ROLLS
        + """
for it in range(100):
    s, a, old, cost = roll()
    loss = (Categorical(logits=net(s)).log_prob(a) * cost).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    ),
    (
        entropy_minimised,
        ROLLS
        + """
def losses(s, a, adv):
    pi = Categorical(logits=net(s))
    return {"gain": -(pi.log_prob(a) * adv).mean(), "spread": pi.entropy().mean()}
for it in range(100):
    s, a, old, adv = roll()
    got = losses(s, a, adv)
    loss = got["gain"] + 0.01 * got["spread"]  # here
    opt.zero_grad(); loss.backward(); opt.step()
""",
    ),
    (
        entropy_minimised,
        ROLLS
        + """
for it in range(100):
    s, a, old, adv = roll()
    pi = Categorical(logits=net(s))
    loss = -((pi.log_prob(a) * adv).mean() + 0.01 * pi.entropy().mean())
    opt.zero_grad(); loss.backward(); opt.step()
""",
    ),
    (
        hanging_advantage,
        ACTOR
        + """
for episode in range(500):
    logp, v, rewards = play()
    gain = togo(rewards) - v
    loss = -(logp * gain).mean() + 0.5 * gain.pow(2).mean()  # here
    opt.zero_grad(); loss.backward(); opt.step()
""",
    ),
    (
        hanging_advantage,
        ACTOR
        + """
for episode in range(500):
    logp, v, rewards = play()
    gain = togo(rewards) - v
    loss = -(logp * gain.detach()).mean() + 0.5 * gain.pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    ),
    # ------------------------------------------------------------------ old and new
    (
        same_policy,
        ROLLS
        + """
for it in range(100):
    s, a, _, adv = roll()
    for epoch in range(4):
        new = Categorical(logits=net(s)).log_prob(a)
        with torch.no_grad():
            old = Categorical(logits=net(s)).log_prob(a)  # here
        ratio = (new - old).exp()
        loss = -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean()
        opt.zero_grad(); loss.backward(); opt.step()
""",
    ),
    (
        same_policy,
        ROLLS
        + """
class Update:
    def __init__(self, eps=0.2): self.eps = eps
    def ratio(self, s, a):
        lp = net(s).log_softmax(-1).gather(1, a[:, None]).squeeze(1)
        return torch.exp(lp - lp.detach())  # here
    def __call__(self, s, a, adv):
        r = self.ratio(s, a)
        return -torch.minimum(r * adv, torch.clamp(r, 1 - self.eps, 1 + self.eps) * adv).mean()
update = Update()
for it in range(100):
    s, a, _, adv = roll()
    for epoch in range(4):
        for rows in torch.randperm(256).split(64):
            loss = update(s[rows], a[rows], adv[rows])
            opt.zero_grad(); loss.backward(); opt.step()
""",
    ),
    (
        same_policy,
        ROLLS
        + """
for it in range(100):
    s, a, old, adv = roll()
    for epoch in range(4):
        for rows in torch.randperm(256).split(64):
            new = Categorical(logits=net(s[rows])).log_prob(a[rows])
            ratio = (new - old[rows]).exp()
            loss = -torch.min(ratio * adv[rows], ratio.clamp(0.8, 1.2) * adv[rows]).mean()
            opt.zero_grad(); loss.backward(); opt.step()
""",
    ),
    # ------------------------------------------------------------------ ends
    (
        cut_as_end,
        Q
        + """
import gymnasium as gym
env = gym.make("CartPole-v1")
memory = []
for episode in range(300):
    s, _ = env.reset()
    done = False
    while not done:
        a = env.action_space.sample()
        s2, r, terminated, truncated, _ = env.step(a)
        done = terminated or truncated
        memory.append((s, a, r, s2, done))  # here
        s = s2
        rows = random.sample(memory, 32)
        s_, a_, r_, n_, d_ = zip(*rows)
        with torch.no_grad():
            best = slow(torch.tensor(np.array(n_))).max(1).values
            goal = torch.tensor(r_) + 0.99 * best * (1 - torch.tensor(d_, dtype=torch.float32))
        now = q(torch.tensor(np.array(s_))).gather(1, torch.tensor(a_)[:, None]).squeeze(1)
        loss = F.smooth_l1_loss(now, goal)
        opt.zero_grad(); loss.backward(); opt.step()
    slow.load_state_dict(q.state_dict())
""",
    ),
    (
        cut_as_end,
        Q
        + """
class Ring:
    def __init__(self, n):
        self.s, self.s2 = torch.zeros(n, 4), torch.zeros(n, 4)
        self.a, self.r, self.end, self.at = torch.zeros(n, dtype=torch.long), torch.zeros(n), torch.zeros(n), 0
    def put(self, s, a, r, s2, end):
        k = self.at % len(self.s)
        self.s[k], self.a[k], self.r[k], self.s2[k], self.end[k] = s, a, r, s2, float(end)
        self.at += 1
    def draw(self, n):
        k = torch.randint(0, min(self.at, len(self.s)), (n,))
        return self.s[k], self.a[k], self.r[k], self.s2[k], self.end[k]
ring = Ring(1000)
for episode in range(300):
    s, t, over = torch.randn(4), 0, False
    while not over:
        a = random.randrange(2)
        s2, r = s + 0.1 * torch.randn(4), 1.0
        t += 1
        fell = bool(s2.abs().max() > 2)
        over = fell or t >= 200  # here
        ring.put(s, a, r, s2, over)
        s = s2
        x, b, g, y, e = ring.draw(32)
        with torch.no_grad():
            goal = g + 0.99 * (1 - e) * slow(y).max(1)[0]
        loss = (q(x).gather(1, b[:, None])[:, 0] - goal).pow(2).mean()
        opt.zero_grad(); loss.backward(); opt.step()
    slow.load_state_dict(q.state_dict())
""",
    ),
    (
        cut_as_end,
        Q
        + """
memory = collections.deque(maxlen=1000)
for episode in range(300):
    s, t, over = torch.randn(4), 0, False
    while not over:
        a = random.randrange(2)
        s2, r = s + 0.1 * torch.randn(4), 1.0
        t += 1
        fell = bool(s2.abs().max() > 2)
        over = fell or t >= 200
        memory.append((s, a, r, s2, fell))
        s = s2
        x, b, g, y, e = zip(*random.sample(memory, 32))
        with torch.no_grad():
            goal = torch.tensor(g) + 0.99 * (1 - torch.tensor(e).float()) * slow(torch.stack(y)).max(1)[0]
        loss = (q(torch.stack(x)).gather(1, torch.tensor(b)[:, None])[:, 0] - goal).pow(2).mean()
        opt.zero_grad(); loss.backward(); opt.step()
    slow.load_state_dict(q.state_dict())
""",
    ),
    (
        never_moved,
        Q.replace("slow = copy.deepcopy(q)", "slow = copy.deepcopy(q)  # here")
        + """
for step in range(3000):
    x, b, g, y = torch.randn(32, 4), torch.randint(0, 2, (32,)), torch.randn(32), torch.randn(32, 4)
    with torch.no_grad():
        goal = g + 0.99 * slow(y).max(1)[0]
    loss = (q(x).gather(1, b[:, None])[:, 0] - goal).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    ),
    (
        never_moved,
        Q
        + """
for step in range(3000):
    x, b, g, y = torch.randn(32, 4), torch.randint(0, 2, (32,)), torch.randn(32), torch.randn(32, 4)
    with torch.no_grad():
        goal = g + 0.99 * slow(y).max(1)[0]
    loss = (q(x).gather(1, b[:, None])[:, 0] - goal).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    if step % 100 == 0:
        slow.load_state_dict(q.state_dict())
""",
    ),
    # ------------------------------------------------------------------ preferences
    (
        own_reference,
        LM
        + """
class Dpo:
    def __init__(self, policy, ref, beta=0.1):
        self.policy, self.ref, self.beta = policy, ref, beta
        self.opt = optim.Adam(policy.parameters(), 1e-4)
    def margins(self, m, b): return seq(m, b["chosen"]) - seq(m, b["rejected"])
    def step(self, b):
        with torch.no_grad():
            base = self.margins(self.ref, b)
        loss = F.softplus(-self.beta * (self.margins(self.policy, b) - base)).mean()
        self.opt.zero_grad(); loss.backward(); self.opt.step()
trainer = Dpo(policy, policy)  # here
for _ in range(100):
    trainer.step(pairs())
""",
    ),
    (
        own_reference,
        LM
        + """
frozen = copy.copy(policy)  # here
opt = optim.Adam(policy.parameters(), 1e-4)
for _ in range(100):
    b = pairs()
    with torch.no_grad():
        rc, rr = seq(frozen, b["chosen"]), seq(frozen, b["rejected"])
    logits = (seq(policy, b["chosen"]) - rc) - (seq(policy, b["rejected"]) - rr)
    loss = -torch.log(torch.sigmoid(0.1 * logits)).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    ),
    (
        own_reference,
        LM
        + """
frozen = copy.deepcopy(policy)
opt = optim.Adam(policy.parameters(), 1e-4)
for _ in range(100):
    b = pairs()
    frozen.load_state_dict(policy.state_dict())  # here
    with torch.no_grad():
        rc, rr = seq(frozen, b["chosen"]), seq(frozen, b["rejected"])
    logits = (seq(policy, b["chosen"]) - rc) - (seq(policy, b["rejected"]) - rr)
    loss = -F.logsigmoid(0.1 * logits).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    ),
    (
        own_reference,
        LM
        + """
frozen = LM()
frozen.load_state_dict(policy.state_dict())
opt = optim.Adam(policy.parameters(), 1e-4)
for _ in range(100):
    b = pairs()
    with torch.no_grad():
        rc, rr = seq(frozen, b["chosen"]), seq(frozen, b["rejected"])
    logits = (seq(policy, b["chosen"]) - rc) - (seq(policy, b["rejected"]) - rr)
    loss = -F.logsigmoid(0.1 * logits).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    ),
    (
        swapped,
        LM
        + """
frozen = copy.deepcopy(policy)
opt = optim.Adam(policy.parameters(), 1e-4)
for _ in range(100):
    b = pairs()
    gain = seq(policy, b["rejected"]) - seq(policy, b["chosen"])  # here
    with torch.no_grad():
        base = seq(frozen, b["rejected"]) - seq(frozen, b["chosen"])
    loss = -F.logsigmoid(0.1 * (gain - base)).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    ),
    (
        swapped,
        LM
        + """
score = nn.Sequential(nn.Embedding(10, 8), nn.Flatten(), nn.Linear(48, 1))
opt = optim.Adam(score.parameters(), 1e-4)
for _ in range(100):
    b = pairs()
    good, bad = score(b["chosen"]), score(b["rejected"])
    loss = F.softplus(good - bad).mean()  # here
    opt.zero_grad(); loss.backward(); opt.step()
""",
    ),
    (
        swapped,
        LM
        + """
score = nn.Sequential(nn.Embedding(10, 8), nn.Flatten(), nn.Linear(48, 1))
opt = optim.Adam(score.parameters(), 1e-4)
for _ in range(100):
    b = pairs()
    good, bad = score(b["chosen"]), score(b["rejected"])
    loss = F.softplus(bad - good).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    ),
    # ------------------------------------------------------------------ teachers
    (
        temperatures,
        TEACH
        + """
big.eval()
for x, y in batches():
    with torch.no_grad():
        soft = F.softmax(big(x), dim=1)  # here
    out = small(x)
    loss = 0.7 * 16 * F.kl_div(F.log_softmax(out / 4.0, 1), soft, reduction="batchmean") + 0.3 * F.cross_entropy(out, y)
    opt.zero_grad(); loss.backward(); opt.step()
""",
    ),
    (
        temperatures,
        TEACH
        + """
big.eval()
class Kd(nn.Module):
    def __init__(self, t=4.0, alpha=0.7):
        super().__init__()
        self.t, self.alpha, self.kl = t, alpha, nn.KLDivLoss(reduction="batchmean")
    def forward(self, out, goal, y):
        soft = self.kl(torch.log_softmax(out / self.t, -1), torch.softmax(goal / self.t, -1))  # here
        return self.alpha * soft + (1 - self.alpha) * F.cross_entropy(out, y)
kd = Kd()
for x, y in batches():
    with torch.no_grad():
        goal = big(x)
    loss = kd(small(x), goal, y)
    opt.zero_grad(); loss.backward(); opt.step()
""",
    ),
    (
        temperatures,
        TEACH
        + """
big.eval()
t = 3.0
for x, y in batches():
    with torch.no_grad():
        goal = big(x)
    out = small(x)
    soft = F.kl_div(F.log_softmax(out / t, 1), F.softmax(goal / t, 1), reduction="batchmean") * t * t
    loss = 0.5 * soft + 0.5 * F.cross_entropy(out, y)
    opt.zero_grad(); loss.backward(); opt.step()
""",
    ),
    (
        teacher_state,
        TEACH
        + """
small.train()
for x, y in batches():
    with torch.no_grad():
        goal = big(x)  # here
    out, told = F.log_softmax(small(x) / 4, 1), F.log_softmax(goal / 4, 1)
    loss = 16 * F.kl_div(out, told, log_target=True, reduction="batchmean")
    opt.zero_grad(); loss.backward(); opt.step()
""",
    ),
    (
        teacher_state,
        TEACH
        + """
class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.big, self.small = big, small
    def forward(self, x):
        with torch.no_grad():
            goal = self.big(x)  # here
        return self.small(x), goal
both = Both()
both.big.eval()
for epoch in range(10):
    both.train()
    for x, y in batches():
        out, goal = both(x)
        loss = F.cross_entropy(out, goal.softmax(-1))
        opt.zero_grad(); loss.backward(); opt.step()
""",
    ),
    (
        teacher_state,
        TEACH
        + """
big.eval()
opt = optim.Adam([*big.parameters(), *small.parameters()], 1e-3)
for x, y in batches():
    goal = F.softmax(big(x) / 4, 1)  # here
    loss = 16 * F.kl_div(F.log_softmax(small(x) / 4, 1), goal, reduction="batchmean")
    opt.zero_grad(); loss.backward(); opt.step()
""",
    ),
    (
        teacher_state,
        TEACH
        + """
big.eval()
for x, y in batches():
    small.train()
    with torch.no_grad():
        goal = F.softmax(big(x) / 4, 1)
    loss = 16 * F.kl_div(F.log_softmax(small(x) / 4, 1), goal, reduction="batchmean")
    opt.zero_grad(); loss.backward(); opt.step()
""",
    ),
    # ------------------------------------------------------------------ adapters
    (
        both_zero,
        ZERO.replace("zeros(r, base.out_features))", "zeros(r, base.out_features))  # here")
        + """
net[0] = Slim(net[0])
fit([net[0].a, net[0].b])
""",
    ),
    (
        both_zero,
        SLIM
        + """
class Other(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base
        self.low, self.high = nn.Linear(base.in_features, 4, bias=False), nn.Linear(4, base.out_features, bias=False)
        for part in (self.low, self.high):
            nn.init.constant_(part.weight, 0.0)  # here
    def forward(self, x): return self.base(x) + self.high(self.low(x))
net[0] = Other(net[0])
fit([*net[0].low.parameters(), *net[0].high.parameters()])
""",
    ),
    (
        both_zero,
        SLIM
        + """
net[0] = Slim(net[0])
fit([net[0].a, net[0].b])
""",
    ),
    (
        too_strong,
        SLIM.replace("alpha=8):", "alpha=1024):  # here")
        + """
net[0] = Slim(net[0])
fit([net[0].a, net[0].b])
""",
    ),
    (
        frozen,
        SLIM
        + """
net[0] = Slim(net[0])
net.requires_grad_(False)  # here
net[2].requires_grad_(True)
fit([p for p in net.parameters() if p.requires_grad])
""",
    ),
    (
        frozen,
        SLIM
        + """
net.requires_grad_(False)
net[0] = Slim(net[0])
net[2].requires_grad_(True)
fit([p for p in net.parameters() if p.requires_grad])
""",
    ),
    # ------------------------------------------------------------------ experts
    (
        balance_unused,
        EXPERTS
        + """
for step in range(1000):
    x, y = torch.randn(64, 16), torch.randn(64)
    h, extra = mix(x)
    loss = F.mse_loss(head(h).squeeze(-1), y)  # here
    opt.zero_grad(); loss.backward(); opt.step()
""",
    ),
    (
        balance_unused,
        EXPERTS
        + """
for step in range(1000):
    x, y = torch.randn(64, 16), torch.randn(64)
    h, _ = mix(x)
    loss = F.mse_loss(head(h).squeeze(-1), y) + 0.0 * mix.extra  # here
    opt.zero_grad(); loss.backward(); opt.step()
""",
    ),
    (
        balance_unused,
        EXPERTS
        + """
for step in range(1000):
    x, y = torch.randn(64, 16), torch.randn(64)
    h, extra = mix(x)
    loss = F.mse_loss(head(h).squeeze(-1), y) + 0.01 * extra
    opt.zero_grad(); loss.backward(); opt.step()
""",
    ),
    # ------------------------------------------------------------------ mixed samples, carried states
    (
        unmixed_labels,
        TEACH
        + """
for x, y in batches():
    lam, order = np.random.beta(0.4, 0.4), torch.randperm(len(x))
    out = small(lam * x + (1 - lam) * x[order])
    loss = F.cross_entropy(out, y)  # here
    opt.zero_grad(); loss.backward(); opt.step()
""",
    ),
    (
        unmixed_labels,
        TEACH
        + """
def mixed(x, y):
    lam, order = np.random.beta(0.4, 0.4), torch.randperm(len(x))
    return lam * x + (1 - lam) * x[order], y, y[order], lam
for x, y in batches():
    x, a, b, lam = mixed(x, y)
    out = small(x)
    loss = (1 - lam) * F.cross_entropy(out, a) + lam * F.cross_entropy(out, b)  # here
    opt.zero_grad(); loss.backward(); opt.step()
""",
    ),
    (
        unmixed_labels,
        TEACH
        + """
def mixed(x, y):
    lam, order = np.random.beta(0.4, 0.4), torch.randperm(len(x))
    return lam * x + (1 - lam) * x[order], y, y[order], lam
for x, y in batches():
    x, a, b, lam = mixed(x, y)
    out = small(x)
    loss = lam * F.cross_entropy(out, a) + (1 - lam) * F.cross_entropy(out, b)
    opt.zero_grad(); loss.backward(); opt.step()
""",
    ),
    (
        carried,
        LM
        + """
opt = optim.Adam(policy.parameters(), 1e-3)
class Runner:
    def __init__(self): self.h = None
    def __call__(self, ids):
        out, self.h = policy.r(policy.e(ids), self.h)  # here
        return policy.o(out)
runner = Runner()
for _ in range(100):
    ids = torch.randint(0, 10, (8, 6))
    loss = F.cross_entropy(runner(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    opt.zero_grad(); loss.backward(); opt.step()
""",
    ),
    (
        carried,
        LM
        + """
opt = optim.Adam(policy.parameters(), 1e-3)
class Runner:
    def __init__(self): self.h = None
    def __call__(self, ids):
        out, h = policy.r(policy.e(ids), self.h)
        self.h = h.detach()
        return policy.o(out)
runner = Runner()
for _ in range(100):
    ids = torch.randint(0, 10, (8, 6))
    loss = F.cross_entropy(runner(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    opt.zero_grad(); loss.backward(); opt.step()
""",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("question", "text"), CASES, ids=[f"{q.__name__}-{n}" for n, (q, _) in enumerate(CASES)])
def test_question(question: Question, text: str) -> None:
    text = textwrap.dedent(HEAD + text)
    assert answered(question, text) == marked(text)
