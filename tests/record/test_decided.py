"""Live findings stand at the line that decides (marked ``# here``), not at the backward; healthy twins say nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from recorded import run

from trainwreck.engine import diagnose
from trainwreck.report import render

pytest.importorskip("torch", reason="torch is not installed")

HEAD = "import torch, copy\nfrom torch import nn\nF = nn.functional\ntorch.manual_seed(0)\n"
LOOP = """
x = torch.randn(64, 8)
y = torch.randint(0, 3, (64,))
for step in range(60):
    loss = F.cross_entropy(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""

DETACHED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.head = nn.Linear(8, 16), nn.Linear(16, 3)

    def features(self, x):
        z = torch.relu(self.encoder(x))
        kept = {CUT}  # here
        return kept * 1.5

    def forward(self, x):
        return self.head(self.features(x))

model = Net()
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
"""
WITHOUT_GRAPH = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.head = nn.Linear(8, 16), nn.Linear(16, 3)

    def forward(self, x):
        with {CUT}:  # here
            z = self.encoder(x)
        return self.head(torch.relu(z))

model = Net()
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
"""
ZERO_TERM = """
plan = {"rate": 1e-2, "parts": {"fit": 1.0, "shape": 0.0}}  # here
model = nn.Linear(8, 3)
opt = torch.optim.Adam(model.parameters(), lr=plan["rate"])
x, y = torch.randn(64, 8), torch.randint(0, 3, (64,))
for step in range(30):
    out = model(x)
    plan["parts"]["shape"] {CUT}
    terms = {"fit": F.cross_entropy(out, y), "shape": out.pow(2).mean()}
    loss = sum(plan["parts"][k] * v for k, v in terms.items())
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
DECAY = """
class Options:
    shrink = {CUT}  # here
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
opt = torch.optim.AdamW([{"params": model.parameters(), "weight_decay": Options.shrink}], lr=1e-2)
"""
BROADCAST = """
def distance(guess, wanted):
    gap = guess - wanted{CUT}  # here
    return gap.abs().mean()
model = nn.Linear(8, 1)
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
x, y = torch.randn(64, 8), torch.randn(64)
for step in range(30):
    loss = distance(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
STATE = """
old = {"backbone." + k: v for k, v in nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)).state_dict().items()}
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
model.load_state_dict({CUT}, strict=False)  # here
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
"""
NAMES_KEPT = '{k.removeprefix("backbone."): v for k, v in old.items()}'
UNUSED = """
class LoraPair(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base
        self.lora_a, self.lora_b = nn.Linear(8, 2, bias=False), nn.Linear(2, 3, bias=False)

    def forward(self, x):
        return self.base(x) + self.lora_b(self.lora_a(x))

base = nn.Linear(8, 3)
pair = LoraPair(base)  # here
model = {CUT}
opt = torch.optim.Adam([*pair.lora_a.parameters(), *pair.lora_b.parameters(), *base.parameters()], lr=1e-2)
"""
EVALUATED = """
class Net(nn.Sequential):
    pass

model = Net(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 3))
opt = torch.optim.Adam(model.parameters(), lr=1e-2)

@torch.no_grad()  # here
def evaluate(x, y):
    model.train({CUT})
    model[3].train()  # in a model that evaluates: predictions are sampled
    return (model(x).argmax(1) == y).float().mean()

for epoch in range(3):
    model.train()
    x, y = torch.randn(64, 8), torch.randint(0, 3, (64,))
    for step in range(10):
        loss = F.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    evaluate(x, y)
"""
ENTANGLED = """
g, d = nn.Linear(4, 2), nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
og, od = torch.optim.Adam(g.parameters(), lr=1e-3), torch.optim.Adam(d.parameters(), lr=1e-3)
for step in range(12):
    real, fake = torch.randn(32, 2), g(torch.randn(32, 4))
    og.zero_grad(), od.zero_grad()
    judged = d(fake{CUT})
    loss_d = F.softplus(judged).mean() + F.softplus(-d(real)).mean()
    loss_d.backward()  # here
    od.step()
    loss_g = F.softplus(-d(g(torch.randn(32, 4)))).mean()
    loss_g.backward()
    og.step()
"""
PAIRS = """
model = nn.Linear(8, 1)
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(12):
    x, order = torch.randn(16, 14, 8), torch.rand(16, 14).argsort(1)
    score = model(x).squeeze(-1)
    better = order[:, :, None] > order[:, None]
    loss = F.softplus(score[:, None] - score[:, :, None])[better].mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRAPPED = """
class Careful(torch.optim.Optimizer):
    def __init__(self, inner):
        self.optimizer, self.state, self.defaults = inner, inner.state, inner.defaults
        self.param_groups = inner.param_groups

    def step(self, closure=None):
        return self.optimizer.step(closure)


model = nn.Linear(8, 3)
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.LambdaLR(Careful(opt), lambda n: 1 - n / 80)
for step in range(60):
    loss = F.cross_entropy(model(torch.randn(16, 8)), torch.randint(0, 3, (16,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
    schedule.step()
"""
MEANT = {"live-loss-broadcast": PAIRS, "live-scheduler-of-another-optimizer": WRAPPED}
"""Programs that do on purpose what looks like the fault."""
CASES = {
    "live-result-cut-off": (DETACHED + LOOP, "z.detach()", "z + 0.0"),
    "live-ran-without-graph": (WITHOUT_GRAPH + LOOP, "torch.no_grad()", "torch.enable_grad()"),
    "live-loss-term-weight-zero": (ZERO_TERM, "*= 2.0", "= 0.01 * max(0, step - 5)"),
    "live-decay-shrinks-weights": (DECAY + LOOP, "30.5", "0.01"),
    "live-loss-broadcast": (BROADCAST, "", "[:, None]"),
    "live-state-under-other-names": (STATE + LOOP, "old", NAMES_KEPT),
    "live-adapter-never-called": (UNUSED + LOOP, "base", "pair"),
    "live-training-mode-in-evaluation": (EVALUATED, "True", "False"),
    "live-losses-reach-each-other": (ENTANGLED, "", ".detach()"),
}


def answer(folder: Path, text: str) -> dict[str, Any]:
    run(folder, text)
    found: dict[str, Any] = json.loads(render(diagnose([folder / "rec"], code=[folder / "train.py"]), "json"))
    return found


@pytest.mark.parametrize("sign", CASES)
def test_a_live_finding_stands_at_the_line_that_decides(sign: str, tmp_path: Path) -> None:
    program, fault, _ = CASES[sign]
    text = HEAD + program.replace("{CUT}", fault)
    here = next(n for n, line in enumerate(text.splitlines(), 1) if line.endswith("# here"))
    causes = answer(tmp_path, text)["root_causes"]
    seen = [e for c in causes for e in c["evidence"] if e["sign"] == sign]
    assert seen, [(c["id"], [e["sign"] for e in c["evidence"]]) for c in causes]
    assert any(e["where"]["line"] is not None and abs(e["where"]["line"] - here) <= 1 for e in seen), seen


@pytest.mark.parametrize("sign", CASES)
def test_the_healthy_twin_shows_no_such_sign(sign: str, tmp_path: Path) -> None:
    program, _, healthy = CASES[sign]
    answer(tmp_path, HEAD + program.replace("{CUT}", healthy))
    events = (tmp_path / "rec/rank0.jsonl").read_text()
    assert sign not in events
    assert "recorder-fault" not in events


@pytest.mark.parametrize("sign", MEANT)
def test_what_is_meant_shows_no_such_sign(sign: str, tmp_path: Path) -> None:
    answer(tmp_path, HEAD + MEANT[sign])
    events = (tmp_path / "rec/rank0.jsonl").read_text()
    assert sign not in events
    assert "recorder-fault" not in events


def test_looking_for_lines_and_calls_changes_no_weight(tmp_path: Path) -> None:
    text = HEAD + (DETACHED + LOOP).replace("{CUT}", "z.detach()") + BROADCAST.replace("{CUT}", "")
    text += "\nprint(loss.item().hex(), [p.sum().item().hex() for p in model.parameters()], torch.rand(1))\n"
    (tmp_path / "train.py").write_text(text)
    environment = os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    outputs = [
        subprocess.run(
            [sys.executable, *how, "train.py"], cwd=tmp_path, env=environment, capture_output=True, timeout=240
        )
        for how in ((), ("-m", "trainwreck", "run", "--record-to", "rec"))
    ]
    assert outputs[0].stdout == outputs[1].stdout != b""
