"""Loops that step in other ways: backward called as a function, gradients returned, weights updated by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import forked
import pytest

from trainwreck.collect import collect
from trainwreck.engine import diagnose
from trainwreck.runs import witness

pytest.importorskip("torch", reason="torch is not installed")

START = """
import hashlib, torch
from torch import nn
torch.manual_seed(3)
model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))
x, y = torch.randn(320, 6), torch.randint(3, (320,))
weights = list(model.parameters())
def error(i):
    return nn.functional.cross_entropy(model(x[i * 8 : i * 8 + 8]), y[i * 8 : i * 8 + 8])
def digest():
    h = hashlib.sha256()
    for p in weights:
        h.update(p.detach().numpy().tobytes())
    return h.hexdigest()
"""
LOOPS = {
    "function": """
opt = torch.optim.SGD(weights, lr=0.1)
for i in range(40):
    loss = error(i)
    opt.zero_grad(); torch.autograd.backward(loss); opt.step()
    print(loss.item())
""",
    "gradients given back to an optimizer": """
opt = torch.optim.SGD(weights, lr=0.1)
for i in range(40):
    loss = error(i)
    for p, g in zip(weights, torch.autograd.grad(loss, weights)):
        p.grad = g
    opt.step()
    print(loss.item())
""",
    "by hand": """
for i in range(40):
    loss = error(i)
    loss.backward()
    with torch.no_grad():
        for p in weights:
            p -= 0.1 * p.grad
            p.grad = None
    print(loss.item())
""",
    "through data": """
for i in range(40):
    model.zero_grad()
    loss = error(i)
    loss.backward()
    for p in model.parameters():
        p.data.add_(p.grad.data, alpha=-0.1)
    print(loss.item())
""",
    "gradients returned": """
for i in range(40):
    loss = error(i)
    gradients = torch.autograd.grad(loss, weights)
    with torch.no_grad():
        for p, g in zip(weights, gradients):
            p.sub_(0.1 * g)
    print(loss.item())
""",
    "bare tensors": """
w1 = torch.randn(6, 16, requires_grad=True)
w2 = (0.1 * torch.randn(16, 3)).requires_grad_()
weights = [w1, w2]
for i in range(40):
    loss = nn.functional.cross_entropy((x[i * 8 : i * 8 + 8] @ w1).tanh() @ w2, y[i * 8 : i * 8 + 8])
    loss.backward()
    with torch.no_grad():
        for w in weights:
            w -= 0.1 * w.grad
            w.grad.zero_()
    print(loss.item())
""",
    "an optimizer of one's own": """
class Momentum:
    def __init__(self, ps): self.ps, self.v = ps, [torch.zeros_like(p) for p in ps]
    def zero_grad(self):
        for p in self.ps: p.grad = None
    @torch.no_grad()
    def step(self):
        for p, v in zip(self.ps, self.v):
            v.mul_(0.9).add_(p.grad)
            p.add_(v, alpha=-0.05)
opt = Momentum(weights)
for i in range(40):
    loss = error(i)
    opt.zero_grad(); loss.backward(); opt.step()
    print(loss.item())
""",
}


def run(folder: Path, text: str, *, recorded: bool = True) -> str:
    return (forked.recorded if recorded else forked.plain)(START + text, folder)


def columns(folder: Path) -> dict[str, list[float]]:
    found = witness(collect([folder / "rec"]).sources).runs
    series = next(r for r in found if r.format == "trainwreck-recording").series
    return {name: list(s.values) for name, s in series.items()}


def events(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "rec/rank0.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("loop", LOOPS)
def test_steps_are_told_and_nothing_is_changed_or_accused(loop: str, tmp_path: Path) -> None:
    text = LOOPS[loop] + "print(digest())\n"
    plain, recorded = run(tmp_path, text, recorded=False), run(tmp_path, text)
    assert recorded == plain
    seen = columns(tmp_path)
    printed = [float(line) for line in plain.splitlines()[:-1]]
    assert seen["loss"] == pytest.approx(printed)
    if "returned" not in loop:
        assert len(seen["grad_norm"]) >= 39
    told = [e["event"] for e in events(tmp_path) if str(e.get("event")).startswith(("live-", "recorder-", "alarm-"))]
    assert not told
    assert not [c for c in diagnose([tmp_path / "rec"]).root_causes if c.severity != "suggestion"]


def test_accumulation_by_hand_is_one_step(tmp_path: Path) -> None:
    loop = """
