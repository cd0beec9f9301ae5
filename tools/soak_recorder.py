"""Soak tests of the flight recorder: ten million steps, and a thousand kills.

    python tools/soak_recorder.py steps [--steps 10000000]     size on disk below the cap, memory flat
    python tools/soak_recorder.py kills [--kills 1000]         kill -9 at random moments of a real training

``steps`` drives the recorder's own bookkeeping (rows, flushes, thinning) with the columns of a small model, without a
training around it. ``kills`` forks the smallest training under the recorder again and again.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import mmap
import os
import random
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

SECONDS = 1.0
"""A kill comes within this time of the fork: the recorder is attached in the first tenth."""

TRAINING = """
import torch
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
x = torch.randn(8, 4)
step = 0
while True:
    step += 1
    loss = model(x).square().mean()
    if step == broken:
        loss = loss * float("nan")
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""


def steps(count: int, cap: int) -> int:
    """Write ``count`` steps; 0 if size and memory stayed within bounds."""
    from trainwreck.record.inside.store import Store

    draw = random.Random(0)
    pool = [draw.random() for _ in range(9973)]
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder, {}, max_bytes=cap)
        largest, early, start = 0, 0, time.perf_counter()
        worst = work = 0.0
        for step in range(1, count + 1):
            value = pool[step % 9973]
            row = {"step": step, "loss": value, "lr": 1e-3, "grad_norm": value * 2, "seconds": value / 100}
            row |= {f"grad_norm/layer{i}": pool[(step * (i + 1)) % 9973] for i in range(6)}
            store.row("steps", row)
            if step % 500 == 0:
                began, used = time.perf_counter(), time.process_time()
                store.flush()
                worst = max(worst, time.perf_counter() - began)
                work = max(work, time.process_time() - used)
                largest = max(largest, sum(p.stat().st_size for p in Path(folder).iterdir()))
            if step == count // 10:
                early = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        store.close()
        late = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        seconds = time.perf_counter() - start
    print(
        f"{count} steps in {seconds:.0f} s: at most {largest / 2**20:.1f} MiB on disk (cap {cap / 2**20:.0f}), peak"
        f" memory {early / 1024:.0f} MiB after a tenth, {late / 1024:.0f} MiB at the end, longest flush {worst:.2f} s"
        f" ({work:.2f} s at work)"
    )
    return 0 if largest <= 1.1 * cap and late <= early + 20_000 else 1


def kills(count: int) -> int:
    """Kill a training ``count`` times; 0 if every recording opened afterwards with all that had been flushed.

    Each training is a fork of this process, in which torch is loaded. Every fourth one ends in a loss that is not
    finite, so that captures are killed as well; a small cap makes thinning frequent.
    """
    import torch  # noqa: TID251

    from trainwreck.collect import collect
    from trainwreck.record.inside.probes import PROBES
    from trainwreck.runs import witness

    # What recorder and optimizers import, once and not in every fork.
    for name in ("torch._dynamo", *(f"trainwreck.record.inside.{p.partition(':')[0]}" for p in PROBES)):
        importlib.import_module(name)

    torch.set_num_threads(1)
    draw = random.Random(0)
    shared = mmap.mmap(-1, 8)
    wrong: list[str] = []
    empty = thinned = captures = torn = steps = 0
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(count):
            folder = Path(scratch, f"rec{number}")
            shared[:] = bytes(8)
            child = os.fork()
            breaks = number % 4 == 0
            if not child:
                os.setpgid(0, 0)
                _train(str(folder), draw.randrange(10, 150) if breaks else None, shared)
            with contextlib.suppress(OSError):
                os.setpgid(child, child)
            time.sleep(draw.random() * (6 if breaks else 1) * SECONDS)
            os.killpg(child, signal.SIGKILL)  # with the copy that writes a capture
            os.waitpid(child, 0)
            flushed = struct.unpack("<q", shared)[0]
            captures += bool({p.name for p in folder.glob("capture-*")})
            torn += bool({p.name for p in folder.glob("capture-*.part")})
            thinned += (folder / "rank0.twr.new").exists()
            try:
                runs = witness(collect([folder]).sources).runs if folder.exists() else []
                losses = next((run.series["loss"] for run in runs if "loss" in run.series), None)
                last = losses.steps[-1] if losses is not None else 0
                empty += losses is None
                steps += int(last)
                if last < flushed or (losses is not None and list(losses.steps) != sorted(losses.steps)):
                    wrong.append(f"kill {number}: {flushed} steps had been flushed, {last} are there")
            except Exception as problem:
                wrong.append(f"kill {number}: {type(problem).__name__}: {problem}")
            shutil.rmtree(folder, ignore_errors=True)
    print("\n".join(wrong))
    print(
        f"{count} kills: {len(wrong)} recordings did not open or lacked flushed steps; {empty} before the first flush,"
        f" {thinned} while older blocks were rewritten, {captures} with a capture, {torn} of them unfinished;"
        f" {steps / count:.0f} steps on average"
    )
    return 1 if wrong or empty > count // 2 else 0


def _train(folder: str, broken: int | None, shared: mmap.mmap) -> None:
    """In the fork: a training without end; the last step that a flush has written stands in ``shared``."""
    from trainwreck.record.inside import recorder as module

    module.FLUSH_SECONDS = 0.01
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    recorder = module.Recorder(folder, {"quiet": True, "max_bytes": 40_000})
    write = recorder._write

    def counted() -> None:
        last = max((row["step"] for table, row, _ in recorder._deferred if table == "steps"), default=None)
        write()
        if last is not None:
            shared[:] = struct.pack("<q", int(last))

    recorder._write = counted
    recorder.attach()
    space: dict[str, object] = {"broken": broken}
    exec(compile(TRAINING, "train.py", "exec"), space)


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
