"""What the recorder sees of data and states: rows trained and evaluated, scales, states by reference."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from recorded import lines, run

START = """
import copy
import torch
import torch.nn as nn
import torch.nn.functional as F
torch.manual_seed(0)
x = torch.randn(600, 12) * 4 + 3
y = (x[:, :3].sum(1) > 9).long()
x_train, y_train, x_val, y_val = x[:500], y[:500], x[500:], y[500:]
net = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(net.parameters(), 1e-3)


def fit(steps=25):
    net.train()
    for i in range(steps):
        b = torch.randint(0, len(x_train), (40,))
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x_train[b]), y_train[b])
        loss.backward()
        optimizer.step()


@torch.no_grad()
def evaluate(inputs, labels):
    net.eval()
    return (net(inputs).argmax(1) == labels).float().mean().item()

"""
SCALE = "mean, std = x_train.mean(0), x_train.std(0)\nx_train = (x_train - mean) / std\n"
LOOP = """
for epoch in range(3):
    fit()
    print(evaluate(x_train, y_train))
    print(evaluate(x_val, y_val))
"""
BEST = """
best = STATE
for epoch in range(3):
    fit(5)
net.load_state_dict(best)
"""
COLLECT = """
for step in range(6):
    gathered = []
    for i in range(4):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x_train[i * 8 : i * 8 + 8]), y_train[i * 8 : i * 8 + 8])
        loss.backward()
        KEEP
    optimizer.step()
"""
KEPT = "gathered.append([p.grad.clone() for p in net.parameters()])"
SEVERAL = """
for step in range(12):
    optimizer.zero_grad()
    out = net(x_train[:40])
    for k in range(3):
        loss = F.cross_entropy(out * (k + 1), y_train[:40])
        loss.backward(retain_graph=True)
    optimizer.step()
"""
NEGATED = """
for step in range(12):
    optimizer.zero_grad()
    loss = -F.cross_entropy(net(x_train[:40]), y_train[:40])
    loss.backward()
    optimizer.step()
"""
OVER_SAMPLES = NEGATED.replace(
    "-F.cross_entropy(net(x_train[:40]),", "F.nll_loss(F.log_softmax(net(x_train[:40]), dim=0),"
)
LARGE = "optimizer = torch.optim.Adam(net.parameters(), 1e-3, eps=5.0)\nfit(45)\n"
TOKENS = """
walk = (torch.randint(0, 12, (2500, 1)) + torch.randint(0, 2, (2500, 12)).cumsum(1)) % 12
words = nn.Sequential(nn.Embedding(12, 8), nn.Flatten(), nn.Linear(96, 2))
optimizer = torch.optim.Adam(words.parameters(), 1e-3)


@torch.no_grad()
def look(inputs):
    words.eval()
    return words(inputs).mean().item()


def fit(rows):
    words.train()
    for i in range(25):
        b = torch.randint(0, len(rows), (128,))
        optimizer.zero_grad()
        F.cross_entropy(words(rows[b]), rows[b, -1] % 2).backward()
        optimizer.step()


train, val = walk[:2000], walk[START:START + 400]
for epoch in range(4):
    fit(train)
    print(look(val))
"""

WRONG = {
    "leak of tokens": (TOKENS.replace("START", "0"), "live-evaluated-rows-trained"),
    "leak": ("x_val, y_val = x[450:], y[450:]" + LOOP, "live-evaluated-rows-trained"),
    "scale": (SCALE + LOOP, "live-evaluation-of-another-scale"),
    "unit": ("x_train = x_train / 255" + LOOP, "live-evaluation-of-another-scale"),
    "reference": (BEST.replace("STATE", "net.state_dict()"), "live-state-is-the-model-itself"),
    "thrown away": (COLLECT.replace("KEEP", "pass"), "live-gradients-discarded"),
    "negated": (NEGATED, "live-loss-negated"),
    "over samples": (OVER_SAMPLES, "live-likelihood-over-samples"),
    "epsilon": (LARGE, "live-epsilon-above-gradients"),
}
RIGHT = {
    "tokens that meet by chance": TOKENS.replace("START", "2100"),
    "split": SCALE + "x_val = (x_val - mean) / std\n" + LOOP,
    "copied": BEST.replace("STATE", "copy.deepcopy(net.state_dict())"),
    "collected": COLLECT.replace("KEEP", KEPT),
    "several losses": SEVERAL,
    "positive": NEGATED.replace("-F.", "F."),
    "over classes": OVER_SAMPLES.replace("dim=0", "dim=1"),
}


def signs(folder: Path) -> set[str]:
    return {e["event"] for e in map(json.loads, lines(folder).splitlines()) if e.get("event", "").startswith("live-")}


@pytest.mark.parametrize("name", sorted(WRONG))
def test_what_is_wrong_is_told(name: str, tmp_path: Path) -> None:
    text, sign = WRONG[name]
    run(tmp_path, START + text)
    assert sign in signs(tmp_path)


@pytest.mark.parametrize("name", sorted(RIGHT))
def test_what_is_right_is_not(name: str, tmp_path: Path) -> None:
    run(tmp_path, START + RIGHT[name])
    assert not signs(tmp_path)


def test_more_rows_than_are_remembered_are_no_fault(tmp_path: Path) -> None:
    program = START + SCALE + LOOP + "\nfor turn in range(3):\n    evaluate(x_val.repeat(60, 1), y_val.repeat(60))\n"
    program = program.replace(
        "    return (net(inputs)", "    for _ in range(4):\n        net(inputs)\n    return (net(inputs)"
    )
    run(tmp_path, program)
    assert "cannot reshape" not in lines(tmp_path)
