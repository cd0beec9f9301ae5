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
    steps ``memory_forward``, ``memory_backward`` and ``memory``, after the step (bytes resident), and the same with
    ``device_`` before them (bytes allocated). On a device these are times of launching,
    except over many steps. The batches' probe adds ``data_seconds``."""

    name = "times"
    rarely = frozenset(("backward", "before_step"))

    def __init__(self, recorder: Any) -> None:
        super().__init__(recorder)
        self._last = time.perf_counter()

    def after_step(self, step: Step) -> None:
        """The step is done. Its backward ended before it, and with it clipping and the like."""
        now, row = time.perf_counter(), step.row
        row["seconds"], row["step_seconds"] = now - self._last, now - step.began
        if step.backward > self._last:
            row["backward_seconds"] = step.began - step.backward
        self._last = now
        if step.sampled:
            _memory(row, "memory", "cuda" in {p.device.type for p in step.watched.parameters[:1]})

    def backward(self, moment: Backward) -> None:
        """The forward is over: its activations are held. Of several micro-batches the last one's stays."""
        if moment.sampled:
            _memory(self.recorder.columns, "memory_forward", moment.loss.device.type == "cuda")

    def before_step(self, step: Step) -> None:
        """The gradients are there, the activations gone."""
        if step.sampled:
            _memory(step.row, "memory_backward", "cuda" in {p.device.type for p in step.watched.parameters[:1]})


def _memory(row: dict[str, Any], name: str, cuda: bool) -> None:
    resident = resident_bytes()
    if resident is not None:
        row[name] = resident
    if cuda:
        row[f"device_{name}"] = float(torch.cuda.memory_allocated())


def resident_bytes() -> float | None:
    """Memory of this process that is in RAM, None where the system does not say."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        with open("/proc/self/statm", "rb") as file:
            return float(int(file.read().split()[1]) * PAGE)
    except (OSError, ValueError, IndexError):
        return None
