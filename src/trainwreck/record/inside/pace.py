"""Which steps are sampled: the first ones, and of the later ones so few that samples take a small share of the time.

What a sampled step costs is measured as it runs, in processor time of the process, and the stride follows.
"""

from __future__ import annotations

import time

EARLY_STEPS, STRIDE, WIDEST = 5, 20, 320
"""Steps 1 to 5 and every 20th are sampled, of a run whose steps are short beside the samples every 320th at least."""
DENSE_STEPS = 400
"""Steps up to which the stride stays: what is judged from a number of samples has had twenty of them by then."""
SHARE = 0.01
"""Share of the time that samples may take: half of the goal for the whole recorder, 0.02."""


class Pace:
    """The stride of sampled steps. ``spent``: processor seconds that the sampled step under way has cost so far."""

    def __init__(self) -> None:
        self.stride = STRIDE
        self.spent = 0.0
        self._last = time.process_time()

    def begin(self, sampled: bool) -> float:
        """The processor time at the beginning of a sampled step's probes; 0 for other steps, which cost no look."""
        return time.process_time() if sampled else 0.0

    def end(self, began: float) -> None:
        """Add what has been spent since ``begin``."""
        if began:
            self.spent += time.process_time() - began

    def adapt(self, step: int) -> None:
        """After the sampled step ``step``: double the stride while samples are too dear, halve it where they are not.

        A stride is always a multiple of the next smaller one, so widening it skips steps and shifts none.
        """
        now = time.process_time()
        spent, elapsed = self.spent, now - self._last
        self.spent, self._last = 0.0, now
        if step < DENSE_STEPS:
            return
        if spent > SHARE * elapsed:
            self.stride = min(WIDEST, 2 * self.stride)
        elif self.stride > STRIDE and spent < 0.4 * SHARE * elapsed:
            self.stride //= 2

    def reset(self) -> None:
        """Every 20th step again: after an alarm."""
        self.stride, self._last, self.spent = STRIDE, time.process_time(), 0.0
