"""Trainings that run in threads of one process: what belongs to which.

Losses, columns and loss scales are kept for each thread by itself, so those of two trainings are never mixed. Probes
look at one training only, the first that goes backward; the others are kept as rows of their own (table
``threadN``). A thread that only steps, or only goes backward, belongs to the same training as its counterpart.
"""

from __future__ import annotations

import _thread
import sys
from collections.abc import Container
from typing import Any

RESTING = 20
"""Steps of another thread without one of the first, after which the first no longer leads (a judgement)."""
MANY = 64
"""Threads that are remembered; those that have ended are forgotten first."""


class Lane:
    """What one thread has gathered for its next step."""

    __slots__ = ("backwards", "clock", "columns", "losses", "returned", "scale")

    def __init__(self) -> None:
        self.losses: list[Any] = []
        """Losses of the backwards since the last step."""
        self.returned: list[Any] = []
        """Losses whose gradients were returned (``torch.autograd.grad``): a step's only where there are no others."""
        self.columns: dict[str, Any] = {}
        """Columns of the step to come, from what happens between steps."""
        self.scale: Any = None
        """A weak reference to the scaler of the loss whose backward comes next."""
        self.clock = 0.0
        """``time.perf_counter()`` at the last backward."""
        self.backwards = 0


class Lanes:
    """The lanes of a process. ``first`` is the thread whose training the probes look at, 0 before there is one."""

    def __init__(self) -> None:
        self.first = 0
        self.stepping = 0
        """The thread that the first training takes its steps in; 0 before there is one."""
        self.several = False
        """Whether two trainings have run at the same time."""
        self._lanes: dict[int, Lane] = {}
        self._resting = 0

    def mine(self) -> Lane:
        """That of the calling thread."""
        ident = _thread.get_ident()
        lane = self._lanes.get(ident)
        if lane is None:
            if len(self._lanes) >= MANY:
                alive = sys._current_frames()
                self._lanes = {i: kept for i, kept in self._lanes.items() if i in alive}
            lane = self._lanes[ident] = Lane()
        return lane

    def aside_backward(self) -> bool:
        """Whether the backward under way belongs to another training than the first."""
        ident = _thread.get_ident()
        if not self.first:
            self.first = ident
        return ident != self.first

    def aside_step(self, optimizer: Any, known: Container[Any]) -> bool:
        """Whether the step under way does; ``known`` are the optimizers of the first training."""
        ident = _thread.get_ident()
        if ident == self.first or not self.first:
            self.first = self.stepping = ident
            self._resting = 0
            return False
        if not self.mine().backwards:
            self.stepping = ident
            return False  # it works on what others have gathered
        self._resting += 1
        if optimizer in known or self._resting > RESTING or self.first not in sys._current_frames():
            self.first = self.stepping = ident
            self._resting = 0
            return False
        self.several = True
        return True

    def take(self) -> list[Any]:
        """The losses of the step under way: the thread's own, or those of threads that only go backward."""
        lane = self.mine()
        if lane.losses:
            losses, lane.losses = lane.losses, []
            if lane.returned:
                lane.returned = []
            return losses
        if lane.backwards or self.several:
            losses, lane.returned = lane.returned, []
            return losses
        others = list(self._lanes.values())
        losses = [x for other in others for x in other.losses] or [x for other in others for x in other.returned]
        for other in others:
            other.losses, other.returned = [], []
        return losses

    def columns(self) -> dict[str, Any]:
        """The columns for the row under way, which are empty after that."""
        lane = self.mine()
        found, lane.columns = lane.columns, {}
        return found