for i in range(40):
    loss = error(i) / 4
    loss.backward()
    if i % 4 == 3:
        with torch.no_grad():
            for p in weights:
                p -= 0.1 * p.grad
                p.grad = None
"""
    run(tmp_path, loop)
    seen = columns(tmp_path)
    assert seen["backwards"] == [4.0] * 10
    assert len(seen["grad_norm"]) >= 9
    assert not [e for e in events(tmp_path) if str(e.get("event")).startswith("live-")]


def test_two_losses_that_take_turns_by_hand_are_not_mixed(tmp_path: Path) -> None:
    loop = """
other = nn.Linear(6, 1)
def update(ps):
    with torch.no_grad():
        for p in ps:
            p -= 0.05 * p.grad
            p.grad = None
for i in range(30):
    loss = error(i)
    loss.backward()
    update(weights)
    distance = 100 + other(x[i * 8 : i * 8 + 8]).square().mean()
    distance.backward()
    update(other.parameters())
"""
    run(tmp_path, loop)
    seen = columns(tmp_path)
    assert max(seen["loss"]) < 50 < min(seen["optimizer1/loss"])
    assert not [e for e in events(tmp_path) if str(e.get("event")).startswith("live-")]


@pytest.mark.parametrize(
    ("sign", "loop"),
    [
        (
            "live-gradients-never-zeroed",
            """
for i in range(20):
    error(i).backward()
    with torch.no_grad():
        for p in weights:
            p -= 0.01 * p.grad
""",
        ),
        (
            "live-not-in-optimizer",
            """
for i in range(20):
    model.zero_grad()
    error(i).backward()
    with torch.no_grad():
        for p in weights[:-1]:
            p -= 0.1 * p.grad
""",
        ),
    ],
)
def test_wiring_faults_of_updates_by_hand_are_seen(sign: str, loop: str, tmp_path: Path) -> None:
    run(tmp_path, loop)
    found = [e for e in events(tmp_path) if e.get("event") == sign]
    assert len(found) == 1
    assert found[0]["step"] <= 6


def test_other_uses_of_gradients_are_no_steps(tmp_path: Path) -> None:
    loop = """
opt = torch.optim.SGD(weights, lr=0.1)
for i in range(30):
    a = x[i * 8 : i * 8 + 8].clone().requires_grad_()
    loss = nn.functional.cross_entropy(model(a), y[i * 8 : i * 8 + 8])
    slope, = torch.autograd.grad(loss, a, create_graph=True)
    attack, = torch.autograd.grad(100 * loss, a, retain_graph=True)
    norms = torch.autograd.grad(100 * loss, weights, retain_graph=True)
    opt.zero_grad(); (loss + slope.square().sum()).backward(); opt.step()
print(digest())
"""
    plain, recorded = run(tmp_path, loop, recorded=False), run(tmp_path, loop)
    assert recorded == plain
    seen = columns(tmp_path)
    assert max(seen["loss"]) < 10
    assert seen["backwards"] == [1.0] * 30


def test_a_traceback_through_the_functions_is_the_users_own(tmp_path: Path) -> None:
    loop = """
import traceback
for call in (lambda: torch.autograd.backward(x @ weights[0].T), lambda: torch.autograd.grad(x @ weights[0].T, weights)):
    try:
        call()
    except RuntimeError:
        print(traceback.format_exc())
"""
    plain, recorded = run(tmp_path, loop, recorded=False), run(tmp_path, loop)
    assert recorded == plain
    assert plain.count("Traceback") == 2
