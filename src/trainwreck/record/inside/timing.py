"""Where the time goes, and how much memory is held: data, forward, backward and step of every optimizer step."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import torch

from .probe import Backward, Probe, Step

PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class Timing(Probe):
    """Columns ``seconds`` (since the last step of any optimizer), ``backward_seconds`` and ``step_seconds``; at sampled
    steps ``memory`` (bytes resident) and ``device_memory`` (bytes allocated). On a device these are times of launching,
    except over many steps. The batches' probe adds ``data_seconds``."""

    name = "times"

    def __init__(self, recorder: Any) -> None:
        super().__init__(recorder)
        self._last = time.perf_counter()
        self._backward = 0.0
        self._step = 0.0

    def backward(self, moment: Backward) -> None:
        """The clock of the last backward before the step."""
        self._backward = time.perf_counter()

    def before_step(self, step: Step) -> None:
        """Backward is over, and with it clipping and the like."""
        now = self._step = time.perf_counter()
        if self._backward > self._last:
            step.row["backward_seconds"] = now - self._backward

    def after_step(self, step: Step) -> None:
        """The step is done."""
        now = time.perf_counter()
        step.row["seconds"], step.row["step_seconds"] = now - self._last, now - self._step
        self._last = now
        if step.sampled:
            resident = resident_bytes()
            if resident is not None:
                step.row["memory"] = resident
            if "cuda" in {p.device.type for p in step.watched.parameters[:1]}:
                step.row["device_memory"] = float(torch.cuda.memory_allocated())


def resident_bytes() -> float | None:
    """Memory of this process that is in RAM, None where the system does not say."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        with open("/proc/self/statm", "rb") as file:
            return float(int(file.read().split()[1]) * PAGE)
    except (OSError, ValueError, IndexError):
        return None
