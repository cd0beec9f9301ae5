"""Processes that the program starts by ``multiprocessing``'s spawn and forkserver are recorded as well.

They begin as a fresh Python, so the start-up hook has to be in their environment; it is put there for the moment of the
launch only, and the child takes it out again. Forked children need nothing: they inherit the recorder.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

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


@contextmanager
def _environment(folder: str, options: dict[str, Any] | None) -> Iterator[None]:
    """The start-up hook in the environment that a child is about to get."""
    before = os.environ.get("PYTHONPATH", "")
    wanted = {
        "TRAINWRECK_RECORD": os.path.abspath(folder),
        "TRAINWRECK_OPTIONS": json.dumps(options or {}),
        "TRAINWRECK_PYTHONPATH": before,
        "PYTHONPATH": os.pathsep.join(filter(None, [BOOTSTRAP, before])),
    }
    old = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in old.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
