"""Measure start-up and reading as CPU seconds and as ratios to ``python -c pass`` of the same run.

    .venv/bin/python tools/bench.py [--megabytes 20] [--out docs/bench-performance.md]

Prints a Markdown table. Inputs are made in a temporary directory and removed. CPU is user + system of the whole
process, the smallest of three runs for short commands; memory is the largest resident set (Linux: KiB).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORDS = [
    "model",
    "data",
    "loader",
    "worker",
    "cache",
    "queue",
    "socket",
    "vector",
    "buffer",
    "stream",
    "node",
    "service",
    "thread",
    "kernel",
    "plugin",
]


def cpu_and_memory(*command: str) -> tuple[float, float]:
    """CPU seconds and peak resident MB of one process and its children."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT)
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0  # wait4 has taken the status
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def best(*command: str, times: int = 3) -> tuple[float, float]:
    return min(cpu_and_memory(*command) for _ in range(times))


def loss(i: int) -> float:
    return 2 + 6 / math.sqrt(i + 1)


def megatron(i: int, dice: random.Random) -> str:
    return (
        f" [2024-05-01 00:00:{i % 60:02d}] iteration {i:8d}/  500000 | consumed samples: {i * 512:12d} | elapsed "
        f"time per iteration (ms): {1500 + dice.random() * 80:.1f} | learning rate: 3.0E-04 | lm loss: {loss(i):.6E} | "
        f"grad norm: {dice.random():.3f} | number of nan iterations:   0 |\n"
    )


def hf(i: int, dice: random.Random) -> str:
    bars = "".join(f"\r {i * 10 + k}/900000 [00:01<10:00, {dice.random():.2f}it/s]" for k in range(10))
    told = f"'loss': {loss(i):.4f}, 'learning_rate': 2e-05, 'epoch': {i / 1e4:.2f}"
    return f"{bars}\r{{{told}}}\n"


def prints(i: int, dice: random.Random) -> str:
    return f"epoch {i // 10000} step {i % 10000} loss {loss(i):.4f}\n"


def prose(i: int, dice: random.Random) -> str:
    return f"12:00:{i % 60:02d} INFO {' '.join(dice.choices(WORDS, k=9))} id={dice.getrandbits(64):016x} n={i}\n"


def warnings(i: int, dice: random.Random) -> str:
    if i % 20:
        return f"WARNING:root:skipping sample {i} because of length {dice.randrange(9999)}\n"
    frame = '  File "/u/data.py", line 88, in load\n    raise\n'
    return f"Traceback (most recent call last):\n{frame}ValueError: bad record {i}\n"


def one_line(i: int, dice: random.Random) -> str:
    return f"{i} loss={loss(i):.4f} ; "


def csv(i: int, dice: random.Random) -> str:
    return (
        "epoch,step,train_loss,val_loss,lr\n" if not i else f"{i // 1e4},{i},{loss(i):.6f},{loss(i) + 0.1:.6f},3e-4\n"
    )


def jsonl(i: int, dice: random.Random) -> str:
    return json.dumps({"step": i, "train/loss": loss(i), "train/lr": 3e-4, "train/grad_norm": dice.random()}) + "\n"


TEXTS: dict[str, Callable[[int, random.Random], str]] = {
    "megatron.log": megatron, "hf-bars.log": hf, "prints.log": prints, "prose.log": prose,
    "warnings.log": warnings, "one-line.log": one_line, "metrics.csv": csv, "metrics.jsonl": jsonl,
}  # fmt: skip


def fill(path: Path, make: Callable[[int, random.Random], str], size: int) -> None:
    dice, written, i = random.Random(0), 0, 0
    with path.open("w") as stream:
        while written < size:
            written += stream.write(make(i, dice))
            i += 1


def rows(megabytes: float) -> Iterator[tuple[str, float, float]]:
    """What was run, its CPU seconds and its peak MB. The first row is the floor."""
    python, tool = sys.executable, (sys.executable, "-m", "trainwreck")
    small = str(ROOT / "examples" / "siamese-nan")
    yield "python -c pass", *best(python, "-c", "pass", times=10)
    yield "python -c 'import numpy'", *best(python, "-c", "import numpy")
    yield "trainwreck --help", *best(*tool, "--help")
    yield "diagnose small directory, JSON", *best(*tool, "diagnose", small, "--format", "json")
    yield "diagnose small directory, report", *best(*tool, "diagnose", small)
    yield "check one script", *best(*tool, "check", str(Path(small) / "train.py"))
    with tempfile.TemporaryDirectory() as holder:
        for name, make in TEXTS.items():
            path = Path(holder) / name
            fill(path, make, int(megabytes * 1e6))
            yield (
                f"diagnose {name}, {megabytes:g} MB",
                *cpu_and_memory(*tool, "diagnose", str(path), "--format", "json"),
            )
            path.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=20)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    lines = ["| what | CPU s | times `python -c pass` | peak MB |", "| --- | ---: | ---: | ---: |"]
    floor = 0.0
    for what, seconds, memory in rows(options.megabytes):
        floor = floor or max(seconds, 1e-3)
        lines.append(f"| {what} | {seconds:.3f} | {seconds / floor:.1f} | {memory:.0f} |")
        print(lines[-1], file=sys.stderr, flush=True)
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if options.out:
        options.out.write_text(f"# Speed and memory\n\nMade by `tools/bench.py`.\n\n{text}", encoding="utf-8")


if __name__ == "__main__":
    main()
