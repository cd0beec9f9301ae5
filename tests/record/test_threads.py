"""Trainings in threads of one process: their losses are never mixed, and none is changed or accused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from trainwreck.collect import collect
from trainwreck.core.run import Run
from trainwreck.engine import diagnose
from trainwreck.runs import witness

pytest.importorskip("torch", reason="torch is not installed")

START = """
import threading, torch
from torch import nn
from concurrent.futures import ThreadPoolExecutor
torch.set_num_threads(1)
turn = threading.Barrier(2)
found = {}

def train(name, level, steps, meet):
    g = torch.Generator().manual_seed(level)
    model = nn.Linear(4, 1)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(0.1 * torch.randn(p.shape, generator=g))
    opt = torch.optim.SGD(model.parameters(), lr=0.1 / level)
    losses = []
    for i in range(steps):
        x = torch.randn(8, 4, generator=g)
        loss = level * (model(x) - x[:, :1]).square().mean()
        opt.zero_grad()
        if meet: turn.wait()
        loss.backward()
        if meet: turn.wait()
        opt.step()
        losses.append(loss.item())
    found[name] = losses, model.weight.tolist()
"""
TOGETHER = """
threads = [threading.Thread(target=train, args=(n, l, 40, True)) for n, l in (("a", 1), ("b", 1000))]
for t in threads: t.start()
for t in threads: t.join()
"""
ONE_BY_ONE = """
for name, level in (("a", 1), ("b", 2)):
    t = threading.Thread(target=train, args=(name, level, 30, False))
    t.start(); t.join()
"""
HANDED_OVER = """
def train_in_pool():
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    losses = []
    with ThreadPoolExecutor(1) as pool:
        for i in range(30):
            x = torch.randn(8, 4)
            loss = (model(x) - x[:, :1]).square().mean()
            opt.zero_grad()
            pool.submit(loss.backward).result()
            opt.step()
            losses.append(loss.item())
    found["a"] = losses, model.weight.tolist()
train_in_pool()
"""
END = "import json; print(json.dumps(found, sort_keys=True))\n"


def run(folder: Path, text: str, *, recorded: bool = True) -> str:
    (folder / "train.py").write_text(START + text + END)
    words = [sys.executable, *(("-m", "trainwreck", "run", "--record-to", "rec") if recorded else ()), "train.py"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def recording(folder: Path) -> Run:
    found = witness(collect([folder / "rec"]).sources).runs
    return next(r for r in found if r.format == "trainwreck-recording")


def accused(folder: Path) -> list[str]:
    told = [e.kind for e in recording(folder).events if e.kind.startswith(("live-", "alarm-", "recorder-"))]
    return [*told, *(c.id for c in diagnose([folder / "rec"]).root_causes if c.severity != "suggestion")]


def test_trainings_that_alternate_are_kept_apart(tmp_path: Path) -> None:
    told = run(tmp_path, TOGETHER)
    assert told == run(tmp_path, TOGETHER, recorded=False)
    series = recording(tmp_path).series
    losses = {name: values for name, (values, _) in json.loads(told).items()}
    seen = sorted((list(series["loss"].values), list(series["thread1/loss"].values)))
    assert seen == [pytest.approx(values) for values in sorted(losses.values())]
    assert "threads" in {e.kind for e in recording(tmp_path).events}
    assert not accused(tmp_path)


def test_trainings_one_after_another_are_each_looked_at(tmp_path: Path) -> None:
    told = run(tmp_path, ONE_BY_ONE)
    assert told == run(tmp_path, ONE_BY_ONE, recorded=False)
    run_ = recording(tmp_path)
    assert "threads" not in {e.kind for e in run_.events}
    assert len(run_.series["optimizer1/update_ratio"]) >= 5
    assert not accused(tmp_path)


def test_a_backward_in_a_pool_belongs_to_the_step(tmp_path: Path) -> None:
    told = run(tmp_path, HANDED_OVER)
    assert told == run(tmp_path, HANDED_OVER, recorded=False)
    run_ = recording(tmp_path)
    assert list(run_.series["loss"].values) == pytest.approx(json.loads(told)["a"][0])
    assert "threads" not in {e.kind for e in run_.events}
    assert not accused(tmp_path)
