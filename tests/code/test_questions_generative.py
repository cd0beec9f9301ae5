"""Questions about generative models, in several spellings. ``# here`` marks the line; without one all is well."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable

import pytest

from marked import answered, marked
from trainwreck.code.rehearsal import Rehearsing
from trainwreck.code.rehearsal.questions import Answer
from trainwreck.code.rehearsal.questions.adversarial import leaking, maker_cut_off, saturating, swapped
from trainwreck.code.rehearsal.questions.averaging import swapped as swapped_shares
from trainwreck.code.rehearsal.questions.denoising import other_noise
from trainwreck.code.rehearsal.questions.feeding_noise import shared_noise
from trainwreck.code.rehearsal.questions.quantising import blocked, dominating, misplaced, uncommitted
from trainwreck.code.rehearsal.questions.similarities import masked_to_zero, scaled
from trainwreck.code.rehearsal.questions.variational import heavy_divergence, mismatched_reductions
from trainwreck.code.rehearsal.questions.views import collapsing, identical

HEAD = """
import copy, math
import numpy as np, torch
from torch import nn, optim
import torch.nn.functional as F
import torch.distributions as D
from torch.utils.data import DataLoader, Dataset, TensorDataset
"""
VAE = """
class Coder(nn.Module):
    def __init__(self, d=20, k=4):
        super().__init__()
        self.enc, self.mu, self.ls, self.dec = nn.Linear(d, 32), nn.Linear(32, k), nn.Linear(32, k), nn.Linear(k, d)
    def forward(self, x):
        h = torch.tanh(self.enc(x))
        q = D.Normal(self.mu(h), F.softplus(self.ls(h)) + 1e-3)
        return q, self.dec(q.rsample())
    def raw(self, x):
        h = torch.tanh(self.enc(x))
        mu, lv = self.mu(h), self.ls(h)
        return self.dec(mu + (lv / 2).exp() * torch.randn_like(mu)), mu, lv
net = Coder()
opt = optim.Adam(net.parameters(), 1e-3)
data = DataLoader(TensorDataset(torch.rand(1000, 20)), 50, shuffle=True)
def fit(objective):
    for epoch in range(10):
        for (x,) in data:
            opt.zero_grad()
            objective(x).backward()
            opt.step()
"""
GAN = """
Z = 8
G = nn.Sequential(nn.Linear(Z, 32), nn.ReLU(), nn.Linear(32, 2))
C = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 1))
og, oc = optim.Adam(G.parameters(), 1e-3), optim.Adam(C.parameters(), 1e-3)
def batch(): return torch.randn(64, 2) * 0.3 + 2
def bce(s, v): return F.binary_cross_entropy_with_logits(s, torch.full_like(s, v))
"""
VQ = """
class Codes(nn.Module):
    def __init__(self, n=16, d=8):
        super().__init__()
        self.table = nn.Embedding(n, d)
        self.table.weight.data.uniform_(-1 / n, 1 / n)
    def pick(self, z):
        d2 = (z[:, None] - self.table.weight[None]).pow(2).sum(-1)
        return self.table(d2.argmin(1))
enc, dec, codes = nn.Linear(20, 8), nn.Linear(8, 20), Codes()
opt = optim.Adam([*enc.parameters(), *dec.parameters(), *codes.parameters()], 1e-3)
def fit(objective):
    for step in range(1000):
        x = torch.randn(64, 20)
        loss = objective(x)
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
TWIN = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 16))
        self.guess = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16))
    def forward(self, x):
        return F.normalize(self.body(x), dim=1)
net = Net()
opt = optim.SGD(net.parameters(), 0.1)
def stir(x): return x + 0.1 * torch.randn_like(x)
def fit(objective):
    for step in range(1000):
        loss = objective(torch.randn(64, 20))
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
DENOISE = """
net = nn.Sequential(nn.Linear(3, 64), nn.SiLU(), nn.Linear(64, 2))
opt = optim.AdamW(net.parameters(), 1e-3)
abar = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 100), 0)
points = torch.rand(1000, 2)
def told(x, t): return net(torch.cat([x, t.view(-1, 1) / 100], 1))
def fit(objective):
    for step in range(1000):
        loss = objective(points[torch.randint(0, 1000, (64,))])
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
Question = Callable[[Rehearsing], Iterable[Answer]]
CASES: list[tuple[Question, str]] = [
    # ------------------------------------------------------------------ variational
    (
        mismatched_reductions,
        VAE
        + """
