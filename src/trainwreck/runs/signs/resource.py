"""Speed and memory over a run."""

from __future__ import annotations

from collections.abc import Iterator

from trainwreck.core.evidence import Evidence
from trainwreck.runs.signs._curve import View, seen, show

FAMILY = "resource"
SLOWER = 0.5
"""End over early throughput; a judgement: jitter and evaluation pauses stay above."""
GROWTH = 0.1
"""Growth of memory over its level after the first tenth that is told, if it never stops; a judgement."""
MIN_POINTS = 10


def find(view: View) -> Iterator[Evidence]:
    """Throughput that decays, steps that get slower, memory that grows in a straight line."""
    import numpy as np

    for role, sign in (("throughput", 1), ("step-time", -1)):
        for curve in view.all(role)[:1]:
            if curve.n < MIN_POINTS or (curve.v <= 0).any():
                continue
            blocks = curve.blocks(10)
            early, late = float(np.median(blocks[1:4])), float(np.median(blocks[-3:]))
            speed = late / early if sign > 0 else early / late
            if speed < SLOWER:
                text = f"{curve.name} goes from {show(early)} to {show(late)}"
                yield seen("throughput-decays", text, curve.where(-1), speed)
                break
    for curve in view.all("memory"):
        blocks = curve.blocks(10)
        if curve.n < MIN_POINTS or len(blocks) < 6 or blocks[1] <= 0:
            continue
        rises = np.diff(blocks[1:])
        growth = float(blocks[-1] / blocks[1]) - 1
        even = float(rises.min()) > 0 and float(rises.max()) < 5 * float(np.median(rises))
        if growth > GROWTH and even:
            text = f"{curve.name} grows steadily from {show(float(blocks[1]))} to {show(float(blocks[-1]))}"
            yield seen("memory-grows", text, curve.where(-1), growth)
            break
