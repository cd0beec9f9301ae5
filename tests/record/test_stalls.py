"""A training that stands still: every rank's stacks are written down, and the answer says who waits for whom."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from trainwreck.core.results import Result
from trainwreck.engine import diagnose

torch = pytest.importorskip("torch", reason="torch is not installed")
distributed = torch.distributed.is_available() and torch.distributed.is_gloo_available()
ENVIRONMENT = os.environ | {
    "OMP_NUM_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "",
    "TRAINWRECK_OPTIONS": json.dumps({"stall_seconds": 1.5}),
}

ONE = """
import multiprocessing, sys, threading, time, torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

kind = sys.argv[1]
gate = multiprocessing.Lock()

class Rows(Dataset):
    def __len__(self):
        return 160
    def __getitem__(self, i):
        if i == 120 and kind == "worker":
            gate.acquire()  # the worker stands here
        return torch.full((4,), i / 160), i % 2

def keep(lock):
    with lock:
        time.sleep(3600)

def evaluate(model):
    until = time.monotonic() + 5
    while time.monotonic() < until:
        model(torch.ones(64, 4))

def train():
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    lock = threading.Lock()
    gate.acquire()
    if kind == "lock":
        threading.Thread(target=keep, args=(lock,), daemon=True).start()
    for epoch in range(2):
        for step, (x, y) in enumerate(DataLoader(Rows(), batch_size=8, num_workers=2)):
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if step == 5 and kind == "lock":
                with lock:  # the training stands here
                    print(step)
        if kind == "evaluation":
            evaluate(model)
    print(threading.active_count(), loss.item(), model.weight.tolist())

if __name__ == "__main__":
    train()
"""
RANKS = """
import os, sys, time, torch, torch.distributed as dist, torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

kind, store = sys.argv[1], sys.argv[2]

def worker(rank):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    model = DistributedDataParallel(nn.Linear(4, 2))
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    for i in range(12):
        loss = model(torch.randn(8, 4)).square().mean()
        opt.zero_grad()
        loss.backward()
        if i == 8 and kind == "sleeps" and rank == 1:
            time.sleep(3600)  # rank 1 stands here
        if i == 8 and kind == "skips" and rank == 0:
            dist.barrier()  # rank 0 stands here
        if i == 8 and kind == "evaluates":
            time.sleep(0 if rank else 4)
            dist.barrier()
        opt.step()
    open(f"{store}.{rank}", "w").write(repr(model.module.weight.tolist()))
    dist.barrier()

if __name__ == "__main__":
    mp.spawn(worker, nprocs=2)
