"""Write a big console log with invented numbers, to measure the reader.

    python tools/make_big_log.py OUT [--megabytes 200] [--kind megatron|hf|prints|bar|prose]

megatron: an iteration line, warnings of ranks between (about 430 bytes a step). hf: dictionaries behind progress
bars. prints: short prints with time stamps. bar: one line that is only carriage returns. prose: lines that are all
different. Then: python tools/make_big_log.py --measure OUT reads it and prints CPU seconds, peak memory and series.
"""

from __future__ import annotations

import argparse
import random
import resource
import time
from collections.abc import Iterator
from pathlib import Path


def megatron(rng: random.Random) -> Iterator[str]:
    step = 0
    while True:
        step += 1
        loss = 2 + 9 / (1 + step / 500) + rng.gauss(0, 0.02)
        rank = rng.randrange(64)
        yield (
            f" [2025-03-0{1 + step // 100000 % 9} {step // 3600 % 24:02d}:{step // 60 % 60:02d}:{step % 60:02d}]"
            f" iteration {step:8d}/ 9000000 | "
            f"consumed samples: {step * 512:12d} | elapsed time per iteration (ms): {rng.uniform(900, 1100):.1f}"
            f" | learning rate: "
            f"{3e-4 / (1 + step / 1e5):.6E} | global batch size:   512 | lm loss: {loss:.6E} | loss scale: 1.0 |"
            f" grad norm: "
            f"{rng.uniform(0.2, 0.9):.3f} | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
        )
        yield (
            f"[rank{rank}]:[W{step % 100:03d} socket.cpp:697] [c10d] The client socket failed to connect to ({rank}).\n"
        )
        if step % 7 == 0:
            yield "/opt/lib/python3.11/site-packages/torch/autograd/graph.py:825: UserWarning: this is deprecated.\n"


def hf(rng: random.Random) -> Iterator[str]:
    step = 0
    while True:
        step += 10
        for part in range(10):
            at = step - 10 + part
            full, clock, rate = at % 10, f"{at // 60:02d}:{at % 60:02d}", rng.uniform(1, 2)
            yield f"\r{at % 100:3d}%|{'█' * full}{' ' * (10 - full)}| {at}/9000000 [{clock}<99:59:59,  {rate:.2f}it/s]"
        loss, norm, rate = 2 + 5 / (1 + step / 5e3) + rng.gauss(0, 0.05), rng.random(), 1e-4 / step
        yield f"{{'loss': {loss:.4f}, 'grad_norm': {norm:.6f}, 'lr': {rate:.4e}, 'epoch': {step / 9e5:.1f}}}\n"


def prints(rng: random.Random) -> Iterator[str]:
    step = 0
    while True:
        step += 1
        yield (
            f"2025-03-01 {step // 3600 % 24:02d}:{step // 60 % 60:02d}:{step % 60:02d},{rng.randrange(1000):03d}"
            f" - train - INFO - Step {step} | "
            f"Loss: {1 + 1 / step + rng.random() / 10:.4f} | LR: {1e-4:.2e} | time {rng.uniform(1, 2):.1f}ms\n"
        )


def bar(rng: random.Random) -> Iterator[str]:
    step = 0
    while True:
        step += 1
        yield (
            f"\r{step}it [{step // 60:02d}:{step % 60:02d},  {rng.uniform(1, 9):.2f}it/s, loss={1 + rng.random():.3f}]"
        )


def prose(rng: random.Random) -> Iterator[str]:
    text = "the model answers with several tokens and then it goes on about nothing at all while step loss rate people"
    words = text.split()
    while True:
        yield (
            " ".join(rng.choice(words) for _ in range(12))
            + f" {rng.randrange(100)} "
            + " ".join(rng.choice(words) for _ in range(6))
            + "\n"
        )


KINDS = {"megatron": megatron, "hf": hf, "prints": prints, "bar": bar, "prose": prose}


def write(path: Path, megabytes: int, kind: str) -> None:
    """Write ``megabytes`` of the ``kind``; the same bytes every time."""
    lines = KINDS[kind](random.Random(7))
    left = megabytes << 20
    with path.open("w", encoding="utf-8", newline="") as out:
        while left > 0:
            block = "".join(next(lines) for _ in range(2000))
            out.write(block)
            left -= len(block.encode("utf-8"))


def measure(path: Path) -> None:
    """Read ``path`` and print what it cost."""
    from trainwreck.core.source import HEAD_BYTES, Source
    from trainwreck.runs.readers import console

    with path.open("rb") as stream:
        source = Source(path.name, lambda: path.open("rb"), stream.read(HEAD_BYTES), path.stat().st_size)
    before = time.process_time()
    runs = console.read(source)
    spent = time.process_time() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{path.stat().st_size / 1e6:.0f} MB: {spent:.2f} s CPU, peak {peak:.0f} MB, {len(runs)} runs")
    for run in runs[-1:]:
        print("  ", run.outcome, {name: len(series) for name, series in run.series.items()}, *run.notes[:3])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--kind", choices=sorted(KINDS), default="megatron")
    parser.add_argument("--measure", action="store_true")
    options = parser.parse_args()
    if options.measure:
        measure(options.path)
    else:
        write(options.path, options.megabytes, options.kind)
