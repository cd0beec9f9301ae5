"""What a squared error and an advantage tell of each other, and what several networks in turn say of learning."""

from __future__ import annotations

from pathlib import Path

import pytest
from recorded import run

from trainwreck.engine import diagnose

pytest.importorskip("torch", reason="torch is not installed")

ACTOR = """
import torch
from torch import nn
torch.manual_seed(0)
actor, critic = nn.Linear(4, 3), nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.Adam([*actor.parameters(), *critic.parameters()], 1e-3)
for _ in range(40):
    seen = torch.randn(128, 4)
    dist = torch.distributions.Categorical(logits=actor(seen))
    act = dist.sample()
    back = seen[:, 0] + (act == 1).float()
    value = critic(seen).squeeze(1)
    advantage = ADVANTAGE.detach()
    loss = -(dist.log_prob(act) * advantage).mean() + 0.5 * ERROR.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize("error", ["(back - value)", "(value - back)"])
@pytest.mark.parametrize(("advantage", "reversed_"), [("(back - value)", False), ("(value - back)", True)])
def test_the_advantage_is_judged_whichever_way_the_error_is_written(
    tmp_path: Path, error: str, advantage: str, reversed_: bool
) -> None:
    run(tmp_path, ACTOR.replace("ADVANTAGE", advantage).replace("ERROR", error))
    told = diagnose([tmp_path / "rec"], code=[]).root_causes
    signs = {e.sign for cause in told for e in cause.evidence}
    assert ("live-advantage-reversed" in signs) is reversed_


FOLDS = """
import torch
from torch import nn
torch.manual_seed(0)
x = torch.randn(640, 8)
y = (x[:, 0] + 0.5 * x[:, 1] > 0).long()
for fold in range(3):
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
    opt = torch.optim.Adam(net.parameters(), 5e-3)
    for step in range(220):
        rows = torch.randint(0, 640, (32,))
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
"""


def test_a_network_that_has_just_begun_is_not_one_that_learns_nothing(tmp_path: Path) -> None:
    run(tmp_path, FOLDS)
    assert [c.id for c in diagnose([tmp_path / "rec"], code=[]).root_causes if c.severity == "critical"] == []


@pytest.mark.parametrize("climbs", [True, False])
def test_an_optimizer_that_maximises_wants_no_minus(tmp_path: Path, climbs: bool) -> None:
    text = ACTOR.replace("ADVANTAGE", "(back - value)").replace("ERROR", "(back - value)")
    text = text.replace("loss = -(dist", "loss = (dist").replace(" + 0.5 * (back - value).pow(2).mean()", "")
    run(tmp_path, text.replace("], 1e-3)", f"], 1e-3, maximize={climbs})"))
    signs = {e.sign for c in diagnose([tmp_path / "rec"], code=[]).root_causes for e in c.evidence}
    assert ("live-policy-gradient-reversed" in signs) is not climbs
