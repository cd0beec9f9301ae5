"""Whole scripts that the questions are asked of: trainers, buffers and modules with a state of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from marked import answered, marked
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.caching import positions
from trainwreck.code.rehearsal.questions.policy import advantage_turned
from trainwreck.code.rehearsal.questions.quantising import blocked, uncommitted

AGENT = """
import torch
from torch import nn
from torch.distributions import Categorical
class Buffer:
    def __init__(self):
        self.clear()
    def clear(self):
        self.obs, self.act, self.logp, self.rew, self.val, self.end = [], [], [], [], [], []
    def add(self, obs, act, logp, rew, val, end):
        stores = (self.obs, self.act, self.logp, self.rew, self.val, self.end)
        for store, x in zip(stores, (obs, act, logp, rew, val, end)):
            store.append(x)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 32), nn.Tanh())
        self.pi, self.v = nn.Linear(32, 4), nn.Linear(32, 1)
    def forward(self, x):
        h = self.body(x)
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)
class PPO:
    def __init__(self, gamma=0.99, lam=0.95, clip=0.2):
        self.net, self.buf = Net(), Buffer()
        self.gamma, self.lam, self.clip = gamma, lam, clip
        self.opt = torch.optim.Adam(self.net.parameters(), 3e-4)
    @torch.no_grad()
    def rollout(self):
        s = torch.randn(3)
        for t in range(128):
            pi, v = self.net(s)
            a = pi.sample()
            n, r = s + 0.1 * torch.randn(3), -s.pow(2).sum()
            self.buf.add(s, a, pi.log_prob(a), r, v, torch.tensor(0.0))
            s = n
        self.last = self.net(s)[1]
    def gae(self):
        adv, run, nxt = [], torch.tensor(0.0), self.last
        for r, v, e in zip(reversed(self.buf.rew), reversed(self.buf.val), reversed(self.buf.end)):
            delta = v - (r + self.gamma * nxt * (1 - e))  # here
            run = delta + self.gamma * self.lam * (1 - e) * run
            adv.insert(0, run)
            nxt = v
        return torch.stack(adv)
    def update(self):
        obs, act, old, val = (torch.stack(x) for x in (self.buf.obs, self.buf.act, self.buf.logp, self.buf.val))
        adv = self.gae()
        ret = val + adv
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        for _ in range(4):
            for i in torch.randperm(128).split(32):
                pi, v = self.net(obs[i])
                ratio = torch.exp(pi.log_prob(act[i]) - old[i])
                s1, s2 = ratio * adv[i], torch.clamp(ratio, 1 - self.clip, 1 + self.clip) * adv[i]
                loss = -torch.min(s1, s2).mean() + 0.5 * (v - ret[i]).pow(2).mean() - 0.01 * pi.entropy().mean()
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
        self.buf.clear()
agent = PPO()
for it in range(100):
    agent.rollout()
    agent.update()
"""
"""A buffer of lists, advantages from the last step backwards."""
KEPT = """
import torch
from torch import nn
import torch.nn.functional as F
def rotary(x, pos):
    half = x.size(-1) // 2
    freq = 1.0 / (100 ** (torch.arange(half) / half))
    ang = pos[:, None] * freq[None]
    c, s = ang.cos(), ang.sin()
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * c - b * s, a * s + b * c], -1)
class Attn(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.wq, self.wk, self.wv, self.wo = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.kept = None
    def reset(self):
        self.kept = None
    def shape(self, t):
        return t.view(t.size(0), t.size(1), self.h, -1).transpose(1, 2)
    def forward(self, x, keep=False):
        q, k, v = self.shape(self.wq(x)), self.shape(self.wk(x)), self.shape(self.wv(x))
        pos = torch.arange(x.size(1))  # here
        q, k = rotary(q, pos), rotary(k, pos)
        fresh = self.kept is None
        if keep:
            if not fresh:
                k = torch.cat([self.kept[0], k], 2)
                v = torch.cat([self.kept[1], v], 2)
            self.kept = (k, v)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=fresh)
        return self.wo(y.transpose(1, 2).flatten(2))
