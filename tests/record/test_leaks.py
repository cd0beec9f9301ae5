"""A column of the inputs that is the target, and honest ones that are near it."""

from __future__ import annotations

from pathlib import Path

import pytest
from recorded import lines, run

pytest.importorskip("torch", reason="torch is not installed")

PROGRAM = """
import torch
from torch import nn
torch.manual_seed(0)
x = torch.randn(512, 6)
{data}
net = nn.Sequential(nn.Linear(x.shape[1], 16), nn.ReLU(), nn.Linear(16, {out}))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(40):
    rows = torch.randperm(512)[:64]
    loss = {loss}
    opt.zero_grad(); loss.backward(); opt.step()
"""
MSE = "nn.functional.mse_loss(net(x[rows]).squeeze(-1), y[rows])"
CLASSES = "nn.functional.cross_entropy(net(x[rows]), y[rows])"
BINARY = "nn.functional.binary_cross_entropy_with_logits(net(x[rows]).squeeze(-1), y[rows])"
LEAKS = {
    "a scaled target": ("y = x[:, :3].sin().sum(1); x = torch.cat([x, 2 - 0.3 * y[:, None]], 1)", 1, MSE),
    "in half precision": ("y = x[:, :3].sin().sum(1); x = torch.cat([x, y[:, None].bfloat16().float()], 1)", 1, MSE),
    "a coded class": ("y = x[:, :3].argmax(1); x = torch.cat([x, (y[:, None] - 1.0) * 0.5], 1)", 3, CLASSES),
    "a flag": ("y = (x[:, 0] * x[:, 1] > 0).float(); x = torch.cat([1 - y[:, None], x], 1)", 1, BINARY),
}
HONEST = {
    "a feature with noise": ("y = x.sum(1); x = torch.cat([x, y[:, None] + 0.02 * torch.randn(512, 1)], 1)", 1, MSE),
    "a slow series": (
        "s = torch.sin(torch.arange(519) / 60.); x = torch.stack([s[n : n + 512] for n in range(6)], 1); y = s[7:]",
        1,
        MSE,
    ),
    "a line that is learned": ("y = 3 * x[:, 0] + 1; x = x[:, :1]", 1, MSE),
    "a sign of a feature": ("y = (x[:, 0] > 0).long()", 2, CLASSES),
    "one hot": ("y = torch.randint(5, (512,)); x = nn.functional.one_hot(y, 5).float()", 5, CLASSES),
    "all are reconstructed": ("y = x[:, 2]; x = x[:, 2:3].expand(-1, 4) * torch.arange(1.0, 5.0)", 1, MSE),
}


def told(folder: Path, data: str, out: int, loss: str) -> bool:
    run(folder, PROGRAM.format(data=data, out=out, loss=loss))
    return "live-input-tells-target" in lines(folder)


@pytest.mark.parametrize("name", LEAKS)
def test_a_column_that_is_the_target_is_found(name: str, tmp_path: Path) -> None:
    data, out, loss = LEAKS[name]
    if name == "in half precision":
        loss = loss.replace("net(x[rows])", "torch.autocast('cpu', torch.bfloat16)(net)(x[rows]).float()")
    assert told(tmp_path, data, out, loss)


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_column_is_not_accused(name: str, tmp_path: Path) -> None:
    assert not told(tmp_path, *HONEST[name])
