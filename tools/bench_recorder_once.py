"""What the flight recorder costs once: start-up, memory, graphs of torch.compile. Each from processes of their own.

    python tools/bench_recorder_once.py [--repeats 7]

Start-up: processor time (user and system) of a process that imports torch and takes one training step, with the
recorder and without, in turn; medians. Memory: peak of the resident memory after 60 steps on each workload of the
developer corpus (``../shared/bench/overhead``). Graphs: what a counting backend is given by ``torch.compile``, and
whether ``fullgraph=True`` is accepted.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT.parent / "shared/bench/overhead"
BOOTSTRAP = ROOT / "src/trainwreck/record/inside/bootstrap"
IMPORT = "import torch\ntorch.set_num_threads(1)\n"
STEP = (
    IMPORT
    + """
net = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
optimizer = torch.optim.AdamW(net.parameters())
loss = torch.nn.functional.cross_entropy(net(torch.randn(8, 32)), torch.randint(4, (8,)))
loss.backward()
optimizer.step()
"""
)
MEMORY = """
import resource, sys
sys.path.insert(0, sys.argv[1])
import torch
torch.set_num_threads(1)
from yardstick import build
work = build(sys.argv[2])
for number in range(int(sys.argv[3])):
    work.step(number)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, sum(4 * p.numel() for p in work.model.parameters()))
"""
COMPILED = """
import torch, torch._dynamo as dynamo, torch._dynamo.testing
torch.manual_seed(0)
net = torch.nn.Sequential(*[m for _ in range(3) for m in (torch.nn.Linear(16, 16), torch.nn.ReLU())])
optimizer = torch.optim.AdamW(net.parameters())
counter = dynamo.testing.CompileCounter()
compiled = torch.compile(net, backend=counter)
x = torch.randn(4, 16)
for _ in range(50):
    optimizer.zero_grad()
    compiled(x).square().mean().backward()
    optimizer.step()
graphs = counter.frame_count
dynamo.reset()
whole = torch.compile(net, backend="eager", fullgraph=True)
for _ in range(3):
    whole(x).square().mean().backward()
    optimizer.step()
print(graphs, "fullgraph accepted")
"""


def run(program: str, *words: str, recorded: bool, every_leaf: bool = False) -> tuple[float, str]:
    """(processor seconds, standard output) of ``program``."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    with tempfile.TemporaryDirectory(prefix="trainwreck-once-") as folder:
        script = Path(folder) / "train.py"
        script.write_text(program, encoding="utf-8")
        if recorded:
            environment |= {"TRAINWRECK_RECORD": f"{folder}/rec", "PYTHONPATH": str(BOOTSTRAP)}
            environment["TRAINWRECK_OPTIONS"] = json.dumps({"every_leaf": every_leaf})
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [sys.executable, str(script), *words],
            env=environment,
            capture_output=True,
            text=True,
            cwd=folder,
            check=False,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode or (recorded and program is not IMPORT and not os.listdir(f"{folder}/rec")):
            raise SystemExit(f"failed: {done.stderr[-1000:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def start_up(repeats: int) -> None:
    """Processor seconds beyond those of the same program without us."""
    for name, program in (("import torch", IMPORT), ("import torch and one step", STEP)):
        plain, ours = [], []
        for _ in range(repeats):
            plain.append(run(program, recorded=False)[0])
            ours.append(run(program, recorded=True)[0])
        added = statistics.median(b - a for a, b in zip(plain, ours, strict=True))
        print(f"start-up, {name}: {statistics.median(plain):.2f} s, with the recorder {added:+.2f} s", flush=True)


def memory(steps: int) -> None:
    """MiB of peak resident memory beyond those of the same program without us."""
    for work in ("mlp", "cnn", "gpt"):
        words = (str(CORPUS), work, str(steps))
        plain, size = map(int, run(MEMORY, *words, recorded=False)[1].split())
        ours = int(run(MEMORY, *words, recorded=True)[1].split()[0])
        leaf = int(run(MEMORY, *words, recorded=True, every_leaf=True)[1].split()[0])
        print(
            f"memory, {work} ({size / 2**20:.1f} MiB of parameters): {plain / 1024:.0f} MiB, with the recorder"
            f" {(ours - plain) / 1024:+.1f}, every leaf {(leaf - plain) / 1024:+.1f}",
            flush=True,
        )


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--repeats", type=int, default=7)
    options.add_argument("--steps", type=int, default=60, help="of the memory runs")
    given = options.parse_args()
    start_up(given.repeats)
    print("graphs without:", run(COMPILED, recorded=False)[1].strip())
    print("graphs with the recorder:", run(COMPILED, recorded=True)[1].strip())
    print("graphs with every leaf:", run(COMPILED, recorded=True, every_leaf=True)[1].strip())
    memory(given.steps)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