def objective(x):
    q, out = net(x)
    kl = D.kl_divergence(q, D.Normal(torch.zeros_like(q.mean), torch.ones_like(q.mean))).sum(1).mean()
    return F.mse_loss(out, x) + kl  # here
fit(objective)
""",
    ),
    (
        mismatched_reductions,
        VAE
        + """
fit_error = nn.MSELoss()
def objective(x):
    out, mu, lv = net.raw(x)
    losses = {"fit": fit_error(out, x)}  # here
    losses["kl"] = torch.mean(0.5 * torch.sum(mu ** 2 + lv.exp() - lv - 1, dim=1))
    return sum(losses.values())
fit(objective)
""",
    ),
    (
        mismatched_reductions,
        VAE
        + """
class Elbo(nn.Module):
    def __init__(self): super().__init__(); self.bce = nn.BCEWithLogitsLoss()
    def forward(self, x, out, mu, lv):
        kl = (mu.square() + lv.exp() - 1.0 - lv).sum() / 2 / len(x)
        return self.bce(out, x) + kl  # here
elbo = Elbo()
fit(lambda x: elbo(x, *net.raw(x)))
""",
    ),
    (
        mismatched_reductions,
        VAE
        + """
def objective(x):
    out, mu, lv = net.raw(x)
    kl = -0.5 * (1 + lv - mu.pow(2) - lv.exp()).sum(1).mean()
    return F.mse_loss(out, x, reduction="none").sum(1).mean() + kl
fit(objective)
""",
    ),
    (
        mismatched_reductions,
        VAE
        + """
def objective(x):
    out, mu, lv = net.raw(x)
    kl = -0.5 * (1 + lv - mu.pow(2) - lv.exp()).sum(1).mean()
    return F.mse_loss(out, x) * x.size(1) + kl
fit(objective)
""",
    ),
    (
        mismatched_reductions,
        VAE
        + """
def objective(x):
    out, mu, lv = net.raw(x)
    kl = -0.5 * (1 + lv - mu.pow(2) - lv.exp()).sum(1).mean()
    return (out - x).abs().mean() + 1e-3 * kl
fit(objective)
""",
    ),
    (
        heavy_divergence,
        VAE
        + """
settings = {"beta": 150.0}  # here
def objective(x):
    out, mu, lv = net.raw(x)
    kl = -0.5 * (1 + lv - mu.pow(2) - lv.exp()).sum(1)
    error = (out - x).pow(2).sum(1)
    return (error + settings["beta"] * kl).mean()
fit(objective)
""",
    ),
    (
        heavy_divergence,
        VAE
        + """
def objective(x, beta=4.0):
    out, mu, lv = net.raw(x)
    kl = -0.5 * (1 + lv - mu.pow(2) - lv.exp()).sum(1)
    return ((out - x).pow(2).sum(1) + beta * kl).mean()
fit(objective)
""",
    ),
    # ------------------------------------------------------------------ adversarial
    (
        leaking,
        GAN
        + """
for step in range(1000):
    oc.zero_grad(); og.zero_grad()
    fake = G(torch.randn(64, Z))
    both = C(torch.cat([batch(), fake]))  # here
    loss = F.binary_cross_entropy_with_logits(both, torch.cat([torch.ones(64, 1), torch.zeros(64, 1)]))
    loss.backward()
    oc.step()
    bce(C(G(torch.randn(64, Z))), 1.0).backward()
    og.step()
""",
    ),
    (
        leaking,
        GAN
        + """
def critic_step():
    made = G(torch.randn(64, Z))
    loss = F.softplus(-C(batch())).mean() + F.softplus(C(made)).mean()  # here
    loss.backward()
    oc.step()
def maker_step():
    loss = F.softplus(-C(G(torch.randn(64, Z)))).mean()
    loss.backward()
    og.step()
for step in range(1000):
    critic_step()
    maker_step()
    for o in (og, oc):
        o.zero_grad()
""",
    ),
    (
        leaking,
        GAN
        + """
for step in range(1000):
    made = G(torch.randn(64, Z))
    oc.zero_grad()
    (F.softplus(-C(batch())).mean() + F.softplus(C(made)).mean()).backward()
    oc.step()
    og.zero_grad()
    F.softplus(-C(G(torch.randn(64, Z)))).mean().backward()
    og.step()
