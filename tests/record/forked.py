"""Run a program in a fork of the tests' process, in which torch is loaded already: seconds less for each program."""

from __future__ import annotations

import importlib
import os
import runpy
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
for _name in ("torch._dynamo", "torch.utils.checkpoint"):  # what every optimizer imports: once here
    importlib.import_module(_name)


def recorded(source: str, folder: Path, options: dict[str, Any] | None = None) -> str:
    """Run ``source`` under the recorder, which writes to ``rec`` in ``folder``; what it printed."""
    return in_fork(source, folder, lambda: record(options))


def plain(source: str, folder: Path) -> str:
    """Run ``source`` without us; what it printed."""
    return in_fork(source, folder, _program)


def _program() -> None:
    sys.argv = ["train.py"]
    runpy.run_path(sys.argv[0], run_name="__main__")  # no name on this line: what stands on it is read as the program's


def record(options: dict[str, Any] | None) -> None:
    from trainwreck.record.inside import samples
    from trainwreck.record.inside.recorder import Recorder

    samples.WAIT_SECONDS = 30.0  # a machine that is busy with other tests must not cost the answer
    samples.SPEAKS_AT_FORK = ()  # other tests of this process may have loaded such a module (jax)
    recorder = Recorder("rec", options)
    recorder.attach()
    try:
        _program()
    finally:
        recorder.close()


def in_fork(source: str, folder: Path, work: Callable[[], None]) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.py").write_text(source)
    child = os.fork()
    if not child:
        try:
            os.chdir(folder)
            out = os.open("out.txt", os.O_CREAT | os.O_WRONLY)
            os.dup2(out, 1)
            os.dup2(out, 2)
            sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
            warnings.simplefilter("default")
            warnings.filterwarnings("ignore", message=r"os\.fork\(\)")  # of jax, if another test has loaded it
            torch.set_num_threads(1)
            work()
            sys.stdout.flush()
            sys.stderr.flush()
        except BaseException:
            os.write(2, traceback.format_exc().encode())
        os._exit(0)
    os.waitpid(child, 0)
    return (folder / "out.txt").read_text()
