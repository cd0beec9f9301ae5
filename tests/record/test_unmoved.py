"""Weights that should move and do not, parts that nobody registered, targets out of reach; and what looks like them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from recorded import lines, run

from trainwreck.engine import diagnose

pytest.importorskip("torch", reason="torch is not installed")

HEAD = """
import copy, itertools, torch
from torch import nn
from torch.nn import functional as F
torch.manual_seed(0)
x = torch.randn(64, 8)
y = x @ torch.randn(8, 4)

def train(model, parameters, steps=30, lr=1e-2, target=y, after=None, sort=torch.optim.Adam):
    opt = sort(parameters, lr=lr)
    for step in range(steps):
        loss = F.mse_loss(model(x.to(next(model.parameters()).dtype)).float(), target)
        opt.zero_grad(); loss.backward(); opt.step()
        if after is not None:
            after(step)
"""
LISTS = """
class Net(nn.Module):
    def __init__(self, teacher=None):
        super().__init__()
        blocks = [nn.Linear(8, 8) for _ in range(2)]
        self.blocks = blocks
        self.teacher = [teacher]
        self.out = nn.Linear(8, 4)

    def forward(self, x):
        for block in self.blocks:
            x = torch.relu(block(x))
        if self.teacher[0] is not None:
            with torch.no_grad():
                self.teacher[0](x)
        return self.out(x)
"""
AVERAGE = """
model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 4))
shadow = copy.deepcopy(model).to(torch.{kind})
def average(step):
    with torch.no_grad():
        for s, p in zip(shadow.parameters(), model.parameters()):
            {update}
train(model, model.parameters(), 400, after=average)
"""


def recorded(folder: Path, text: str) -> list[dict[str, Any]]:
    run(folder, HEAD + text)
    return [json.loads(line) for line in lines(folder).splitlines()]


def line_of(text: str, part: str) -> int:
    return next(i for i, line in enumerate((HEAD + text).splitlines(), 1) if part in line)


def test_blocks_in_a_plain_list_are_told_at_the_line_that_holds_them(tmp_path: Path) -> None:
    told = recorded(tmp_path, LISTS + "net = Net()\ntrain(net, net.parameters())\n")
    event = next(e for e in told if e.get("event") == "live-modules-not-registered")
    assert (event["module"], event["line"]) == ("Net.blocks", line_of(LISTS, "self.blocks = blocks"))


def test_lists_that_are_held_or_get_no_gradient_are_not_accused(tmp_path: Path) -> None:
    text = LISTS + (
        "net = Net(nn.Sequential(nn.Linear(8, 4)).eval())\n"
        "train(net, itertools.chain(net.parameters(), *[b.parameters() for b in net.blocks]))\n"
    )
    assert not [e for e in recorded(tmp_path, text) if str(e.get("event")).startswith("live-")]


@pytest.mark.parametrize(("last", "target"), [("Tanh", "3 * y"), ("Sigmoid", "y"), ("ReLU", "y")])
def test_targets_beyond_the_last_activation_are_told(tmp_path: Path, last: str, target: str) -> None:
    text = f"net = nn.Sequential(nn.Linear(8, 4), nn.{last}())\ntrain(net, net.parameters(), target={target})\n"
    assert any(e.get("event") == "live-targets-out-of-reach" for e in recorded(tmp_path, text))


def test_targets_within_reach_are_not(tmp_path: Path) -> None:
    text = """
for net, target in (
    (nn.Sequential(nn.Linear(8, 4), nn.Tanh()), y / y.abs().max()),
    (nn.Sequential(nn.Linear(8, 4), nn.Sigmoid()), (y > 0).float() + 0.005 * torch.randn_like(y)),
    (nn.Sequential(nn.Linear(8, 4), nn.Softplus()), y.abs()),
    (nn.Sequential(nn.Tanh(), nn.Linear(8, 4)), 5 * y),
):
    train(net, net.parameters(), target=target)
"""
    assert not any(e.get("event") == "live-targets-out-of-reach" for e in recorded(tmp_path, text))


def test_an_average_in_half_precision_that_stands_still_is_told_where_it_got_its_type(tmp_path: Path) -> None:
    text = AVERAGE.format(kind="bfloat16", update="s.lerp_(p.to(s.dtype), 0.002)")
    event = next(e for e in recorded(tmp_path, text) if e.get("event") == "live-average-stale")
    assert event["line"] == line_of(text, "shadow = ")


@pytest.mark.parametrize(
    ("kind", "update"),
    [
        ("float32", "s.lerp_(p.to(s.dtype), 0.002)"),
        ("bfloat16", "s.copy_(p) if step % 50 == 0 else None"),
        ("bfloat16", "s.copy_(p) if step == 300 else None"),
        ("bfloat16", "s.lerp_(p.to(s.dtype), 0.3)"),
    ],
)
def test_averages_that_follow_and_copies_now_and_then_are_not_accused(tmp_path: Path, kind: str, update: str) -> None:
    told = recorded(tmp_path, AVERAGE.format(kind=kind, update=update))
    assert not any(e.get("event") == "live-average-stale" for e in told)


@pytest.mark.parametrize(("rate", "stuck"), [("1e-6", True), ("1e-2", False)])
def test_updates_below_the_spacing_of_the_weights(tmp_path: Path, rate: str, stuck: bool) -> None:
    text = f"""
net = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 4)).bfloat16()
train(net, net.parameters(), 100, lr={rate})
"""
    recorded(tmp_path, text)
    signs = {e.sign: e.where for c in diagnose([tmp_path / "rec"]).root_causes for e in c.evidence}
    assert ("live-updates-below-spacing" in signs) == stuck
    if stuck:
        assert signs["live-updates-below-spacing"].line == line_of(text, ".bfloat16()")


GAME = """
class Codes(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec, self.book = nn.Linear(8, 4), nn.Linear(4, 8), nn.Embedding(16, 4)

    def forward(self, x):
        z = self.enc(x)
        q = self.book(torch.cdist(z, self.book.weight).argmin(1))
        return self.dec(z + (q - z).detach()), z, q

net = Codes()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(20):
    out, z, q = net(x)
    loss = F.mse_loss(out, x) + {term}
    opt.zero_grad(); loss.backward(); opt.step()
"""


@pytest.mark.parametrize(
    ("term", "moved"),
    [
        ("F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())", True),
        ("(q - z.detach()).pow(2).mean() + 0.25 * ((q.detach() - z) ** 2).mean()", True),
        ("F.mse_loss(z, 0 * z.detach()) + 0.25 * F.mse_loss(q, 0 * q.detach())", False),
    ],
)
def test_terms_that_draw_two_parts_to_each_other_are_noted(tmp_path: Path, term: str, moved: bool) -> None:
    told = recorded(tmp_path, GAME.format(term=term))
    assert any(e.get("event") == "moving-target" for e in told) == moved
