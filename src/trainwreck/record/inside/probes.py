"""The probes of a recorder, by name."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from .probe import Probe

if TYPE_CHECKING:
    from .recorder import Recorder

PROBES = (
    "health:Health",
    "wiring:Wiring",
    "calls:Calls",
    "origins:Origins",
    "evaluation:Evaluation",
    "streams:Streams",
    "reach:Reach",
    "frames:Frames",
    "objective:Objective",
    "arguments:Arguments",
    "leaks:Leaks",
    "attention:Attention",
    "samples:Samples",
    "lines:Lines",
    "batches:Batches",
    "sampling:Sampling",
    "copies:Copies",
    "opposed:Opposed",
    "schedules:Schedules",
    "adaptive:Adaptive",
    "policy:Policy",
    "kept:Kept",
    "amp:LossScale",
    "timing:Timing",
    "ranks:Ranks",
    "stalls:Stalls",
    "trends:Trends",
    "console:Console",
    "capture:Capture",
)
"""``module:Class`` of every probe; one that is missing or fails to load is left out and noted."""


def loaded(recorder: Recorder) -> list[Probe]:
    """A probe of each kind; one that fails to load is noted, one that is not there is left out."""
    found: list[Probe] = []
    for name in PROBES:
        module, _, cls = name.partition(":")
        try:
            found.append(getattr(importlib.import_module(f".{module}", __package__), cls)(recorder))
        except ModuleNotFoundError as problem:
            if not str(problem.name).endswith(f".{module}"):
                recorder.faults.add(module, problem)
        except Exception as problem:
            recorder.faults.add(module, problem)
    return found