""",
    ),
    (
        leaking,
        GAN
        + """
for step in range(1000):
    og.zero_grad(); oc.zero_grad()
    with torch.no_grad():
        made = G(torch.randn(64, Z))
    (F.softplus(-C(batch())).mean() + F.softplus(C(made)).mean()).backward()
    oc.step()
    F.softplus(-C(G(torch.randn(64, Z)))).mean().backward()
    og.step()
""",
    ),
    (
        maker_cut_off,
        GAN
        + """
for step in range(1000):
    made = G(torch.randn(64, Z)).detach()  # here
    oc.zero_grad()
    (F.softplus(-C(batch())).mean() + F.softplus(C(made)).mean()).backward()
    oc.step()
    og.zero_grad()
    F.softplus(-C(made)).mean().backward()
    og.step()
""",
    ),
    (
        maker_cut_off,
        GAN
        + """
@torch.no_grad()
def draw(n):
    return G(torch.randn(n, Z))
for step in range(1000):
    oc.zero_grad()
    (F.softplus(-C(batch())).mean() + F.softplus(C(draw(64))).mean()).backward()
    oc.step()
    og.zero_grad()
    loss = F.softplus(-C(draw(64))).mean()  # here
    loss.backward()
    og.step()
""",
    ),
    (
        maker_cut_off,
        GAN
        + """
for step in range(1000):
    made = G(torch.randn(64, Z))
    oc.zero_grad()
    (F.softplus(-C(batch())).mean() + F.softplus(C(made.detach())).mean()).backward()
    oc.step()
    og.zero_grad()
    F.softplus(-C(made)).mean().backward()
    og.step()
""",
    ),
    (
        swapped,
        GAN
        + """
for step in range(1000):
    made = G(torch.randn(64, Z))
    oc.zero_grad()
    (bce(C(batch()), 1.0) + bce(C(made.detach()), 0.0)).backward()
    oc.step()
    og.zero_grad()
    loss = bce(C(made), 0.0)  # here
    loss.backward()
    og.step()
""",
    ),
    (
        swapped,
        GAN
        + """
class Game:
    def judge(self, x, made):
        return F.softplus(C(x)).mean() + F.softplus(-C(made)).mean()  # here
    def make(self, made):
        return F.softplus(-C(made)).mean()
    def step(self, x):
        oc.zero_grad()
        self.judge(x, G(torch.randn(64, Z)).detach()).backward()
        oc.step()
        og.zero_grad()
        self.make(G(torch.randn(64, Z))).backward()
        og.step()
game = Game()
for step in range(1000):
    game.step(batch())
""",
    ),
    (
        swapped,
        GAN
        + """
for step in range(1000):
    for _ in range(3):
        made = G(torch.randn(64, Z)).detach()
        oc.zero_grad()
        (C(made).mean() - C(batch()).mean()).backward()
        oc.step()
    og.zero_grad()
    loss = C(G(torch.randn(64, Z))).mean()  # here
    loss.backward()
    og.step()
""",
    ),
    (
        swapped,
        GAN
        + """
for step in range(1000):
    made = G(torch.randn(64, Z))
    oc.zero_grad()
    real, fake = C(batch()), C(made.detach())
    (((real - 1) ** 2).mean() + (fake ** 2).mean()).backward()
    oc.step()
    og.zero_grad()
    ((C(made) - 1) ** 2).mean().backward()
    og.step()
""",
    ),
    (
        saturating,
        GAN
        + """
def prob(x): return torch.sigmoid(C(x))
for step in range(1000):
    made = G(torch.randn(64, Z))
    oc.zero_grad()
    (-(prob(batch()) + 1e-8).log().mean() - (1 - prob(made.detach()) + 1e-8).log().mean()).backward()
    oc.step()
    og.zero_grad()
    (1 - prob(made) + 1e-8).log().mean().backward()  # here
    og.step()
""",
    ),
    (
        saturating,
        GAN
        + """
for step in range(1000):
    made = G(torch.randn(64, Z))
    oc.zero_grad()
    (F.softplus(-C(batch())).mean() + F.softplus(C(made.detach())).mean()).backward()
    oc.step()
    og.zero_grad()
    loss = -F.softplus(C(made)).mean()  # here
    loss.backward()
    og.step()
""",
    ),
    (
        shared_noise,
        GAN
        + """
