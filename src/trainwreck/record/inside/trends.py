"""Online alarms from the run's own history: spikes of loss and gradient, gradients that vanish, memory that grows."""

from __future__ import annotations

import math
from collections import deque
from itertools import pairwise
from typing import Any

from . import alarms
from .alarms import Alarm
from .probe import Probe, Step, mean

HISTORY = 200
"""Steps that a threshold is learned from."""
LEAST = 50
"""Steps before anything is judged: loss and gradients of the first ones fall by themselves."""
RENEWED = 25
"""Steps between two computations of the thresholds."""
SPIKE = 12.0
"""Deviations (1.4826 times the median absolute deviation) above the median: losses of single batches have long tails,
and of the healthy runs recorded for the tests none comes to 10."""
SPIKE_RATIO = 2.0
"""And this many times the median: a flat history makes every deviation small."""
EXPLODES = 100.0
"""Times the median of the gradient norm; the seeds' fixed threshold, taken relative to the run itself."""
VANISHES = 1e-8
"""Gradient norm below which nothing is learned in single precision (the seeds' fixed threshold)."""
GROWS = 2.0
"""Memory at the end over that after the first ``SETTLED`` looks, with growth in nearly every look between."""
SETTLED, LOOKS = 4, 12


class Trends(Probe):
    """Keeps short histories of the first optimizer's loss and gradient norm, and of the memory."""

    name = "trends"

    def __init__(self, recorder: Any) -> None:
        super().__init__(recorder)
        self._loss = History(SPIKE_RATIO)
        self._norm = History(EXPLODES)
        self._memory: list[float] = []
        self._vanished = 0

    def after_step(self, step: Step) -> None:
        """Judge the newest values; only those that are numbers already (on the CPU)."""
        if step.watched.index:
            return
        norm, losses = step.row.get("grad_norm"), step.losses
        if type(norm) is float:
            if self._norm.far(norm) or norm < VANISHES or self._vanished:
                self._gradient(step, norm)
            self._norm.add(norm)
        loss = losses[0] if len(losses) == 1 else mean(losses)
        if type(loss) is float:
            if self._loss.far(loss):
                self._spike(step, loss)
            self._loss.add(loss)
        memory = step.row.get("memory")
        if isinstance(memory, float):
            self._memory.append(memory)
            self._growth(step)

    def _spike(self, step: Step, loss: float) -> None:
        text = f"the loss jumps to {loss:.4g} from about {self._loss.median:.4g}"
        predicts, advice = "divergence, unless the next steps come back", "look at this batch and the learning rate"
        self._alarm(alarms.LOSS_SPIKE, step, loss, text, predicts, advice)

    def _gradient(self, step: Step, norm: float) -> None:
        if self._norm.far(norm):
            text = f"the gradient norm jumps to {norm:.4g} from about {self._norm.median:.4g}"
            predicts, advice = "a loss spike within a few steps", "clip gradients; look at this batch"
            self._alarm(alarms.GRADIENT_SPIKE, step, norm, text, predicts, advice)
        self._vanished = self._vanished + 1 if norm < VANISHES else 0
        if self._vanished == LEAST:
            text = f"the gradient norm has been below {VANISHES:g} for {LEAST} steps"
            self._alarm(
                alarms.GRADIENT_VANISHES, step, norm, text, "nothing is learned any more", "look for saturated modules"
            )

    def _growth(self, step: Step) -> None:
        looks = self._memory
        if len(looks) > 400:
            looks[:] = looks[::2]
        if len(looks) < SETTLED + LOOKS or len(looks) % 5:
            return
        base, now = looks[SETTLED], looks[-1]
        later = looks[SETTLED:]
        rising = sum(b > a for a, b in pairwise(later)) / (len(later) - 1)
        if now > GROWS * base and rising > 0.8:
            text = f"memory has grown from {base / 2**20:.0f} to {now / 2**20:.0f} MiB, step after step"
            predicts, advice = (
                "out of memory",
                "look for losses or outputs kept with their graph: use .item() or .detach()",
            )
            self._alarm(alarms.MEMORY_GROWS, step, now, text, predicts, advice)

    def _alarm(self, kind: str, step: Step, value: float, text: str, predicts: str, advice: str) -> None:
        self.recorder.alarm(
            Alarm(kind, "warning", step.number, value, None, text, predicts, advice, optimizer=step.optimizer)
        )


class History:
    """The last values, their median and what lies far above it. ``ratio``: how many times the median is far."""

    def __init__(self, ratio: float) -> None:
        self._values: deque[float] = deque(maxlen=HISTORY)
        self._ratio = ratio
        self._count = 0
        self.median = math.nan
        self._limit = math.inf
        """What a value must exceed to stand out; infinite while too little is known."""

    def far(self, value: float) -> bool:
        """True for a number far above the others."""
        return self._limit < value < math.inf

    def add(self, value: float) -> None:
        """Take ``value`` in."""
        if value - value == 0.0:  # neither NaN nor infinite
            self._values.append(value)
        self._count += 1
        if not self._count % RENEWED and self._count >= LEAST and self._values:
            ordered = sorted(self._values)
            self.median = ordered[len(ordered) // 2]
            gaps = sorted(abs(v - self.median) for v in ordered)
            spread = 1.4826 * gaps[len(gaps) // 2]
            self._limit = max(self.median + SPIKE * spread, self._ratio * abs(self.median), 1e-6)
