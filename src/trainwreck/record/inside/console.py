"""What the program prints and logs, kept beside the numbers: metrics that only the console shows, and warnings.

``print`` and the stream handlers of ``logging`` do their own work first, unchanged; then the line is noted. Values are
turned into text a second time only where that is cheap and has no effect of its own; of others the place is kept
(``...``). The file ``console-rank0.log`` holds the first half megabyte and the last lines, and grows at flushes only.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import logging
import os
import sys
import threading
import warnings
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from .probe import Probe

if TYPE_CHECKING:
    from .recorder import Recorder

FIRST_BYTES = 1 << 19
LAST_LINES = 2_000
"""Kept of what comes after the first bytes, and written at the end."""
LONGEST = 2_000
"""Characters of one line."""
FEW = 16
"""Elements of a tensor on the CPU that is printed whole."""
PLAIN = (str, int, float, bool, type(None))


class Console(Probe):
    """Keeps the lines that the process prints."""

    name = "console"

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self._open = ""
        """What was printed of a line that has not ended."""
        self._lines: list[str] = []
        self._rest: deque[str] = deque(maxlen=LAST_LINES)
        self._size = self._left = 0
        self._lock = threading.RLock()
        """Never waited for: a handler of a signal may print while it is held, and a fork may copy it while it is."""

    def attach(self) -> None:
        """Listen to ``print``, ``logging`` and ``warnings``."""
        builtins.print = _printing(builtins.print, self._printed)
        logging.StreamHandler.emit = _logging(logging.StreamHandler.emit, self._logged)  # type: ignore[method-assign]
        if warnings.showwarning is getattr(warnings, "_showwarning_orig", None):
            warnings.showwarning = _warning(warnings.showwarning, self._warned)

    def flush(self) -> None:
        """Write the lines of the last steps."""
        if self.recorder.store.base is None:
            return  # nothing is recorded so far: nothing is written either
        lines, self._lines = self._lines, []
        self._write(lines)

    def close(self) -> None:
        """Write the line that has not ended, and the last ones of a long output."""
        if self._open:
            self._keep(self._open)
        self._open = ""
        left = self._left - len(self._rest)
        self._lines += [f"[{left} lines left out]"] * (left > 0) + list(self._rest)
        self._rest.clear()
        self.flush()

    # below the surface

    def _write(self, lines: list[str]) -> None:
        if not lines:
            return
        path = os.path.join(self.recorder.folder, f"console-{os.path.basename(str(self.recorder.store.base))}.log")
        with open(path, "a", encoding="utf-8", errors="backslashreplace") as file:
            file.write("".join(f"{line}\n" for line in lines))

    def _printed(self, values: tuple[Any, ...], options: dict[str, Any]) -> None:
        file = options.get("file")
        if self.recorder.off or (file is not None and file is not sys.stdout and file is not sys.stderr):
            return
        sep, end = (options.get(name) for name in ("sep", "end"))
        text = (" " if sep is None else str(sep)).join(map(_text, values))
        self._add(text + ("\n" if end is None else str(end)))

    def _logged(self, handler: Any, record: Any) -> None:
        if not self.recorder.off and handler.stream in (sys.stdout, sys.stderr):
            text = getattr(record, "message", None)  # the formatter has put it together: nothing is asked for it twice
            self._add(f"{record.levelname} {'...' if text is None else text}\n")

    def _warned(self, message: Any, category: Any, filename: Any, lineno: Any) -> None:
        if not self.recorder.off:
            self._add(f"{filename}:{lineno}: {category.__name__}: {message}\n")

    def _add(self, text: str) -> None:
        if not self._lock.acquire(blocking=False):
            return
        try:
            *whole, self._open = (self._open + text).split("\n")
            for line in whole:
                self._keep(line)
            if "\r" in self._open:
                self._open = self._open.rpartition("\r")[2]
            self._open = self._open[-LONGEST:]
        finally:
            self._lock.release()

    def _keep(self, line: str) -> None:
        line = line.rpartition("\r")[2][:LONGEST]  # of a bar that is drawn over itself the last state
        if self._size < FIRST_BYTES:
            self._size += len(line) + 1
            self._lines.append(line)
        else:
            self._left += 1
            self._rest.append(line)


def _text(value: Any) -> str:
    """``value`` as ``print`` shows it, where asking for it a second time costs nothing and changes nothing."""
    builtin = type(value).__module__ in ("builtins", "torch")  # an exception of the program's may do what it likes
    if type(value) in PLAIN or isinstance(value, Path) or (builtin and isinstance(value, BaseException)):
        return str(value)
    if isinstance(value, torch.Tensor):
        cheap = type(value) is torch.Tensor and value.device.type == "cpu" and value.numel() <= FEW
        return str(value) if cheap else "..."
    module = type(value).__module__
    if module == "numpy" and getattr(value, "size", FEW + 1) <= FEW:
        return str(value)
    if type(value) in (list, tuple, dict) and len(value) <= FEW:
        held = value.values() if isinstance(value, dict) else value
        return str(value) if all(type(v) in PLAIN or type(v).__module__ == "numpy" for v in held) else "..."
    return "..."


def _printing(original: Any, noted: Any) -> Any:
    @functools.wraps(original)
    def print(*values: Any, **options: Any) -> None:
        original(*values, **options)
        with contextlib.suppress(Exception):
            noted(values, options)

    print._torchdynamo_disable = True  # type: ignore[attr-defined]  # a compiler stops here as it does at the builtin
    return print


def _logging(original: Any, noted: Any) -> Any:
    @functools.wraps(original)
    def emit(self: Any, record: Any) -> None:
        original(self, record)
        with contextlib.suppress(Exception):
            noted(self, record)

    return emit


def _warning(original: Any, noted: Any) -> Any:
    @functools.wraps(original)
    def showwarning(message: Any, category: Any, filename: Any, lineno: Any, *rest: Any, **named: Any) -> None:
        original(message, category, filename, lineno, *rest, **named)
        with contextlib.suppress(Exception):
            noted(message, category, filename, lineno)

    return showwarning
