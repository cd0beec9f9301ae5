"""Processes that the program starts by ``multiprocessing``'s spawn and forkserver are recorded as well.

They begin as a fresh Python, so the start-up hook has to be in their environment; it is put there for the moment of the
launch only, and the child takes it out again. Forked children inherit the recorder; those of ``multiprocessing`` end
without the functions of ``atexit``, so they are told to close it. A program that replaces itself (``os.execv``) is
recorded as a second one.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import json
import multiprocessing.process
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

LATE = -1000
"""After everything of the program's own."""
BOOTSTRAP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bootstrap")


def follow(folder: str, options: dict[str, Any] | None) -> None:
    """Have children that ``multiprocessing`` spawns from now on record into ``folder``."""
    util: Any = importlib.import_module("multiprocessing.util")
    original = util.spawnv_passfds

    @functools.wraps(original)
    def spawnv_passfds(path: Any, arguments: Any, descriptors: Any) -> Any:
        with _environment(folder, options):
            return original(path, arguments, descriptors)

    util.spawnv_passfds = spawnv_passfds
    for name in ("execv", "execve"):
        setattr(os, name, _replaced(getattr(os, name), folder, options))


def close_at_end(recorder: Any) -> None:
    """Have ``recorder`` closed at the end of the process, and in children that ``multiprocessing`` forks at theirs."""
    at_exit(recorder.close)
    util: Any = importlib.import_module("multiprocessing.util")
    util.register_after_fork(recorder, lambda r: util.Finalize(None, r.close_child, exitpriority=LATE))


def at_exit(call: Callable[..., None], *arguments: Any) -> None:
    """``atexit.register``, for forked children of ``multiprocessing`` as well."""
    atexit.register(call, *arguments)
    if multiprocessing.process.parent_process() is not None:
        importlib.import_module("multiprocessing.util").Finalize(None, call, arguments, exitpriority=LATE)


def _replaced(original: Any, folder: str, options: dict[str, Any] | None) -> Any:
    """``os.execv`` and ``os.execve``, which write what is unwritten and pass the start-up hook on to a Python."""

    @functools.wraps(original)
    def execute(path: Any, arguments: Any, *environment: Any) -> Any:
        with contextlib.suppress(Exception):
            recorder = importlib.import_module(".hooks", __package__).current()
            if recorder is not None:
                recorder.leave("the process became another program")
        if not os.path.basename(os.fsdecode(path)).startswith("python"):
            return original(path, arguments, *environment)
        given = environment[0] if environment else os.environ
        with _environment(folder, options, given if isinstance(given, (dict, os.environ.__class__)) else {}):
            return original(path, arguments, *environment)

    return execute


@contextmanager
def _environment(folder: str, options: dict[str, Any] | None, environment: Any = os.environ) -> Iterator[None]:
    """The start-up hook in the environment that a child is about to get."""
    before = environment.get("PYTHONPATH", "")
    wanted = {
        "TRAINWRECK_RECORD": os.path.abspath(folder),
        "TRAINWRECK_OPTIONS": json.dumps(options or {}),
        "TRAINWRECK_PYTHONPATH": before,
        "PYTHONPATH": os.pathsep.join(filter(None, [BOOTSTRAP, before])),
    }
    old = {name: environment.get(name) for name in wanted}
    environment.update(wanted)
    try:
        yield
    finally:
        for name, value in old.items():
            if value is None:
                environment.pop(name, None)
            else:
                environment[name] = value
