"""Check again whenever a file changes. Times and sizes are polled: no dependency, and it works on network disks."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

from trainwreck.checking.check import SUFFIXES
from trainwreck.collect import SKIPPED_DIRECTORIES
from trainwreck.core.errors import TrainwreckError

PERIOD = 0.5
"""Seconds between two looks: quick enough after a save, and 10,000 files cost a tenth of a core."""
SETTINGS = ("trainwreck.toml", "pyproject.toml")


def watch(
    paths: Sequence[str],
    again: Callable[[], None],
    say: Callable[[str], None],
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Call ``again`` now and after every change below ``paths``, until interrupted; exit code 130.

    What the user should correct (a broken settings file) is said, and the next change is waited for.
    """
    try:
        while True:
            seen = snapshot(paths)
            try:
                again()
            except TrainwreckError as problem:
                say(f"trainwreck: {problem}")
            say("trainwreck: watching, Ctrl-C ends")
            while snapshot(paths) == seen:
                sleep(PERIOD)
    except KeyboardInterrupt:
        return 130


def snapshot(paths: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Time and size of every file that a check would read."""
    found: dict[str, tuple[int, int]] = {}
    for path in paths:
        if not os.path.isdir(path):
            _note(path, found)
            continue
        for root, directories, names in os.walk(path):
            directories[:] = [d for d in directories if d not in SKIPPED_DIRECTORIES]
            for name in names:
                if name.lower().endswith(SUFFIXES) or name in SETTINGS:
                    _note(os.path.join(root, name), found)
    return found


def _note(path: str, found: dict[str, tuple[int, int]]) -> None:
    try:
        status = os.stat(path)
    except OSError:
        return
    found[path] = (status.st_mtime_ns, status.st_size)
