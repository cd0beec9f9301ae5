"""Wiring signs: found where they are, silent where an optimizer begins later (a second phase, a resume)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")

PROGRAM = """
import torch
from torch import nn
torch.manual_seed(0)
x, y = torch.randn(64, 4), torch.randint(0, 3, (64,))

def train(model, clear):
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(30):
        loss = nn.functional.cross_entropy(model(x), y)
        if clear:
            opt.zero_grad()
        loss.backward()
        opt.step()
"""


def events(folder: Path, text: str) -> str:
    (folder / "train.py").write_text(PROGRAM + text)
    done = subprocess.run(
        [sys.executable, "-m", "trainwreck", "run", "--record-to", "rec", "train.py"],
        cwd=folder,
        env=os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return (folder / "rec/rank0.jsonl").read_text()


def test_a_second_phase_that_clears_its_gradients_is_not_accused(tmp_path: Path) -> None:
    assert "live-" not in events(tmp_path, "for _ in range(3):\n    train(nn.Linear(4, 3), clear=True)\n")


def test_gradients_that_are_never_cleared_are_found_by_step_five(tmp_path: Path) -> None:
    told = events(tmp_path, "train(nn.Linear(4, 3), clear=False)\n")
    line = next(line for line in told.splitlines() if "live-gradients-never-zeroed" in line)
    assert '"step": 5' in line


def test_a_generator_that_steps_less_often_than_its_critic_is_not_accused(tmp_path: Path) -> None:
    text = """
generator, critic = nn.Linear(2, 4), nn.Linear(4, 1)
g, c = torch.optim.Adam(generator.parameters(), lr=1e-3), torch.optim.Adam(critic.parameters(), lr=1e-3)
for step in range(60):
    for _ in range(5):
        loss = critic(generator(torch.randn(16, 2)).detach()).mean() - critic(x[:16]).mean()
        c.zero_grad(); loss.backward(); c.step()
    loss = -critic(generator(torch.randn(16, 2))).mean()
    g.zero_grad(); loss.backward(); g.step()
"""
    assert "never-zeroed" not in events(tmp_path, text)