"""


def line_of(text: str, words: str) -> int:
    return next(i for i, line in enumerate(text.splitlines(), 1) if words in line)


def stalls(folder: Path) -> list[dict[str, Any]]:
    found = []
    for path in sorted(folder.glob("rec/rank*.jsonl")):
        for line in path.read_text().splitlines():
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
    return [e for e in found if e.get("event") == "stall"]


def stopped(folder: Path, program: str, *words: str, ranks: int = 1) -> Result:
    """Run the program until every rank has written where it stands, kill it, and ask."""
    (folder / "train.py").write_text(program)
    command = [sys.executable, "-m", "trainwreck", "run", "--record-to", "rec", "train.py", *words]
    with (folder / "told.txt").open("w") as told:
        group = subprocess.Popen(command, cwd=folder, env=ENVIRONMENT, stdout=told, stderr=told, start_new_session=True)
        try:
            deadline = time.monotonic() + 150
            while len({e.get("rank", 0) for e in stalls(folder)}) < ranks and group.poll() is None:
                assert time.monotonic() < deadline, (folder / "told.txt").read_text()[-3000:]
                time.sleep(0.2)
            time.sleep(0.5)
        finally:
            os.killpg(group.pid, signal.SIGKILL)
            group.wait()
    return diagnose([folder / "rec"], code=[str(folder / "train.py")])


def through(folder: Path, program: str, *words: str, recorded: bool = True) -> str:
    (folder / "train.py").write_text(program)
    start = [sys.executable, "-m", "trainwreck", "run", "--record-to", "rec"] if recorded else [sys.executable]
    done = subprocess.run(
        [*start, "train.py", *words], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "no step has ended" not in done.stderr
    return done.stdout


def evidence(result: Result) -> dict[str, tuple[str, int | None]]:
    return {e.sign: (e.text, e.where.line) for cause in result.root_causes for e in cause.evidence}


def test_a_worker_that_blocks_is_found_at_its_line(tmp_path: Path) -> None:
    result = stopped(tmp_path, ONE, "worker")
    text, line = evidence(result)["live-loader-stands-still"]
    expected = line_of(ONE, "the worker stands here") if sys.platform.startswith("linux") else line
    assert line == expected, text
    assert result.root_causes[0].id == "dataloader-worker-stuck"


def test_a_lock_is_found_with_the_thread_that_keeps_it(tmp_path: Path) -> None:
    text, line = evidence(stopped(tmp_path, ONE, "lock"))["live-waits-for-lock"]
    assert line == line_of(ONE, "the training stands here")
    assert "time.sleep(3600)" in text


def test_a_long_evaluation_is_not_accused_and_nothing_is_changed(tmp_path: Path) -> None:
    told = through(tmp_path, ONE, "evaluation")
    assert told == through(tmp_path, ONE, "evaluation", recorded=False)
    assert stalls(tmp_path), "it was written down, and it was over"
    assert not diagnose([tmp_path / "rec"]).root_causes


@pytest.mark.skipif(not distributed, reason="torch was built without gloo")
def test_a_rank_that_is_elsewhere_is_named(tmp_path: Path) -> None:
    result = stopped(tmp_path, RANKS, "sleeps", str(tmp_path / "store"), ranks=2)
    text, line = evidence(result)["live-rank-elsewhere"]
    assert line == line_of(RANKS, "rank 1 stands here")
    assert "rank 0 waits at train.py" in text
    assert "loss.backward()" in text


@pytest.mark.skipif(not distributed, reason="torch was built without gloo")
def test_a_collective_that_one_rank_skips_is_named(tmp_path: Path) -> None:
    result = stopped(tmp_path, RANKS, "skips", str(tmp_path / "store"), ranks=2)
    assert evidence(result)["live-collectives-differ"][1] == line_of(RANKS, "rank 0 stands here")
    assert result.root_causes[0].id == "rank-divergent-branch"


@pytest.mark.skipif(not distributed, reason="torch was built without gloo")
def test_ranks_that_wait_for_an_evaluation_are_not_accused(tmp_path: Path) -> None:
    through(tmp_path, RANKS, "evaluates", str(tmp_path / "recorded"))
    through(tmp_path, RANKS, "evaluates", str(tmp_path / "plain"), recorded=False)
    for rank in "01":
        assert (tmp_path / f"recorded.{rank}").read_text() == (tmp_path / f"plain.{rank}").read_text()
    assert not [s for s in evidence(diagnose([tmp_path / "rec"])) if s.startswith("live-")]


def test_the_limit_follows_the_run() -> None:
    from types import SimpleNamespace

    from trainwreck.record.inside.stalls import BEFORE, FACTOR, FLOOR, LONGEST, Stalls

    watch = Stalls(SimpleNamespace(options={}, beats=0, steps=0))
    assert watch.limit() == BEFORE * FLOOR, "compiling and warm-up come before the second step"
    watch._steps, watch._paces = 30, [0.1] * 30
    assert watch.limit() == FLOOR
    watch._paces = [10.0] * 30
    assert watch.limit() == FACTOR * 10.0
    watch._longest = 300.0
    assert watch.limit() == LONGEST * 300.0, "an evaluation of five minutes has come and gone"


USER = {"path": "train.py", "line": 3, "function": "train", "users": True, "call": "step(batch)"}


@pytest.mark.parametrize(
    ("inner", "call", "idle", "state"),
    [
        (["torch/distributed/distributed_c10d.py"], "dist.barrier()", True, "collective"),
        (["torch/autograd/graph.py", "torch/_tensor.py"], "loss.backward()", True, "collective"),
        (["threading.py", "concurrent/futures/_base.py", "torch/_inductor/async_compile.py"], "", True, "compiling"),
        (["pdb.py", "bdb.py"], "", True, "debugger"),
        (["torch/serialization.py"], "torch.save(model, path)", True, "saving"),
        (["selectors.py", "asyncio/base_events.py"], "asyncio.run(serve())", True, "events"),
        (["selectors.py", "subprocess.py"], "subprocess.run(command)", True, "children"),
        (["ssl.py", "urllib3/response.py"], "download(url)", True, "network"),
        (["threading.py", "queue.py"], "queue.get()", True, "lock"),
        ([], "lock.acquire()", True, "lock"),
        ([], "time.sleep(60)", True, "sleep"),
        (["torch/nn/modules/linear.py"], "model(x)", False, "busy"),
    ],
)
def test_what_a_thread_is_at(inner: list[str], call: str, idle: bool, state: str) -> None:
    from trainwreck.record.inside.stacks import kind_of

    frames = [{"path": path, "line": 1, "function": "f"} for path in inner]
    assert kind_of([*frames, {**USER, "call": call}], True, idle, True) == state
