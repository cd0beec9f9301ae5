"""Noise schedules, worked out: right ones in several forms, and what makes them wrong."""

from __future__ import annotations

import pytest

from trainwreck.code.read import parse
from trainwreck.code.witness import witness
from trainwreck.core.program import Module, Program

A = """
import math, torch, torch.nn as nn, torch.nn.functional as F
T = 200
betas = torch.linspace(1e-4, 0.05, T)
alphas = 1.0 - betas
abar = torch.cumprod(alphas, dim=0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.t = nn.Embedding(T, 16)
        self.f = nn.Sequential(nn.Linear(18, 64), nn.SiLU(), nn.Linear(64, 2))
    def forward(self, x, t): return self.f(torch.cat([x, self.t(t)], 1))
net = Net()
opt = torch.optim.Adam(net.parameters(), 1e-3)
data = torch.randn(1000, 2) * 0.3 + torch.tensor([1.0, -1.0])
for step in range(1000):
    x0 = data[torch.randint(0, 1000, (64,))]
    t = torch.randint(0, T, (64,))
    eps = torch.randn_like(x0)
    xt = abar[t].sqrt()[:, None] * x0 + (1 - abar[t]).sqrt()[:, None] * eps
    loss = F.mse_loss(net(xt, t), eps)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
N = """
import numpy as np, torch, torch.nn as nn
class Sched:
    def __init__(self, n=100, s=0.008):
        t = torch.arange(n + 1) / n
        f = torch.cos((t + s) / (1 + s) * torch.pi / 2) ** 2
        self.abar = (f / f[0])[1:].clamp(1e-4, 0.9999)
        self.a = self.abar.sqrt()
        self.s = (1 - self.abar).sqrt()
        self.n = n
    def q(self, x, i, e):
        return self.a[i].view(-1, 1) * x + self.s[i].view(-1, 1) * e
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(3, 64), nn.SiLU(), nn.Linear(64, 2))
    def forward(self, x, i): return self.f(torch.cat([x, i[:, None] / 100], 1))
