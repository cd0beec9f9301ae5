"""A job that goes on without what it saved: scripts that restore all, each with one line cut out.

The line that is told stands before the one that is missing."""

from __future__ import annotations

import pytest

from trainwreck.code.read import parse
from trainwreck.code.witness import witness
from trainwreck.core.program import Module, Program

HEAD = """
import copy, io, os
import torch, torch.nn as nn, torch.nn.functional as F
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 32), nn.Linear(32, 3)
    def forward(self, x): return self.b(torch.relu(self.a(x)))
def data():
    x = torch.randn(64, 8)
    return x, x[:, :3].argmax(1)
"""
FILE = """
class Average:
    def __init__(self, net, d=0.99):
        self.d = d
        self.w = {k: v.detach().clone() for k, v in net.state_dict().items()}
    def step(self, net):
        for k, v in net.state_dict().items():
            self.w[k] = self.d * self.w[k] + (1 - self.d) * v
    def state_dict(self): return self.w
    def load_state_dict(self, w): self.w = w
def main(path="last.pt", epochs=10):
    net = Net()
    avg = Average(net)
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, epochs)
    best = 0.0
    start = 0
    if os.path.exists(path):
        state = torch.load(path)
        net.load_state_dict(state["net"])
        opt.load_state_dict(state["opt"])
        sched.load_state_dict(state["sched"])
        avg.load_state_dict(state["avg"])
        best = state["best"]
        torch.set_rng_state(state["rng"])
        start = state["epoch"] + 1
    for epoch in range(start, epochs):
        for _ in range(100):
            x, y = data()
            loss = F.cross_entropy(net(x), y)
            opt.zero_grad(); loss.backward(); opt.step()
            avg.step(net)
        sched.step()
        with torch.no_grad():
            x, y = data()
            acc = (net(x).argmax(1) == y).float().mean().item()
        if acc > best:
            best = acc
            torch.save(net.state_dict(), "best.pt")
        torch.save({"net": net.state_dict(), "opt": opt.state_dict(),
                    "sched": sched.state_dict(), "avg": avg.state_dict(),
                    "best": best, "rng": torch.get_rng_state(), "epoch": epoch}, path)
main()
"""
TRAINER = """
class Trainer:
    def __init__(self):
        self.net = Net()
        self.ema = copy.deepcopy(self.net)
        self.opt = torch.optim.AdamW(self.net.parameters(), 1e-3)
        self.scaler = torch.amp.GradScaler("cuda")
        self.count = 0
        self.best = float("inf")
    def state(self):
        return {"net": self.net.state_dict(), "ema": self.ema.state_dict(),
                "opt": self.opt.state_dict(), "scaler": self.scaler.state_dict(),
                "count": self.count, "best": self.best}
    def restore(self, s):
        self.net.load_state_dict(s["net"])
        self.ema.load_state_dict(s["ema"])
        self.opt.load_state_dict(s["opt"])
        self.scaler.load_state_dict(s["scaler"])
        self.count = s["count"]
        self.best = s["best"]
    def fit(self, n):
        while self.count < n:
            x, y = data()
            loss = F.cross_entropy(self.net(x), y)
            self.opt.zero_grad()
            self.scaler.scale(loss).backward()
            self.scaler.step(self.opt)
            self.scaler.update()
            with torch.no_grad():
                for a, b in zip(self.ema.parameters(), self.net.parameters()):
                    a.lerp_(b, 0.01)
            if loss.item() < self.best:
                self.best = loss.item()
            self.count += 1
def main():
    buf = io.BytesIO()
    t = Trainer()
    t.fit(100)
    torch.save(t.state(), buf)
    buf.seek(0)
    t = Trainer()
    t.restore(torch.load(buf))
    t.fit(200)
main()
"""
PARTS = """
def build():
    G, D = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2)), \\
        nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 1))
    return {"G": G, "D": D, "og": torch.optim.Adam(G.parameters()), "od": torch.optim.Adam(D.parameters())}
def fit(parts, steps):
    G, D = parts["G"], parts["D"]
    for _ in range(steps):
        real = torch.randn(64, 2) + 3
        fake = G(torch.randn(64, 4))
        ld = F.softplus(-D(real)).mean() + F.softplus(D(fake.detach())).mean()
        parts["od"].zero_grad(); ld.backward(); parts["od"].step()
        lg = F.softplus(-D(fake)).mean()
        parts["og"].zero_grad(); lg.backward(); parts["og"].step()
def main():
    parts = build()
    fit(parts, 100)
    torch.save({k: v.state_dict() for k, v in parts.items()}, "x.pt")
    parts = build()
    ck = torch.load("x.pt")
    for k in ("G", "D", "og", "od"):
        parts[k].load_state_dict(ck[k])
    fit(parts, 100)
main()
"""
SESSIONS = """
def session(steps, path=None):
    net = Net()
    opt = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    start = 0
    if path:
        ck = torch.load(path)
        net.load_state_dict(ck["net"])
        opt.load_state_dict(ck["opt"])
        start = ck["step"]
    avg = torch.optim.swa_utils.AveragedModel(net, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.99))
    if path:
        avg.load_state_dict(ck["avg"])
    for step in range(start, steps):
        x, y = data()
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad(); loss.backward(); opt.step()
        avg.update_parameters(net)
    torch.save({"net": net.state_dict(), "opt": opt.state_dict(), "avg": avg.state_dict(), "step": step}, "s.pt")
session(100)
session(200, "s.pt")
"""
LOST, COUNT, SCHEDULE = (f"code-{n}-not-restored" for n in ("optimizer-state", "step-counter", "scheduler-state"))
DRAWS = "code-resume-vs-fresh-nondeterminism"
CASES: list[tuple[str, str, str, str, str]] = [
    # script, what is cut, what stands instead, the sign, the line that is told
    (FILE, 'avg.load_state_dict(state["avg"])', "", LOST, 'sched.load_state_dict(state["sched"])'),
    (FILE, 'best = state["best"]', "", LOST, 'sched.load_state_dict(state["sched"])'),
    (FILE, 'torch.set_rng_state(state["rng"])', "", DRAWS, 'sched.load_state_dict(state["sched"])'),
    (TRAINER, 'self.ema.load_state_dict(s["ema"])', "", LOST, 'self.net.load_state_dict(s["net"])'),
    (TRAINER, 'self.scaler.load_state_dict(s["scaler"])', "", LOST, 'self.opt.load_state_dict(s["opt"])'),
    (TRAINER, 'self.best = s["best"]', "", LOST, 'self.scaler.load_state_dict(s["scaler"])'),
    (TRAINER, 'self.count = s["count"]', "", COUNT, 'self.scaler.load_state_dict(s["scaler"])'),
    (PARTS, '("G", "D", "og", "od")', '("G", "og", "od")', LOST, "parts[k].load_state_dict(ck[k])"),
    (PARTS, '("G", "D", "og", "od")', '("G", "D", "og")', LOST, "parts[k].load_state_dict(ck[k])"),
    (SESSIONS, 'avg.load_state_dict(ck["avg"])', "pass", LOST, 'opt.load_state_dict(ck["opt"])'),
]
HEALTHY = [
    FILE,
    TRAINER,
    PARTS,
    SESSIONS,
    PARTS.replace('for k in ("G", "D", "og", "od"):\n        parts[k].load_state_dict(ck[k])',
                  "for k, v in parts.items():\n        v.load_state_dict(ck[k])"),
    TRAINER.replace('self.ema.load_state_dict(s["ema"])', "self.ema = copy.deepcopy(self.net)")
    .replace('"ema": self.ema.state_dict(),', ""),
    TRAINER.replace('self.ema.load_state_dict(s["ema"])', "")
    .replace("    t.fit(200)\n", "    print(t.ema(data()[0]))\n"),
]  # fmt: skip


def told(text: str) -> list[tuple[str, str]]:
    """Signs of lost state with the lines that they name."""
    module = parse("s.py", text)
    assert isinstance(module, Module), module
    found = [e for e in witness(Program({"s.py": module})).evidence if e.sign in (LOST, COUNT, SCHEDULE, DRAWS)]
    return [(e.sign, text.split("\n")[(e.where.line or 1) - 1].strip()) for e in found]


@pytest.mark.parametrize(("script", "cut", "instead", "sign", "line"), CASES)
def test_what_is_not_read_back_is_told(script: str, cut: str, instead: str, sign: str, line: str) -> None:
    assert script.count(cut) == 1
    assert told(HEAD + script.replace(cut, instead or "pass")) == [(sign, line)]


@pytest.mark.parametrize("script", HEALTHY)
def test_what_is_read_back_is_not(script: str) -> None:
    assert told(HEAD + script) == []


def test_an_average_that_was_never_saved() -> None:
    script = TRAINER.replace('self.ema.load_state_dict(s["ema"])', "pass").replace('"ema": self.ema.state_dict(),', "")
    assert told(HEAD + script) == [(LOST, 'self.net.load_state_dict(s["net"])')]