class LM(nn.Module):
    def __init__(self, v=20, d=32):
        super().__init__()
        self.e, self.a, self.n, self.o = nn.Embedding(v, d), Attn(d, 4), nn.LayerNorm(d), nn.Linear(d, v)
    def forward(self, ids, keep=False):
        h = self.e(ids)
        return self.o(h + self.a(self.n(h), keep))
m = LM()
opt = torch.optim.Adam(m.parameters(), 1e-3)
for _ in range(200):
    ids = torch.randint(0, 20, (16, 12))
    loss = F.cross_entropy(m(ids[:, :-1]).transpose(1, 2), ids[:, 1:])
    opt.zero_grad(); loss.backward(); opt.step()
@torch.no_grad()
def generate(m, ids, n):
    m.a.reset()
    logits = m(ids, keep=True)
    for _ in range(n):
        nxt = logits[:, -1].argmax(-1, keepdim=True)
        ids = torch.cat([ids, nxt], 1)
        logits = m(nxt, keep=True)
    return ids
print(generate(m, torch.randint(0, 20, (1, 4)), 6))
"""
"""Keys that the layer keeps itself, rotated positions."""
KEPT_WELL = """
import torch
from torch import nn
import torch.nn.functional as F
def rotary(x, pos):
    half = x.size(-1) // 2
    freq = 1.0 / (100 ** (torch.arange(half) / half))
    ang = pos[:, None] * freq[None]
    c, s = ang.cos(), ang.sin()
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * c - b * s, a * s + b * c], -1)
class Attn(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.wq, self.wk, self.wv, self.wo = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.kept = None
    def reset(self):
        self.kept = None
    def shape(self, t):
        return t.view(t.size(0), t.size(1), self.h, -1).transpose(1, 2)
    def forward(self, x, keep=False):
        q, k, v = self.shape(self.wq(x)), self.shape(self.wk(x)), self.shape(self.wv(x))
        start = 0 if self.kept is None else self.kept[0].size(2)
        pos = torch.arange(x.size(1)) + start
        q, k = rotary(q, pos), rotary(k, pos)
        fresh = self.kept is None
        if keep:
            if not fresh:
                k = torch.cat([self.kept[0], k], 2)
                v = torch.cat([self.kept[1], v], 2)
            self.kept = (k, v)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=fresh)
        return self.wo(y.transpose(1, 2).flatten(2))
class LM(nn.Module):
    def __init__(self, v=20, d=32):
        super().__init__()
        self.e, self.a, self.n, self.o = nn.Embedding(v, d), Attn(d, 4), nn.LayerNorm(d), nn.Linear(d, v)
    def forward(self, ids, keep=False):
        h = self.e(ids)
        return self.o(h + self.a(self.n(h), keep))
m = LM()
opt = torch.optim.Adam(m.parameters(), 1e-3)
for _ in range(200):
    ids = torch.randint(0, 20, (16, 12))
    loss = F.cross_entropy(m(ids[:, :-1]).transpose(1, 2), ids[:, 1:])
    opt.zero_grad(); loss.backward(); opt.step()
@torch.no_grad()
def generate(m, ids, n):
    m.a.reset()
    logits = m(ids, keep=True)
    for _ in range(n):
        nxt = logits[:, -1].argmax(-1, keepdim=True)
        ids = torch.cat([ids, nxt], 1)
        logits = m(nxt, keep=True)
    return ids
print(generate(m, torch.randint(0, 20, (1, 4)), 6))
"""
"""The same with an offset."""
CODES = """
import torch
from torch import nn
import torch.nn.functional as F
class EmaVQ(nn.Module):
    def __init__(self, n=32, d=8, decay=0.99):
        super().__init__()
        self.decay = decay
        self.register_buffer("codes", torch.randn(n, d))
        self.register_buffer("count", torch.zeros(n))
        self.register_buffer("total", self.codes.clone())
    def forward(self, z):
        b, d, t = z.shape
        flat = z.transpose(1, 2).reshape(-1, d)
        idx = torch.cdist(flat, self.codes).argmin(1)
        q = F.embedding(idx, self.codes).view(b, t, d).transpose(1, 2)
        if self.training:
            self.update(flat.detach(), idx)
        return z + (q - z).detach(), F.mse_loss(z, q.detach())
    @torch.no_grad()
    def update(self, flat, idx):
        hot = F.one_hot(idx, len(self.codes)).float()
        self.count.mul_(self.decay).add_(hot.sum(0), alpha=1 - self.decay)
        self.total.mul_(self.decay).add_(hot.t() @ flat, alpha=1 - self.decay)
        self.codes.copy_(self.total / (self.count[:, None] + 1e-5))
