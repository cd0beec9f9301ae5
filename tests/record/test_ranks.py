"""Several processes: each rank writes its own recording, nothing changes, and ranks are compared afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from trainwreck.engine import diagnose

torch = pytest.importorskip("torch", reason="torch is not installed")
if not (torch.distributed.is_available() and torch.distributed.is_gloo_available()):
    pytest.skip("torch was built without gloo", allow_module_level=True)

PROGRAM = """
import hashlib, os, sys, torch, torch.distributed as dist, torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

kind, world, store = sys.argv[1], int(sys.argv[2]), sys.argv[3]

def worker(rank):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    torch.set_num_threads(1)
    torch.manual_seed(0 if kind == "same-start" else rank)
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    if kind == "fsdp":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
        fully_shard(model, mesh=init_device_mesh("cpu", (world,)))
    elif kind in ("healthy", "same-data"):
        model = DistributedDataParallel(model)
    g = torch.Generator().manual_seed(5)
    x = torch.randn(640, 4, generator=g)
    data = TensorDataset(x, (x[:, 0] > 0).long())
    if kind == "same-data":
        loader = DataLoader(data, 8, shuffle=True, generator=torch.Generator().manual_seed(1))
    else:
        loader = DataLoader(data, 8, sampler=DistributedSampler(data, world, rank))
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    for i, (a, b) in enumerate(loader):
        if i == 24: break
        loss = nn.functional.cross_entropy(model(a), b)
        opt.zero_grad(); loss.backward()
        if kind == "own-averaging":
            for p in model.parameters():
                dist.all_reduce(p.grad); p.grad /= world
        opt.step()
    h = hashlib.sha256()
    for p in model.parameters():
        h.update(getattr(p, "_local_tensor", p).detach().numpy().tobytes())
    dist.barrier()
    open(f"{store}.rank{rank}", "w").write(h.hexdigest())
    dist.destroy_process_group()

if __name__ == "__main__":
    if "RANK" in os.environ:
        worker(int(os.environ["RANK"]))
    else:
        mp.spawn(worker, nprocs=world)
"""


def run(folder: Path, kind: str, world: int, record: bool) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.py").write_text(PROGRAM)
    script = ["train.py", kind, str(world), str(folder / f"store{record}")]
    start = [sys.executable, "-m", "trainwreck", "run", "--record-to", "rec"] if record else [sys.executable]
    done = subprocess.run(
        [*start, *script],
        cwd=folder,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    if not record and "SIGABRT" in done.stderr and "without an active exception" in done.stderr:
        # torch's own processes abort so at their end now and then, without the recorder
        (folder / f"store{record}").unlink(missing_ok=True)
        done = subprocess.run(
            [*start, *script], cwd=folder, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True,
            timeout=240,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return [path.read_text() for path in sorted(folder.glob(f"store{record}.rank*"))]


def signs(folder: Path) -> set[str]:
    result = diagnose([folder / "rec"])
    return {e.sign for cause in result.root_causes for e in cause.evidence}


@pytest.mark.parametrize(("kind", "world"), [("healthy", 2), ("fsdp", 2), ("healthy", 4)])
def test_every_rank_is_recorded_and_none_is_changed(tmp_path: Path, kind: str, world: int) -> None:
    recorded = run(tmp_path, kind, world, True)
    assert len(recorded) == world
    assert recorded == run(tmp_path, kind, world, False)
    assert {p.name for p in (tmp_path / "rec").glob("*.twr")} == {f"rank{i}.twr" for i in range(world)}
    assert not {s for s in signs(tmp_path) if s.startswith("live-")}


@pytest.mark.parametrize(
    ("kind", "sign"),
    [
        ("same-data", "live-ranks-same-data"),
        ("never-averaged", "live-gradients-differ"),
        ("same-start", "live-gradients-differ"),
        ("own-averaging", "live-ranks-start-different"),
    ],
)
def test_ranks_are_compared(tmp_path: Path, kind: str, sign: str) -> None:
    run(tmp_path, kind, 2, True)
    assert sign in signs(tmp_path)


def test_ranks_of_a_launcher_are_recorded(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    command = [
        "run",
        "--record-to",
        "rec",
        "torchrun",
        "--nproc_per_node",
        "2",
        "train.py",
        "healthy",
        "2",
        str(tmp_path / "s"),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "trainwreck", *command],
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert {p.name for p in (tmp_path / "rec").glob("*.twr")} == {"rank0.twr", "rank1.twr"}
