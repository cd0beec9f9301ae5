"""A script run under the recorder in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def run(folder: Path, text: str, *options: str) -> str:
    """Write ``text`` to ``folder``, record it to ``folder/rec``, and give what it printed."""
    (folder / "train.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "trainwreck", "run", *options, "--record-to", "rec", "train.py"],
        cwd=folder,
        env=os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def lines(folder: Path) -> str:
    """What rank 0 recorded, as lines of JSON."""
    return (folder / "rec/rank0.jsonl").read_text()
