"""What looks like a fault and is the method: and the fault beside it, which is still told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from recorded import lines, run

HEAD = """
import copy, torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
def train(model, loss_of, steps=12, rate=1e-2):
    opt = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], rate)
    for step in range(steps):
        loss = loss_of(step)
        opt.zero_grad(); loss.backward(); opt.step()
        after(step)
def after(step): pass
"""
TRANSLATION = """
source, target = torch.randint(3, 20, (16, 9)), torch.randint(3, 20, (16, 10))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.src, self.tgt = nn.Embedding(20, 16), nn.Embedding(20, 16)
        self.encoder = nn.GRU(16, 16, batch_first=True, bidirectional=True)
        self.decoder, self.memory = nn.GRU(16, 16, batch_first=True), nn.Linear(32, 16)
        self.out = nn.Linear(16, 20)
    def attend(self, queries, keys):
        return (queries @ keys.transpose(1, 2) / 4).softmax(-1) @ keys
    def forward(self, source, target):
        y, _ = self.decoder(self.tgt(target))
        keys = self.memory(self.encoder(self.src(source))[0])
        return self.out(y + self.attend(y, KEYS))
net = Net()
train(net, lambda step: F.cross_entropy(net(source, target[:, :-1]).flatten(0, 1), target[:, 1:].flatten()))
"""
STATEFUL = """
ids = torch.randint(0, 20, (8, 61))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.rnn, self.out = nn.Embedding(20, 16), nn.LSTM(16, 16, batch_first=True), nn.Linear(16, 20)
        self.state = None
    def forward(self, x):
        h, state = self.rnn(self.emb(x), self.state)
        self.state = tuple(s.detach() for s in state)
        return self.out(h)
net = Net()
def loss_of(step):
    x = ids[:, step * 5 : step * 5 + 6]
    return F.cross_entropy(net(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())
train(net, loss_of)
"""
ROUNDS = """
class Round(nn.Module):
    def __init__(self):
        super().__init__()
        self.shift, self.node = nn.Linear(4, 1), nn.Linear(5, 4)
    def forward(self, h, x):
        return torch.tanh(self.node(torch.cat([h, x], -1))), x + self.shift(h)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rounds = nn.ModuleList(Round() for _ in range(3))
        self.out = nn.Linear(4, 1)
    def forward(self, h, x):
        for block in self.rounds:
            before, (h, x) = h, block(h, x)
        return self.out(USED)
net, h, x = Net(), torch.randn(32, 4), torch.randn(32, 1)
train(net, lambda step: F.mse_loss(net(h, x), x))
"""
TARGETS = """
net = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))
slow = copy.deepcopy(net).requires_grad_(False)
x, nxt = torch.randn(64, 3), torch.randn(64, 3)
def after(step):
    for s, p in zip(slow.parameters(), net.parameters()):
        s.data.lerp_(p.data, RATE)
def loss_of(step):
    with torch.no_grad():
        back = 1 + 0.9 * slow(nxt)
    return F.smooth_l1_loss(net(x), back)
train(net, loss_of, 30)
"""
REVERSED = """
class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)
    @staticmethod
    def backward(ctx, grad):
        return SIGN * ctx.strength * grad, None
body, head, domain = nn.Linear(5, 8), nn.Linear(8, 2), nn.Linear(8, 1)
net = nn.ModuleList([body, head, domain])
x, y, d = torch.randn(32, 5), torch.randint(2, (32,)), torch.randint(2, (32, 1)).float()
def loss_of(step):
    f = torch.tanh(body(x))
    return F.cross_entropy(head(f), y) + F.binary_cross_entropy_with_logits(domain(Reverse.apply(f, step / 10)), d)
train(net, loss_of)
"""


def events(folder: Path, text: str) -> dict[str, Any]:
    run(folder, HEAD + text)
    told = [json.loads(line) for line in lines(folder).splitlines()]
    assert not [e for e in told if e.get("event") == "recorder-fault"]
    return {e["event"]: e for e in told if "event" in e}


@pytest.mark.parametrize(("keys", "told"), [("keys", False), ("y", True)])
def test_only_attention_to_the_own_sequence_can_see_the_future(tmp_path: Path, keys: str, told: bool) -> None:
    assert ("live-attention-sees-future" in events(tmp_path, TRANSLATION.replace("KEYS", keys))) == told


def test_a_state_from_call_to_call_is_no_look_at_later_tokens(tmp_path: Path) -> None:
    assert "live-results-depend-on-later-tokens" not in events(tmp_path, STATEFUL)


@pytest.mark.parametrize(("used", "told"), [("h", False), ("before", True), ("x.expand(-1, 4)", False)])
def test_what_only_a_next_round_would_use_is_not_cut_off(tmp_path: Path, used: str, told: bool) -> None:
    assert ("live-result-cut-off" in events(tmp_path, ROUNDS.replace("USED", used))) == told


@pytest.mark.parametrize(("rate", "told"), [("0.02", True), ("0.0", False)])
def test_targets_of_a_copy_that_follows_move(tmp_path: Path, rate: str, told: bool) -> None:
    assert ("moving-target" in events(tmp_path, TARGETS.replace("RATE", rate))) == told


@pytest.mark.parametrize(("sign", "told"), [("-1", True), ("1", False)])
def test_a_reversed_gradient_moves_the_loss_of_the_other(tmp_path: Path, sign: str, told: bool) -> None:
    assert ("moving-target" in events(tmp_path, REVERSED.replace("SIGN", sign))) == told


STATISTICS = """
net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8, momentum=MOMENTUM), nn.ReLU(), nn.Linear(8, 2))
head, x, y = nn.Linear(4, 2), torch.randn(32, 4), torch.randint(2, (32,))
train(TRAINED, lambda step: F.cross_entropy(TRAINED(x), y), 20)
"""


@pytest.mark.parametrize(
    ("trained", "momentum", "told"), [("net", "0.0", True), ("net", "0.1", False), ("head", "0.0", False)]
)
def test_statistics_of_what_runs_must_move(tmp_path: Path, trained: str, momentum: str, told: bool) -> None:
    text = STATISTICS.replace("TRAINED", trained).replace("MOMENTUM", momentum)
    assert ("live-running-statistics-still" in events(tmp_path, text)) == told
