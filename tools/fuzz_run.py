"""What both halves of ``make fuzz`` share: blocks of inputs over processes, a count, and what failed."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

Work = Callable[[tuple[int, int]], tuple[int, Counter[str], list[str]]]
"""(seed, count) to (inputs done, what kinds they were, failures as text)."""


def drive(description: str | None, work: Work, block: int, what: str) -> int:
    """Run ``TRAINWRECK_FUZZ`` inputs (default 20,000) in blocks of ``block``; the exit code, 1 if anything failed."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--seed", type=int, default=int(time.time()))
    options.add_argument("--workers", type=int, default=2)
    chosen = options.parse_args()
    total = int(os.environ.get("TRAINWRECK_FUZZ", "20000"))
    jobs = [(chosen.seed + i, min(block, total - i * block)) for i in range((total + block - 1) // block)]
    done, kinds, failures = 0, Counter[str](), []
    with ProcessPoolExecutor(chosen.workers) as pool:
        for count, seen, failed in pool.map(work, jobs):
            done += count
            kinds += seen
            failures += failed
            print(f"\r{done}/{total} {what}, {len(failures)} failures", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    for text in failures[:20]:
        print(text)
    print(f"seed {chosen.seed}: {done} {what}, {len(failures)} failures; {dict(kinds.most_common(12))}")
    return 1 if failures else 0
