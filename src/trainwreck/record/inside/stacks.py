"""Where the threads of this process stand: their frames, whether they move, what they wait for; workers' as well.

Read from a thread of ours while the training stands still. Nothing of the user's is held: no frame, no variable.
"""

from __future__ import annotations

import _thread
import contextlib
import linecache
import os
import sys
import sysconfig
import threading
from types import CodeType, FrameType
from typing import Any

from . import callers

MAX_FRAMES, MAX_THREADS = 40, 16
IDLE = 0.1
"""Share of one processor below which the process does nothing (a judgement: loggers and progress bars take some)."""
Frame = dict[str, Any]
Key = tuple[tuple[int, int], ...]

_ROOTS = sorted(
    {os.path.abspath(p) + os.sep for n in ("purelib", "platlib", "stdlib") if (p := sysconfig.get_path(n))},
    key=len,
    reverse=True,
)
_PLUMBING = ("threading.py", "queue.py", "selectors.py", "contextlib.py", "multiprocessing/", "weakref.py")
"""Files through which one waits; who waits stands further out."""
_WAITING_WORDS = (".acquire(", ".join(", ".get(", ".put(", ".wait(", ".recv(", "with ", ".result(")
_PLACES = (
    ("debugger", ("pdb.py", "bdb.py", "cmd.py", "code.py", "IPython/", "ipdb/", "debugpy/")),
    ("compiling", ("torch/_inductor/", "torch/_dynamo/", "triton/", "torch/utils/cpp_extension.py")),
    ("events", ("asyncio/", "tornado/", "uvicorn/", "gevent/", "flask/", "socketserver.py", "tkinter/")),
    ("collective", ("torch/distributed/", "horovod/", "torch/nn/parallel/distributed.py", "deepspeed/comm/")),
    ("loader", ("torch/utils/data/dataloader.py",)),
    ("saving", ("torch/serialization.py", "safetensors/", "pickle.py", "shutil.py")),
    ("children", ("subprocess.py", "multiprocessing/pool.py", "concurrent/futures/", "joblib/", "multiprocess/")),
    ("network", ("socket.py", "ssl.py", "http/", "urllib/", "urllib3/", "requests/", "httpx/", "huggingface_hub/")),
)
"""What a thread is at, by the files of its frames (from the root of the library); the first that fits."""


def key_of(ident: int) -> Key:
    """Where thread ``ident`` stands, to the instruction; empty where it is gone."""
    frame = sys._current_frames().get(ident)
    found: list[tuple[int, int]] = []
    while frame is not None and len(found) < MAX_FRAMES:
        found.append((id(frame.f_code), frame.f_lasti))
        frame = frame.f_back
    return tuple(found)


def seconds_of(ident: int) -> float | None:
    """Processor seconds of thread ``ident``; None where the system does not say."""
    thread = threading._active.get(ident)  # type: ignore[attr-defined]
    try:
        with open(f"/proc/self/task/{thread.native_id}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except (OSError, AttributeError):
        return None
    return (int(fields[11]) + int(fields[12])) / float(os.sysconf("SC_CLK_TCK"))


def threads(training: int) -> list[dict[str, Any]]:
    """``name`` and ``frames`` (innermost first) of every thread but our own, the one that trains first."""
    found = []
    current = sys._current_frames()
    for ident in sorted(current, key=lambda i: i != training)[:MAX_THREADS]:
        if ident != _thread.get_ident():
            thread = threading._active.get(ident)  # type: ignore[attr-defined]
            found.append({"name": getattr(thread, "name", f"thread {ident}"), "frames": frames(current[ident])})
    return found


def frames(frame: FrameType | None) -> list[Frame]:
    """Path, line, function; of the user's frames also the ``call`` under way as it is written."""
    found: list[Frame] = []
    while frame is not None and len(found) < MAX_FRAMES:
        code, line = frame.f_code, frame.f_lineno
        told: Frame = {"path": short(code.co_filename), "line": line, "function": code.co_name}
        if code.co_filename != "<string>" and callers.is_users(code.co_filename):
            told["users"] = True
            if text := _call(code, frame.f_lasti, line):
                told["call"] = text
        found.append(told)
        frame = frame.f_back
    return found


def short(path: str) -> str:
    """A library's file from its root, the user's from the working directory."""
    full = os.path.abspath(path)
    root = next((r for r in _ROOTS if full.startswith(r)), None)
    if root is not None:
        return full[len(root) :].removeprefix(f"site-packages{os.sep}")
    return callers.relative(path)


def _call(code: CodeType, instruction: int, line: int) -> str:
    """The expression that is being evaluated, or its whole line."""
    text = linecache.getline(code.co_filename, line).rstrip("\n")
    with contextlib.suppress(Exception):
        start, end, first, last = list(code.co_positions())[instruction // 2]
        if start == end == line and first is not None and last is not None and not text.lstrip().startswith("with "):
            part = text.encode()[first:last].decode()
            if "(" in part:
                return part[:160]
    return text.strip()[:160]


def place(found: list[Frame]) -> Frame | None:
    """The innermost frame of the user's own."""
    return next((f for f in found if f.get("users")), None)


def kind_of(found: list[Frame], still: bool, idle: bool, group: bool) -> str:
    """What the thread with these frames is at: one of ``_PLACES``, or ``lock``, ``sleep``, ``idle``, ``busy``.

    ``still``: it has not moved by an instruction; ``idle``: nor has the process used processor time. ``group``: it
    belongs to a process group.
    """
    paths = [f["path"] for f in found]
    user = next((i for i, f in enumerate(found) if f.get("users")), len(found))
    for kind, files in _PLACES:
        near = paths if kind in ("debugger", "events", "compiling") else paths[: user + 1]
        if any(p.startswith(files) for p in near):
            return kind if still or kind not in ("collective", "loader") else "busy"
    if not (still and idle):
        return "busy"
    if any(p.startswith("torch/autograd/") for p in paths[:user]):
        return "collective" if group else "idle"
    call = str(found[user].get("call", "")) if user < len(found) else ""
    if group and ".wait(" in call and not user:
        return "collective"
    if all(p.startswith(_PLUMBING) for p in paths[:user]) and any(w in call for w in _WAITING_WORDS):
        return "lock"
    return "sleep" if "sleep(" in call else "idle"
