"""What the flight recorder costs, beside other observers: plain and observed steps in turn, in one process.

    python tools/bench_overhead.py --work mlp cnn gpt --methods nothing ours ours_every_leaf --threads 1 --pairs 400

Workloads and other observers are those of the developer corpus (``../shared/bench/overhead``). Each cell alternates a
plain step and an observed one, in changing order, on two equal models. Given are the median of the pairs' ratios of
process CPU time with its 95% interval (bootstrap over the pairs, 2,000 draws, fixed seed), the ratio of the means (with
the sampled steps and flushes), and the ratio of wall time. ``nothing`` is the A/A control.
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import statistics
import sys
import tempfile
import time
import types
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT.parent / "shared/bench/overhead"
DRAWS = 2000


def recorder_package() -> Any:
    """``record/inside`` as it is loaded into a user's process."""
    package = types.ModuleType("_trainwreck_inside")
    package.__path__ = [str(ROOT / "src/trainwreck/record/inside")]
    sys.modules.setdefault("_trainwreck_inside", package)
    return importlib.import_module("_trainwreck_inside.hooks")


class Ours:
    """The recorder, switched off during the plain steps; it knows the observed model only."""

    recorder: Any = None

    def __init__(self, work: Any, options: dict[str, Any] | None = None) -> None:
        self.work = work
        if Ours.recorder is None:
            Ours.recorder = recorder_package().start(tempfile.mkdtemp(prefix="trainwreck-bench-"), options or {})
        Ours.recorder.off = True
        self._named = False

    def step(self, number: int) -> None:
        recorder = Ours.recorder
        recorder.off = False
        self.work.step(number)
        recorder.off = True
        if not self._named:
            # The plain model lives in this process too; its modules must not be hooked.
            recorder.names._roots = [weakref.ref(self.work.model)]
            self._named = True

    def close(self) -> None:
        """Nothing: the process ends."""


class Other:
    """An observer of ``methods.py``."""

    def __init__(self, work: Any, factory: Callable[[Any], Any]) -> None:
        self.work, self.tool = work, factory(work)

    def step(self, number: int) -> None:
        with self.tool.around():
            loss = self.work.step(number, after_backward=self.tool.after_backward)
            self.tool.after_step(number, loss)

    def close(self) -> None:
        self.tool.close()


def observer(method: str, work: Any) -> Any:
    """What runs the observed steps of ``method``."""
    if method == "ours":
        return Ours(work)
    if method == "ours_every_leaf":
        return Ours(work, {"every_leaf": True})
    methods = importlib.import_module("methods").METHODS
    return Other(work, methods[method])


def cell(work_name: str, method: str, pairs: int, seconds: float) -> dict[str, Any]:
    """Measure one workload under one method, in this process."""
    build = importlib.import_module("yardstick").build
    plain, observed_work = build(work_name), build(work_name)
    observed = observer(method, observed_work)

    def timed(call: Callable[[int], Any], number: int) -> tuple[float, float]:
        cpu, wall = time.process_time(), time.perf_counter()
        call(number)
        return time.process_time() - cpu, time.perf_counter() - wall

    for number in range(6):
        plain.step(number)
        observed.step(number)
    rows: list[tuple[tuple[float, float], tuple[float, float]]] = []
    start = time.perf_counter()
    while len(rows) < pairs and (time.perf_counter() - start < seconds or len(rows) < 20):
        number = 6 + len(rows)
        if number % 2:
            first = timed(plain.step, number)
            rows.append((first, timed(observed.step, number)))
        else:
            first = timed(observed.step, number)
            rows.append((timed(plain.step, number), first))
    observed.close()
    ratios = [b[0] / a[0] for a, b in rows if a[0] > 0]
    low, high = interval(ratios)
    return {
        "work": work_name,
        "method": method,
        "pairs": len(rows),
        "cpu_median": round(statistics.median(ratios), 4),
        "low": round(low, 4),
        "high": round(high, 4),
        "cpu_mean": round(sum(b[0] for _, b in rows) / sum(a[0] for a, _ in rows), 4),
        "wall_median": round(statistics.median(b[1] / a[1] for a, b in rows), 4),
        "plain_ms": round(1e3 * statistics.median(a[0] for a, _ in rows), 2),
    }


def interval(ratios: list[float]) -> tuple[float, float]:
    """The 95% bootstrap interval of the median."""
    draw = random.Random(0)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(DRAWS))
    return medians[int(0.025 * DRAWS)], medians[int(0.975 * DRAWS)]


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--work", nargs="+", default=["mlp", "cnn", "gpt"])
    options.add_argument("--methods", nargs="+", default=["nothing", "ours", "ours_every_leaf"])
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--pairs", type=int, default=400)
    options.add_argument("--seconds", type=float, default=600.0, help="at most, for each cell")
    options.add_argument("--cell", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    if not CORPUS.is_dir():
        print(f"{CORPUS}: the workloads are not here", file=sys.stderr)
        return 2
    if given.cell:
        torch = importlib.import_module("torch")
        sys.path.insert(0, str(CORPUS))
        torch.set_num_threads(given.threads)
        print(json.dumps(cell(given.work[0], given.methods[0], given.pairs, given.seconds)))
        return 0
    import subprocess

    for work in given.work:
        for method in given.methods:
            words = ["--cell", "--work", work, "--methods", method, "--threads", str(given.threads)]
            words += ["--pairs", str(given.pairs), "--seconds", str(given.seconds)]
            done = subprocess.run([sys.executable, __file__, *words], capture_output=True, text=True, check=False)
            last = done.stdout.strip().splitlines()[-1:] or [
                json.dumps({"work": work, "method": method, "failed": done.stderr[-200:]})
            ]
            print(json.dumps({**json.loads(last[0]), "threads": given.threads}), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
