"""Where the children of this process stand: those that ``multiprocessing`` forked write it down when they are asked.

A child has ``faulthandler`` listen to a signal that nobody uses; its answer goes into a file in memory that it shares
with its parent. It is asked only once the parent waits for it. Elsewhere than on Linux nothing is asked.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing.process
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from typing import Any

from . import callers, stacks

MAX_CHILDREN = 8
ANSWER = 0.5
"""Seconds within which a child answers; its handler runs at once, whatever it does."""
PATIENCE = 5.0
_LINE = re.compile(r'File "([^"]+)", line (\d+) in (.+)')
_SPY = re.compile(r"^\s+(.+?) \((.+?):(\d+)\)$")
_file = -1
_signal = 0


def prepare() -> None:
    """Have children that are forked from now on answer; raises nothing."""
    global _file, _signal
    with contextlib.suppress(Exception):
        if not sys.platform.startswith("linux") or _file >= 0:
            return
        _signal = int(signal.SIGRTMIN) + 11
        if signal.getsignal(_signal) is not signal.SIG_DFL:
            return
        _file = os.memfd_create("trainwreck-stacks")
        util: Any = importlib.import_module("multiprocessing.util")
        util.register_after_fork(_Listens(), _Listens.listen)


class _Listens:
    """Registered for forked children."""

    def __init__(self) -> None:
        _kept.append(self)  # the registry holds weak references only

    def listen(self) -> None:
        """In a child: answer from now on."""
        with contextlib.suppress(Exception):
            import faulthandler

            faulthandler.register(_signal, file=_file, all_threads=True, chain=False)


_kept: list[_Listens] = []


def look() -> list[dict[str, Any]]:
    """``name``, ``pid`` and ``frames`` (of its main thread, innermost first) of the children that run."""
    found = []
    for child in list(multiprocessing.process._children)[:MAX_CHILDREN]:  # type: ignore[attr-defined]
        pid = child.pid
        if pid is None:
            continue
        frames = _asked(pid) if _listens(pid) else _spied(pid)
        state = _state(pid)
        found.append({"name": child.name, "pid": pid, "state": state, "frames": frames})
    return found


def _state(pid: int) -> str | None:
    """The state of a process as Linux writes it (S sleeps, R runs, Z is dead); None where it is gone."""
    with contextlib.suppress(OSError, IndexError), open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()[0].decode()
    return None


def _listens(pid: int) -> bool:
    """Whether the process has a handler for our signal: without one it would end."""
    if _file < 0:
        return False
    with contextlib.suppress(OSError, ValueError):
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            caught = next(line for line in file if line.startswith("SigCgt:"))
        return bool(int(caught.split()[1], 16) >> (_signal - 1) & 1)
    return False


def _asked(pid: int) -> list[stacks.Frame]:
    begin = os.fstat(_file).st_size
    os.lseek(_file, 0, os.SEEK_END)
    os.kill(pid, _signal)
    deadline = time.monotonic() + ANSWER
    while time.monotonic() < deadline and os.fstat(_file).st_size == begin:
        time.sleep(0.02)
    time.sleep(0.02)
    text = os.pread(_file, 1 << 16, begin).decode(errors="replace")
    main = text.rpartition("(most recent call first):")[2]  # the main thread is written last
    return _own([(m[1], int(m[2]), m[3].strip()) for m in map(_LINE.search, main.splitlines()) if m])


def _spied(pid: int) -> list[stacks.Frame]:
    """What py-spy says, where it is installed."""
    tool = shutil.which("py-spy")
    if tool is None:
        return []
    try:
        done = subprocess.run(
            [tool, "dump", "--full-filenames", "--pid", str(pid)], capture_output=True, text=True, timeout=PATIENCE
        )
    except (OSError, subprocess.SubprocessError):
        return []
    main = next((part for part in done.stdout.split("\nThread ") if "MainThread" in part.partition("\n")[0]), "")
    return _own([(m[2], int(m[3]), m[1]) for m in map(_SPY.match, main.splitlines()) if m])


def _own(found: list[tuple[str, int, str]]) -> list[stacks.Frame]:
    """A child's own frames: below the fork stand its parent's."""
    fork = next((i for i, (path, _, _) in enumerate(found) if path.endswith("popen_fork.py")), len(found))
    return [_frame(*f) for f in found[: min(fork, stacks.MAX_FRAMES)]]


def _frame(path: str, line: int, function: str) -> stacks.Frame:
    import linecache

    told: stacks.Frame = {"path": stacks.short(path), "line": line, "function": function}
    if not path.startswith("<") and callers.is_users(os.path.abspath(path)):
        told |= {"users": True, "call": linecache.getline(path, line).strip()[:160]}
    return told
