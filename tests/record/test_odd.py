"""Processes that end or begin in unusual ways: what they did is recorded, and how they ended is told."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from trainwreck.engine import diagnose

pytest.importorskip("torch", reason="torch is not installed")

STEPS = """\
import multiprocessing, os, signal, sys
def steps(n):
    import torch
    net = torch.nn.Linear(4, 2)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for i in range(n):
        loss = net(torch.randn(8, 4)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
"""


def run(
    folder: Path, body: str, *words: str, limit: Callable[[], None] | None = None
) -> subprocess.CompletedProcess[str]:
    (folder / "train.py").write_text(STEPS + body)
    return subprocess.run(
        [sys.executable, "-m", "trainwreck", "run", "--record-to", "rec", "train.py", *words],
        cwd=folder,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        preexec_fn=limit,
    )


def test_a_program_that_replaces_itself_is_two_runs(tmp_path: Path) -> None:
    body = (
        "steps(5)\nif len(sys.argv) < 2:\n    os.execv(sys.executable, [sys.executable, __file__, 'second'])\n"
        "print('second life', sorted(k for k in os.environ if 'TRAINW' in k or k == 'PYTHONPATH'))\n"
    )
    done = run(tmp_path, body)
    assert done.stdout == "second life []\n" or "PYTHONPATH" in os.environ
    runs = diagnose([tmp_path / "rec"]).runs
    assert [(r.steps, r.outcome) for r in runs] == [(5, "completed")] * 2


def test_forked_children_that_train_are_recorded_to_their_end(tmp_path: Path) -> None:
    body = (
        "if __name__ == '__main__':\n    context = multiprocessing.get_context('fork')\n"
        "    ps = [context.Process(target=steps, args=(n,)) for n in (3, 4)]\n"
        "    [p.start() for p in ps]\n    [p.join() for p in ps]\n"
    )
    assert run(tmp_path, body).returncode == 0
    found = diagnose([tmp_path / "rec"]).runs
    assert sorted((r.steps, r.outcome) for r in found) == [(3, "completed"), (4, "completed")]
    assert not list((tmp_path / "rec").glob("fatal-*"))


@pytest.mark.parametrize(
    ("end", "code", "outcome"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", 139, "crashed"),
        ("os._exit(7)", 7, "crashed"),
        ("os.kill(os.getpid(), signal.SIGTERM)", 143, "killed"),
        ("raise KeyboardInterrupt", 130, "interrupted"),
    ],
)
def test_how_a_process_ended_is_told(end: str, code: int, outcome: str, tmp_path: Path) -> None:
    done = run(tmp_path, f"steps(5)\ndef last():\n    {end}\nlast()\n")
    assert done.returncode == code
    result = diagnose([tmp_path / "rec"])
    assert {r.outcome for r in result.runs if r.format == "trainwreck-recording"} == {outcome}
    if code == 139:
        assert "in last" in next((tmp_path / "rec").glob("fatal-*.txt")).read_text()


def test_a_recording_that_could_not_be_written_is_told(tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (700, 700))

    done = run(tmp_path, "steps(5)\nprint('trained')\n", limit=limit)
    assert (done.returncode, done.stdout) == (0, "trained\n")
    assert "the recording is not complete" in done.stderr or "no longer recording writing" in done.stderr


def test_nothing_recorded_is_told(tmp_path: Path) -> None:
    done = run(tmp_path, "print(json := 1)\n")
    assert done.returncode == 0
    assert "nothing was recorded" in done.stderr
    assert not (tmp_path / "rec").exists()


def test_the_end_stands_behind_the_events(tmp_path: Path) -> None:
    run(tmp_path, "steps(2)\nsys.exit('no data')\n")
    last = json.loads((tmp_path / "rec/rank0.jsonl").read_text().splitlines()[-1])
    assert (last["event"], last["code"]) == ("exit", 1)