class AE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv1d(1, 16, 4, 2, 1), nn.ReLU(), nn.Conv1d(16, 8, 3, 1, 1))
        self.vq = EmaVQ()
        self.dec = nn.Sequential(nn.ConvTranspose1d(8, 16, 4, 2, 1), nn.ReLU(), nn.Conv1d(16, 1, 3, 1, 1))
    def forward(self, x):
        q, commit = self.vq(self.enc(x))
        return self.dec(q), commit
model = AE()
opt = torch.optim.Adam(model.parameters(), 1e-3)
for step in range(300):
    x = torch.randn(16, 1, 32).cumsum(-1)
    y, commit = model(x)
    loss = F.l1_loss(y, x)  # here
    opt.zero_grad(); loss.backward(); opt.step()
"""
"""A codebook in buffers, moved by averages."""
CODES_WELL = """
import torch
from torch import nn
import torch.nn.functional as F
class EmaVQ(nn.Module):
    def __init__(self, n=32, d=8, decay=0.99):
        super().__init__()
        self.decay = decay
        self.register_buffer("codes", torch.randn(n, d))
        self.register_buffer("count", torch.zeros(n))
        self.register_buffer("total", self.codes.clone())
    def forward(self, z):
        b, d, t = z.shape
        flat = z.transpose(1, 2).reshape(-1, d)
        idx = torch.cdist(flat, self.codes).argmin(1)
        q = F.embedding(idx, self.codes).view(b, t, d).transpose(1, 2)
        if self.training:
            self.update(flat.detach(), idx)
        return z + (q - z).detach(), F.mse_loss(z, q.detach())
    @torch.no_grad()
    def update(self, flat, idx):
        hot = F.one_hot(idx, len(self.codes)).float()
        self.count.mul_(self.decay).add_(hot.sum(0), alpha=1 - self.decay)
        self.total.mul_(self.decay).add_(hot.t() @ flat, alpha=1 - self.decay)
        self.codes.copy_(self.total / (self.count[:, None] + 1e-5))
class AE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv1d(1, 16, 4, 2, 1), nn.ReLU(), nn.Conv1d(16, 8, 3, 1, 1))
        self.vq = EmaVQ()
        self.dec = nn.Sequential(nn.ConvTranspose1d(8, 16, 4, 2, 1), nn.ReLU(), nn.Conv1d(16, 1, 3, 1, 1))
    def forward(self, x):
        q, commit = self.vq(self.enc(x))
        return self.dec(q), commit
model = AE()
opt = torch.optim.Adam(model.parameters(), 1e-3)
for step in range(300):
    x = torch.randn(16, 1, 32).cumsum(-1)
    y, commit = model(x)
    loss = F.l1_loss(y, x) + 0.25 * commit
    opt.zero_grad(); loss.backward(); opt.step()
"""
"""The same with the commitment in the loss."""

Question = Callable[[Rehearsing], Iterable[Answer]]
CASES: list[tuple[Question, str]] = [
    (advantage_turned, AGENT),
    (positions, KEPT),
    (positions, KEPT_WELL),
    (uncommitted, CODES),
    (uncommitted, CODES_WELL),
    (blocked, CODES_WELL),
]


@pytest.mark.parametrize(("question", "text"), CASES, ids=[f"{q.__name__}-{n}" for n, (q, _) in enumerate(CASES)])
def test_whole_script(question: Question, text: str) -> None:
    assert answered(question, text) == marked(text)
