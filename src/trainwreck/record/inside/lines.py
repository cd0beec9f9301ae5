"""The source line that made a node of the graph: asked for by a probe that saw something there, found one step later.

torch itself notes the stack with every node while its anomaly mode is on (about 50 µs a node). It is on for the one
step that follows the question, without its search for NaN, and never where torch compiles.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch

from . import callers
from .probe import Backward, Probe, Step

LOOKS = 4
"""Backwards for which it stays on: where several losses take turns, the one that was asked about comes among them."""
_LINE = re.compile(r'File "([^"]+)", line (\d+), in ')


class Lines(Probe):
    """Answers ``of`` and ``ask``; tells what it was given where no answer came."""

    name = "lines of operations"
    rarely = frozenset(("backward", "after_step"))

    def __init__(self, recorder: Any) -> None:
        super().__init__(recorder)
        self._asked: set[str] = set()
        self._open: dict[str, Callable[[], None]] = {}
        self._left = 0

    def ask(self, kind: str, otherwise: Callable[[], None]) -> bool:
        """True if the next step will know the lines of its nodes: come again then. ``otherwise`` tells it without."""
        compiled = any(getattr(p, "compiled", False) for p in self.recorder.probes)
        if kind in self._asked or compiled or torch.is_anomaly_enabled() or torch.compiler.is_compiling():
            return kind in self._open and self._left > 0
        self._asked.add(kind)
        self._open[kind] = otherwise
        self.recorder.look = self.recorder.step + 1
        return True

    def answered(self, kind: str) -> None:
        """The question has been told with its line."""
        self._open.pop(kind, None)

    def after_step(self, step: Step) -> None:
        """The step with the question is over: note stacks in the next one."""
        if self._open and not self._left and not torch.is_anomaly_enabled():
            self._left = LOOKS
            torch.set_anomaly_enabled(True, False)

    def backward(self, moment: Backward) -> None:
        """The probes before this one have looked at the nodes."""
        if not self._left:
            return
        self._left = self._left - 1 if self._open else 0
        if not self._left:
            self._end()
        elif self._open:
            self.recorder.look = self.recorder.step + 1

    def close(self) -> None:
        """Tell what was not seen again."""
        self._end()

    def _end(self) -> None:
        if self._left or (torch.is_anomaly_enabled() and self._asked):
            torch.set_anomaly_enabled(False, True)
        self._left = 0
        pending, self._open = self._open, {}
        for tell in pending.values():
            tell()

    @staticmethod
    def of(node: Any) -> callers.Place | None:
        """(path, line) of the user's innermost line that made ``node``, None where no stack was noted."""
        stack = getattr(node, "metadata", {}).get("traceback_")
        found = None
        for entry in stack or ():
            match = _LINE.search(entry)
            if match is not None and callers.is_users(match[1]):
                found = callers.relative(match[1]), int(match[2])
        return found
