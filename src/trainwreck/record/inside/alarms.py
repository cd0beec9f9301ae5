"""Alarms: told once each on standard error and in the events, and passed on at the moment of detection."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any, Literal

Level = Literal["warning", "critical"]

NONFINITE_LOSS = "nonfinite-loss"
NONFINITE_GRADIENT = "nonfinite-gradient"
NONFINITE_WEIGHTS = "nonfinite-weights"
LOSS_SPIKE = "loss-spike"
GRADIENT_SPIKE = "gradient-spike"
GRADIENT_VANISHES = "gradient-vanishes"
SCALE_FLOOR = "loss-scale-floor"
MEMORY_GROWS = "memory-grows"
MODE_FLIP = "mode-flip"
WIRING = "wiring"
STALL = "stall"


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something that went wrong, at the moment at which it was noticed.

    ``step``: the step of the optimizer that was under way, from 1. ``value``: what was seen (a number, "nan").
    ``module``: parameter or module by its path, where one is known. ``frame``: the code that called backward or step,
    valid during the call only. ``loss``: the tensor whose backward is about to run (non-finite loss), else None.
    ``optimizer``: the optimizer whose step it is, else None.
    """

    kind: str
    level: Level
    step: int
    value: Any = None
    module: str | None = None
    text: str = ""
    predicts: str = ""
    advice: str = ""
    frame: FrameType | None = None
    loss: Any = None
    optimizer: Any = None

    def line(self) -> str:
        """The alarm as one line for standard error."""
        parts = [f"trainwreck: step {self.step}: {self.text}"]
        parts += [part for part in (self.predicts, self.advice) if part]
        return "; ".join(parts)


class Alarms:
    """Raises each (kind, module) once, at most ``MAX_TOLD`` lines in all."""

    MAX_TOLD = 12
    """Lines on standard error; a run that is broken throughout must not drown the user's own output."""

    def __init__(
        self,
        callbacks: list[Callable[[Alarm], None]],
        write: Callable[[Alarm], None],
        fault: Callable[[str, Exception], None],
        command: str | None = None,
        stop_on: str | None = None,
        quiet: bool = False,
    ) -> None:
        self._callbacks, self._write, self._fault = callbacks, write, fault
        self._command, self._stop_on, self._quiet = command, stop_on, quiet
        self._told: set[tuple[str, str | None]] = set()
        self.stopping: Alarm | None = None

    def once(self, kind: str, module: str | None = None) -> bool:
        """True if no such alarm has been raised yet."""
        return (kind, module) not in self._told

    def raise_(self, alarm: Alarm) -> None:
        """Tell ``alarm`` unless it was told: event, standard error, command, callbacks; in this order."""
        if self.say(alarm):
            self._pass_on(alarm)

    def say(self, alarm: Alarm) -> bool:
        """Event, standard error and command only: from a thread of ours, in which nothing of the program may be asked.

        True if it has not been told before.
        """
        if not self.once(alarm.kind, alarm.module):
            return False
        self._told.add((alarm.kind, alarm.module))
        try:
            self._write(alarm)
        except Exception as problem:
            self._fault("events", problem)
        if not self._quiet and len(self._told) <= self.MAX_TOLD:
            with contextlib.suppress(Exception):
                print(alarm.line(), file=sys.stderr)
        if self._command:
            self._run(self._command, alarm)
        return True

    def _pass_on(self, alarm: Alarm) -> None:
        for call in list(self._callbacks):
            try:
                call(alarm)
            except Exception as problem:
                self._fault("alarm callbacks", problem)
        if self._stop_on == alarm.level or self._stop_on == "warning":
            self.stopping = alarm

    def _run(self, command: str, alarm: Alarm) -> None:
        """The user's ``--on-alarm`` command, without waiting for it; what happened stands in its environment."""
        import os

        facts = {"KIND": alarm.kind, "LEVEL": alarm.level, "STEP": alarm.step, "MODULE": alarm.module or ""}
        environment = {**os.environ, **{f"TRAINWRECK_ALARM_{k}": str(v) for k, v in facts.items()}}
        environment["TRAINWRECK_ALARM_TEXT"] = alarm.line()
        try:
            subprocess.Popen(
                command,
                shell=True,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr,
                start_new_session=True,
            )
        except Exception as problem:
            self._fault("--on-alarm", problem)
