"""Signals that come while the process forks, a Ctrl-C above all.

Python runs their handlers between two instructions of the main thread and throws away what they raise in the functions
that are called around a fork (``os.register_at_fork``; "Exception ignored in …"). Forks of ours are not to swallow an
interrupt, and our function around the program's own forks is not to make that more likely.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM", "SIGUSR1", "SIGUSR2")
"""Signals for which programs have handlers that raise."""
A_MOMENT = 0.01
"""Seconds after which the functions around a fork are over."""


class PutOff:
    """Keeps the signals back for which there is a handler in Python, from ``begin`` to ``end``."""

    def __init__(self) -> None:
        self._handlers: dict[int, Any] = {}
        self._came: list[tuple[int, int]] = []

    def begin(self) -> None:
        """In the main thread only: elsewhere nothing is raised, and no handler may be set."""
        if self._handlers or threading.current_thread() is not threading.main_thread():
            return
        for name in NAMES:
            number = getattr(signal, name, None)
            handler = None if number is None else signal.getsignal(number)
            if number is not None and callable(handler):
                self._handlers[number] = handler
                signal.signal(number, self._keep)

    def _keep(self, number: int, _: Any) -> None:
        self._came.append((os.getpid(), number))

    def end(self) -> list[int]:
        """Put the handlers back; the signals that this process was sent meanwhile."""
        handlers, self._handlers = self._handlers, {}
        for number, handler in handlers.items():
            signal.signal(number, handler)
        came, self._came = self._came, []
        return [number for process, number in came if process == os.getpid()]


@contextlib.contextmanager
def put_off() -> Iterator[None]:
    """Around a fork of ours: what comes within is handled when all that belongs to the fork is noted."""
    kept = PutOff()
    kept.begin()
    try:
        yield
    finally:
        for number in kept.end():
            signal.raise_signal(number)


def again(numbers: list[int]) -> None:
    """Send ``numbers`` to this process once more, when the functions around a fork are over."""
    if numbers:
        _thread.start_new_thread(_send, (numbers,))


def _send(numbers: list[int]) -> None:
    time.sleep(A_MOMENT)
    for number in numbers:
        os.kill(os.getpid(), number)
