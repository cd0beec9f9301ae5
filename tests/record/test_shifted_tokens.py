"""Targets that are the inputs themselves, and targets that only look like them from one place on."""

from __future__ import annotations

from pathlib import Path

import pytest
from recorded import lines, run

PROGRAM = """
import torch
import torch.nn as nn
import torch.nn.functional as F
torch.manual_seed(0)
net = nn.Sequential(nn.Embedding(20, 16), nn.Linear(16, 20))
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
for step in range(12):
    ids = torch.randint(0, 20, (8, 24))
    scores = net(ids)
    loss = F.cross_entropy(COMPARED)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("compared", "told"),
    [
        ("scores[:, :-1].flatten(0, 1), ids[:, :-1].flatten()", True),
        ("scores.flatten(0, 1), ids.flatten()", True),
        ("scores[:, :-1].flatten(0, 1), ids[:, 1:].flatten()", False),
        ("scores[:, 1:].flatten(0, 1), ids[:, :-1].flatten()", False),  # the token before is asked for
    ],
)
def test_targets_that_equal_the_inputs(tmp_path: Path, compared: str, told: bool) -> None:
    run(tmp_path, PROGRAM.replace("COMPARED", compared))
    assert ("live-targets-equal-inputs" in lines(tmp_path)) is told