for step in range(1000):
    z = torch.randn(Z).repeat(64, 1)  # here
    made = G(z)
    oc.zero_grad()
    (F.softplus(-C(batch())).mean() + F.softplus(C(made.detach())).mean()).backward()
    oc.step()
    og.zero_grad()
    F.softplus(-C(made)).mean().backward()
    og.step()
""",
    ),
    (
        shared_noise,
        GAN
        + """
z = torch.randn(64, Z)  # here
for step in range(1000):
    made = G(z)
    oc.zero_grad()
    (F.softplus(-C(batch())).mean() + F.softplus(C(made.detach())).mean()).backward()
    oc.step()
    og.zero_grad()
    F.softplus(-C(made)).mean().backward()
    og.step()
""",
    ),
    (
        shared_noise,
        GAN
        + """
shown = torch.randn(16, Z)
for step in range(1000):
    made = G(torch.randn(64, Z))
    oc.zero_grad()
    (F.softplus(-C(batch())).mean() + F.softplus(C(made.detach())).mean()).backward()
    oc.step()
    og.zero_grad()
    F.softplus(-C(made)).mean().backward()
    og.step()
with torch.no_grad():
    print(G(shown).mean())
""",
    ),
    # ------------------------------------------------------------------ codes
    (
        blocked,
        VQ.replace("self.table(d2.argmin(1))", "self.table(d2.argmin(1))  # here")
        + """
def objective(x):
    z = enc(x)
    q = codes.pick(z)
    return F.mse_loss(dec(q), x) + F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
fit(objective)
""",
    ),
    (
        blocked,
        VQ
        + """
def objective(x):
    z = enc(x)
    q = codes.pick(z)
    through = z + q - z  # here
    return (dec(through) - x).square().mean() + (q - z.detach()).square().mean() + (q.detach() - z).square().mean()
fit(objective)
""",
    ),
    (
        blocked,
        VQ
        + """
def objective(x):
    z = enc(x)
    with torch.no_grad():
        index = torch.cdist(z, codes.table.weight).argmin(-1)
    hot = F.one_hot(index, 16).float()
    q = hot @ codes.table.weight
    through = q + (z - q).detach()  # here
    return (dec(through) - x).square().mean() + (q - z.detach()).square().mean() + (q.detach() - z).square().mean()
fit(objective)
""",
    ),
    (
        blocked,
        VQ
        + """
def objective(x):
    z = enc(x)
    q = codes.pick(z)
    through = z + (q - z).detach()
    return (dec(through) - x).square().mean() + (q - z.detach()).square().mean() + (q.detach() - z).square().mean()
fit(objective)
""",
    ),
    (
        misplaced,
        VQ
        + """
def pull(a, b): return (a - b.detach()).square().mean()  # here
def objective(x):
    z = enc(x)
    q = codes.pick(z)
    through = z + (q - z).detach()
    return (dec(through) - x).square().mean() + pull(z, q) + 0.25 * pull(z, q)
fit(objective)
""",
    ),
    (
        uncommitted,
        VQ
        + """
def objective(x):
    z = enc(x)
    q = codes.pick(z)
    through = z + (q - z).detach()
    commit = F.mse_loss(z, q.detach())  # here
    return F.mse_loss(dec(through), x) + F.mse_loss(q, z.detach())
fit(objective)
""",
    ),
    (
        uncommitted,
        VQ
        + """
def objective(x):
    z = enc(x)
    q = codes.pick(z)
    through = z + (q - z).detach()
    return F.mse_loss(dec(through), x)  # here
fit(objective)
""",
    ),
    (
        uncommitted,
        VQ
        + """
def objective(x):
    z = enc(x)
    q = codes.pick(z)
    through = z + (q - z).detach()
    return F.mse_loss(dec(through), x) + F.mse_loss(q, z)
fit(objective)
""",
    ),
    (
        dominating,
        VQ
        + """
weight = 50.0  # here
def objective(x):
    z = enc(x)
    q = codes.pick(z)
    through = z + (q - z).detach()
    held = F.mse_loss(z, q.detach())
    return F.mse_loss(dec(through), x) + F.mse_loss(q, z.detach()) + weight * held
fit(objective)
""",
    ),
    (
        dominating,
        VQ
        + """
def objective(x):
    z = enc(x)
    q = codes.pick(z)
    through = z + (q - z).detach()
    return F.mse_loss(dec(through), x) + F.mse_loss(q, z.detach()) + 0.5 * F.mse_loss(z, q.detach())