sch = Sched()
net = Net()
opt = torch.optim.Adam(net.parameters(), 1e-3)
for step in range(1000):
    x = torch.randn(64, 2) * 0.2 + 1
    i = torch.randint(sch.n, (64,))
    e = torch.randn(64, 2)
    loss = ((net(sch.q(x, i, e), i) - e) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
FM = """
import torch, torch.nn as nn
net = nn.Sequential(nn.Linear(3, 64), nn.SiLU(), nn.Linear(64, 2))
opt = torch.optim.Adam(net.parameters(), 1e-3)
for step in range(1000):
    x = torch.randn(64, 2) * 0.2 + 1
    t = torch.rand(64, 1)
    e = torch.randn_like(x)
    xt = (1 - t) * x + t * e
    loss = (net(torch.cat([xt, t], 1)) - (e - x)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
VE = """
import torch, torch.nn as nn
net = nn.Sequential(nn.Linear(3, 64), nn.SiLU(), nn.Linear(64, 2))
opt = torch.optim.Adam(net.parameters(), 1e-3)
sig = torch.exp(torch.linspace(-4, 2, 50))
for step in range(1000):
    x = torch.randn(64, 2) * 0.2 + 1
    k = torch.randint(0, 50, (64,))
    e = torch.randn_like(x)
    xt = x + sig[k][:, None] * e
    loss = (net(torch.cat([xt, sig[k].log()[:, None]], 1)) - e).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
SIGN = "code-timestep-scaling"
FAULTS = [
    # script, what is replaced, by what, the line that is told
    (A, "cumprod(alphas", "cumprod(betas", "abar = torch.cumprod(betas, dim=0)"),
    (A, "torch.cumprod(alphas, dim=0)", "torch.exp(torch.cumsum(torch.log(betas), 0))", "abar = torch.exp("),
    (A, "alphas = 1.0 - betas", "alphas = betas", "abar = torch.cumprod("),
    (A, "abar[t].sqrt()[:, None] * x0", "abar[t][:, None] * x0", "xt = "),
    (A, "(1 - abar[t]).sqrt()[:, None] * eps", "(1 - abar[t])[:, None] * eps", "xt = "),
    (A, "abar[t].sqrt()[:, None] * x0", "alphas[t].sqrt()[:, None] * x0", "xt = "),
    (A, "abar = torch.cumprod(alphas, dim=0)", "abar = alphas", "alphas = "),
    (A, "net(xt, t), eps", "net(xt, torch.randint(0, T, (64,))), eps", "loss = "),
    (A, "1e-4, 0.05, T", "0.5, 0.99, T", "betas = "),
    (N, "self.a = self.abar.sqrt()", "self.a = self.abar", "return self.a[i]"),
    (N, "self.s = (1 - self.abar).sqrt()", "self.s = 1 - self.a", "return self.a[i]"),
    (FM, "(1 - t) * x + t * e", "(1 + t) * x + t * e", "xt = "),
]
HEALTHY = [
    A,
    N,
    FM,
    VE,
    A.replace("torch.linspace(1e-4, 0.05, T)", "torch.linspace(0.01, 0.2, T) ** 2"),
    FM.replace("(1 - t) * x + t * e", "t * x + (1 - (1 - 1e-4) * t) * e"),
    FM.replace("(1 - t) * x + t * e", "torch.cos(t * torch.pi / 2) * x + torch.sin(t * torch.pi / 2) * e"),
]


def told(text: str) -> list[str]:
    module = parse("s.py", text)
    assert isinstance(module, Module), module
    found = [e for e in witness(Program({"s.py": module})).evidence if e.sign == SIGN]
    return [text.split("\n")[(e.where.line or 1) - 1].strip() for e in found]


@pytest.mark.parametrize(("script", "old", "new", "line"), FAULTS)
def test_a_wrong_schedule_is_told(script: str, old: str, new: str, line: str) -> None:
    assert script.count(old) == 1
    found = told(script.replace(old, new))
    assert len(found) == 1
    assert found[0].startswith(line)


@pytest.mark.parametrize("script", HEALTHY)
def test_right_schedules_are_not(script: str) -> None:
    assert told(script) == []


SCALED = """
import torch, torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
raw = torch.randn(1000, 2) * 6 + torch.tensor([10.0, -4.0])
mean, std = raw.mean(0), raw.std(0)
data = (raw - mean) / std
net = nn.Sequential(nn.Linear(3, 64), nn.SiLU(), nn.Linear(64, 2))
opt = torch.optim.Adam(net.parameters(), 1e-3)
for epoch in range(10):
    for (x,) in DataLoader(TensorDataset(data), 64, shuffle=True):
        t = torch.rand(len(x), 1)
        e = torch.randn_like(x)
        xt = (1 - t) * x + t * e
        loss = (net(torch.cat([xt, t], 1)) - (e - x)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
@torch.no_grad()
def draw(n):
    x = torch.randn(n, 2)
    for i in range(50, 0, -1):
        x = x - net(torch.cat([x, torch.full((n, 1), i / 50)], 1)) / 50
    return x * std + mean
print(draw(100).mean(0))
"""
RAW = [
    SCALED.replace("TensorDataset(data)", "TensorDataset(raw)"),
    SCALED.replace("data = (raw - mean) / std", "data = raw"),
    SCALED.replace("x * std + mean", "mean + std * x").replace("TensorDataset(data)", "TensorDataset(raw)"),
]
FINE = [
    SCALED,
    SCALED.replace("data = (raw - mean) / std", "data = raw").replace("x * std + mean", "x"),
    SCALED.replace("TensorDataset(data)", "TensorDataset(raw)")
    .replace("t = torch.rand", "x = (x - mean) / std\n        t = torch.rand"),
]  # fmt: skip


@pytest.mark.parametrize("text", [*RAW, *FINE])
def test_data_that_were_never_scaled(text: str) -> None:
    module = parse("s.py", text)
    assert isinstance(module, Module), module
    signs = [e.sign for e in witness(Program({"s.py": module})).evidence]
    assert signs.count("code-diffusion-data-scaling") == (text in RAW)
