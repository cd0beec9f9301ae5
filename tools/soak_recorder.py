"""Soak tests of the flight recorder: ten million steps, and a thousand kills.

    python tools/soak_recorder.py steps [--steps 10000000]     size on disk below the cap, memory flat
    python tools/soak_recorder.py kills [--kills 1000]         kill -9 at random moments of a real training

``steps`` drives the recorder's own bookkeeping (rows, flushes, thinning) with the columns of a small model, without a
training around it. ``kills`` starts the smallest training under the recorder again and again.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

TRAINING = """
import torch
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
x = torch.randn(8, 4)
while True:
    loss = model(x).square().mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""


def steps(count: int, cap: int) -> int:
    """Write ``count`` steps; 0 if size and memory stayed within bounds."""
    from trainwreck.record.inside.store import Store

    draw = random.Random(0)
    pool = [draw.random() for _ in range(9973)]
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder, {}, max_bytes=cap)
        file = Path(folder, "rank0.twr")
        largest, early, start = 0, 0, time.perf_counter()
        worst = 0.0
        for step in range(1, count + 1):
            value = pool[step % 9973]
            row = {"step": step, "loss": value, "lr": 1e-3, "grad_norm": value * 2, "seconds": value / 100}
            row |= {f"grad_norm/layer{i}": pool[(step * (i + 1)) % 9973] for i in range(6)}
            store.row("steps", row)
            if step % 500 == 0:
                began = time.perf_counter()
                store.flush()
                worst = max(worst, time.perf_counter() - began)
                largest = max(largest, file.stat().st_size)
            if step == count // 10:
                early = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        store.close()
        late = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        seconds = time.perf_counter() - start
    print(
        f"{count} steps in {seconds:.0f} s: at most {largest / 2**20:.1f} MiB on disk (cap {cap / 2**20:.0f}), peak"
        f" memory {early / 1024:.0f} MiB after a tenth, {late / 1024:.0f} MiB at the end, longest flush {worst:.2f} s"
    )
    return 0 if largest <= 1.1 * cap and late <= early + 20_000 else 1


def kills(count: int) -> int:
    """Kill a training ``count`` times; 0 if every recording opened afterwards."""
    from trainwreck.collect import collect
    from trainwreck.record import launch
    from trainwreck.runs import witness

    draw = random.Random(0)
    failed = empty = 0
    with tempfile.TemporaryDirectory() as scratch:
        script = Path(scratch, "train.py")
        script.write_text(TRAINING, encoding="utf-8")
        for number in range(count):
            folder = Path(scratch, f"rec{number}")
            environment = {**os.environ, "TRAINWRECK_RECORD": str(folder), "TRAINWRECK_PYTHONPATH": ""}
            environment |= {"PYTHONPATH": str(launch.BOOTSTRAP), "OMP_NUM_THREADS": "1"}
            child = subprocess.Popen([sys.executable, str(script)], env=environment, stderr=subprocess.DEVNULL)
            deadline = time.monotonic() + 60
            while not Path(folder, "rank0.twr").exists() and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(draw.random())
            child.send_signal(signal.SIGKILL)
            child.wait()
            try:
                runs = witness(collect([folder]).sources).runs
                lengths = [len(run.series["loss"]) for run in runs if "loss" in run.series]
                empty += not lengths
            except Exception as problem:
                failed += 1
                print(f"kill {number}: {type(problem).__name__}: {problem}")
    print(f"{count} kills: {failed} recordings did not open, {empty} held no step")
    return 1 if failed or empty > count // 20 else 0


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("what", choices=["steps", "kills"])
    options.add_argument("--steps", type=int, default=10_000_000)
    options.add_argument("--kills", type=int, default=1000)
    options.add_argument("--cap", type=int, default=64 << 20)
    given = options.parse_args()
    return steps(given.steps, given.cap) if given.what == "steps" else kills(given.kills)


if __name__ == "__main__":
    raise SystemExit(main())