fit(objective)
""",
    ),
    # ------------------------------------------------------------------ views
    (
        identical,
        TWIN
        + """
def objective(x):
    first = stir(x)
    second = first  # here
    sim = net(first) @ net(second).t() / 0.1
    return F.cross_entropy(sim, torch.arange(64))
fit(objective)
""",
    ),
    (
        identical,
        TWIN
        + """
def objective(x):
    view = stir(x)
    z = net(torch.cat([view, view]))  # here
    sim = (z @ z.T / 0.2).masked_fill(torch.eye(128, dtype=torch.bool), -1e9)
    return F.cross_entropy(sim, torch.arange(128).roll(64))
fit(objective)
""",
    ),
    (
        identical,
        TWIN
        + """
def noisy(x):
    x.add_(0.1 * torch.randn_like(x))  # here
    return x
def objective(x):
    a, b = noisy(x), noisy(x)
    za, zb = net(a), net(b)
    sim = torch.einsum("id,jd->ij", za, zb) / 0.1
    return F.cross_entropy(sim, torch.arange(64))
fit(objective)
""",
    ),
    (
        identical,
        TWIN
        + """
def objective(x):
    a, b = stir(x), stir(x)
    sim = net(a) @ net(b).t() / 0.1
    return F.cross_entropy(sim, torch.arange(64))
fit(objective)
""",
    ),
    (
        identical,
        TWIN
        + """
drop = nn.Dropout(0.1)
def objective(x):
    a, b = drop(net.body(x)), drop(net.body(x))
    sim = F.normalize(a, dim=1) @ F.normalize(b, dim=1).t() / 0.1
    return F.cross_entropy(sim, torch.arange(64))
fit(objective)
""",
    ),
    (
        collapsing,
        TWIN
        + """
def objective(x):
    a, b = net(stir(x)), net(stir(x))
    return (a - b).pow(2).sum(-1).mean()  # here
fit(objective)
""",
    ),
    (
        collapsing,
        TWIN
        + """
def distance(p, z):
    p, z = F.normalize(p, dim=-1), F.normalize(z, dim=-1)
    return -(p * z).sum(-1).mean()  # here
def objective(x):
    a, b = net.body(stir(x)), net.body(stir(x))
    return (distance(net.guess(a), b) + distance(net.guess(b), a)) / 2
fit(objective)
""",
    ),
    (
        collapsing,
        TWIN
        + """
def objective(x):
    a = net.body(stir(x))
    with torch.no_grad():
        b = net.body(stir(x))
    return 2 - 2 * F.cosine_similarity(a, b).mean()  # here
fit(objective)
""",
    ),
    (
        collapsing,
        TWIN
        + """
def objective(x):
    a, b = net.body(stir(x)), net.body(stir(x))
    p, q = net.guess(a), net.guess(b)
    return -0.5 * (F.cosine_similarity(p, b.detach()).mean() + F.cosine_similarity(q, a.detach()).mean())
fit(objective)
""",
    ),
    (
        collapsing,
        TWIN
        + """
def objective(x):
    a, b = net.body(stir(x)), net.body(stir(x))
    spread = F.relu(1 - a.std(0)).mean() + F.relu(1 - b.std(0)).mean()
    return F.mse_loss(a, b) + spread
fit(objective)
""",
    ),
    (
        scaled,
        TWIN
        + """
tau = 0.07
def objective(x):
    sim = net(stir(x)) @ net(stir(x)).t()
    logits = sim * tau  # here
    return (F.cross_entropy(logits, torch.arange(64)) + F.cross_entropy(logits.t(), torch.arange(64))) / 2
fit(objective)
""",
    ),
    (
        scaled,
        TWIN
        + """
class Loss(nn.Module):
    def __init__(self, t=10.0): super().__init__(); self.t = t
    def forward(self, a, b):
        sim = F.cosine_similarity(a[:, None], b[None], dim=-1) / self.t  # here
        return -torch.log_softmax(sim, 1).diag().mean()
crit = Loss()
fit(lambda x: crit(net.body(stir(x)), net.body(stir(x))))
""",
    ),
    (
        scaled,
        TWIN
        + """
scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))
opt = optim.Adam([*net.parameters(), scale], 1e-3)
def objective(x):
    sim = net(stir(x)) @ net(stir(x)).t()
    return F.cross_entropy(sim * scale.exp(), torch.arange(64))
