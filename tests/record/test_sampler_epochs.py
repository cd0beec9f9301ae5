"""A distributed sampler that shuffles with one number for every epoch."""

from __future__ import annotations

from pathlib import Path

import pytest
from recorded import lines, run

pytest.importorskip("torch", reason="torch is not installed")

LOOP = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler
torch.manual_seed(0)
x = torch.randn(128, 4)
train, held = TensorDataset(x[:96], x[:96, :1]), TensorDataset(x[96:], x[96:, :1])
sampler = DistributedSampler(train, num_replicas=2, rank=0)
other = DistributedSampler(held, num_replicas=2, rank=0)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), 0.1)
for epoch in range(6):
    #told
    for a, b in DataLoader(train, 8, sampler=sampler):
        loss = nn.functional.mse_loss(net(a), b)
        opt.zero_grad()
        loss.backward()
        opt.step()
    for a, b in DataLoader(held, 8, sampler=other):
        with torch.no_grad():
            nn.functional.mse_loss(net(a), b)
"""


@pytest.mark.parametrize(("line", "said"), [("pass", True), ("sampler.set_epoch(epoch)", False)])
def test_only_a_training_sampler_that_is_never_told_the_epoch_is_named(tmp_path: Path, line: str, said: bool) -> None:
    run(tmp_path, LOOP.replace("#told", line))
    assert ("live-sampler-epoch-stands-still" in lines(tmp_path)) is said