fit(objective)
""",
    ),
    (
        masked_to_zero,
        TWIN
        + """
labels = torch.randint(0, 5, (64,))
def objective(x):
    z = net(x)
    gap = torch.cdist(z, z)
    same = labels[:, None] == labels[None]
    far = (gap * same).max(1).values
    near = (gap * ~same).min(1).values  # here
    return F.relu(far - near + 0.2).mean()
fit(objective)
""",
    ),
    (
        masked_to_zero,
        TWIN
        + """
labels = torch.randint(0, 5, (64,))
def objective(x):
    z = net(x)
    gap = torch.cdist(z, z)
    same = labels[:, None] == labels[None]
    far = gap.masked_fill(~same, 0).amax(1)
    near = torch.where(same, torch.inf, gap).amin(1)
    return F.relu(far - near + 0.2).mean()
fit(objective)
""",
    ),
    # ------------------------------------------------------------------ averages
    (
        swapped_shares,
        TWIN
        + """
slow = copy.deepcopy(net)
def follow(keep=0.99):
    with torch.no_grad():
        for a, b in zip(slow.parameters(), net.parameters()):
            a.copy_((1 - keep) * a + keep * b)  # here
for step in range(1000):
    loss = F.mse_loss(net(torch.randn(8, 20)), torch.randn(8, 16))
    opt.zero_grad(); loss.backward(); opt.step()
    follow()
""",
    ),
    (
        swapped_shares,
        TWIN
        + """
slow = copy.deepcopy(net)
for step in range(1000):
    loss = F.mse_loss(net(torch.randn(8, 20)), torch.randn(8, 16))
    opt.zero_grad(); loss.backward(); opt.step()
    for a, b in zip(slow.parameters(), net.parameters()):
        a.data.mul_(0.01).add_(b.data, alpha=0.99)  # here
""",
    ),
    (
        swapped_shares,
        TWIN
        + """
slow = copy.deepcopy(net)
for step in range(1000):
    loss = F.mse_loss(net(torch.randn(8, 20)), torch.randn(8, 16))
    opt.zero_grad(); loss.backward(); opt.step()
    with torch.no_grad():
        for a, b in zip(slow.parameters(), net.parameters()):
            a.mul_(0.995).add_(b, alpha=0.005)
        for a, b in zip(slow.buffers(), net.buffers()):
            a.copy_(b)
""",
    ),
    # ------------------------------------------------------------------ noise
    (
        other_noise,
        DENOISE
        + """
def noisy(x, t):
    e = torch.randn_like(x)
    a = abar[t].view(-1, 1)
    return a.sqrt() * x + (1 - a).sqrt() * e
def objective(x):
    t = torch.randint(0, 100, (64,))
    out = told(noisy(x, t), t)
    return F.mse_loss(out, torch.randn_like(x))  # here
fit(objective)
""",
    ),
    (
        other_noise,
        DENOISE
        + """
class Process:
    def add(self, x, t):
        e = torch.randn(x.shape)
        return abar[t].sqrt()[:, None] * x + (1 - abar[t]).sqrt()[:, None] * e, e
    def loss(self, x):
        t = torch.randint(0, 100, (len(x),))
        (mixed, _), (_, e) = self.add(x, t), self.add(x, t)
        return (told(mixed, t) - e).square().mean()  # here
fit(Process().loss)
""",
    ),
    (
        other_noise,
        DENOISE
        + """
class Process:
    def add(self, x, t):
        e = torch.randn(x.shape)
        return abar[t].sqrt()[:, None] * x + (1 - abar[t]).sqrt()[:, None] * e, e
    def loss(self, x):
        t = torch.randint(0, 100, (len(x),))
        mixed, e = self.add(x, t)
        return (told(mixed, t) - e).square().mean()
fit(Process().loss)
""",
    ),
    (
        other_noise,
        DENOISE
        + """
def objective(x):
    x0 = torch.randn_like(x)
    t = torch.rand(64)
    mixed = torch.lerp(x0, x, t[:, None])
    return (told(mixed, t) - (x - x0)).square().mean()
fit(objective)
""",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("question", "text"), CASES, ids=[f"{q.__name__}-{n}" for n, (q, _) in enumerate(CASES)])
def test_question(question: Question, text: str) -> None:
    text = textwrap.dedent(HEAD + text)
    assert answered(question, text) == marked(text)
