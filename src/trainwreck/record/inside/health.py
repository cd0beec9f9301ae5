"""Are loss, gradients and weights finite, and how large are gradients and updates: every step, on the CPU at once."""

from __future__ import annotations

import math
import time
from types import FrameType
from typing import Any

import torch

from . import alarms, callers
from .alarms import Alarm
from .probe import Backward, Probe, Step
from .watched import Watched, dense, foreach_norms

WEIGHTS_PER_STEP = 1 << 14
"""Elements of the weights whose finiteness is looked at after each step on the CPU (some 10 µs); of a larger model a
part of one parameter in turn, and all of it at sampled steps."""


SHARE = 0.004
"""Share of a step that gradient norms may take on the CPU (the goal for the whole recorder is 0.02)."""


class Health(Probe):
    """Norms by module in every row, and the alarms for what is not finite.

    Where norms of all gradients would cost too much, large ones are estimated from a part of their rows between sampled
    steps. Small ones (biases, norms) are always read whole, and a gradient that is not finite shows there first.
    """

    name = "gradient norms"
    _part = 1
    _last = _whole = _interval = 0.0

    def backward(self, moment: Backward) -> None:
        """The loss, before its backward: a CPU loss is looked at now, a device's at the flush."""
        value = moment.value
        if value is None or not self.recorder.alarms.once(alarms.NONFINITE_LOSS):
            return
        if moment.scale is not None and math.isinf(value):
            return  # an overflow of the scaled loss: the scaler will skip the step
        if not math.isfinite(value):
            self.recorder.alarm(nonfinite_loss(moment.step, value, moment.frame, moment.loss))

    def before_step(self, step: Step) -> None:
        """Gradient norms by module; the first parameter whose gradient is not finite."""
        watched = step.watched
        began = time.perf_counter()
        # Of the first optimizer only: a second one's norms come between its steps.
        columns, deferred, bad = watched.gradient_norms(1 if step.sampled or watched.index else self._part)
        if not watched.index:
            self._afford(step, began)
        step.row.update(watched.rates())
        step.row.update(columns)
        if deferred is not None:
            step.deferred.append(deferred)
        if step.sampled:
            watched.remember()
        if bad is not None and self.recorder.alarms.once(alarms.NONFINITE_GRADIENT):
            name, value = bad
            self.recorder.alarm(
                Alarm(
                    alarms.NONFINITE_GRADIENT,
                    "critical",
                    step.number,
                    value,
                    name,
                    f"the gradient of {name} is {value}",
                    "this step will put it into the weights",
                    "skip the step, or look at the loss terms and the batch of this step",
                    frame=callers.here(),
                    optimizer=step.optimizer,
                )
            )

    def _afford(self, step: Step, began: float) -> None:
        """Look at so many rows of large gradients that norms cost about ``SHARE`` of a step; at sampled ones at all."""
        now = time.perf_counter()
        interval, self._last = now - self._last, now
        if step.sampled:
            self._whole = now - began
        elif step.number > 5:
            self._interval = interval if not self._interval else 0.9 * self._interval + 0.1 * interval
        if step.sampled and self._interval and step.watched.on_cpu:
            share = self._whole / self._interval
            self._part = 1 if share < 2 * SHARE else min(16, 2 ** math.ceil(math.log2(share / SHARE)))

    def after_step(self, step: Step) -> None:
        """Update ratios at sampled steps; whether the weights are still finite."""
        watched = step.watched
        if not step.losses and step.number == 1 and "grad_norm" not in step.row:
            return
        if "grad_norm" not in step.row and not step.deferred and any(p.grad is not None for p in watched.parameters):
            step.row.update(watched.gradient_norms()[0])  # a closure made them
        if (moved := watched.moved()) is not None:
            step.deferred.append(moved)
        if watched.on_cpu and self.recorder.alarms.once(alarms.NONFINITE_WEIGHTS):
            self._weights(step)

    def _weights(self, step: Step) -> None:
        members = turn(step.watched, step.number, step.sampled)
        looked = [dense(step.watched.parameters[i].detach()) for i in members]
        if len(members) == 1:
            looked = [looked[0].flatten()[:WEIGHTS_PER_STEP]]
        norms = foreach_norms(looked)
        if not norms:
            return
        values = torch.stack(norms).tolist()
        if math.isfinite(sum(values)):
            return
        place, value = next((i, v) for i, v in zip(members, values, strict=True) if not math.isfinite(v))
        name = step.watched.names[place]
        gradient = step.row.get("grad_norm")
        finite = isinstance(gradient, float) and math.isfinite(gradient)
        after = "although its gradients are finite" if finite else "after a gradient that was not"
        self.recorder.alarm(
            Alarm(
                alarms.NONFINITE_WEIGHTS,
                "critical",
                step.number,
                value,
                name,
                f"{name} is no longer finite {after}",
                "every later loss will be NaN",
                "go back to a checkpoint before this step",
                frame=callers.here(),
                optimizer=step.optimizer,
            )
        )


def turn(watched: Watched, number: int, whole: bool) -> list[int]:
    """The parameters that are looked at after step ``number``: all of a small model, one of a large one in turn."""
    count = len(watched.parameters)
    return list(range(count)) if whole or watched.numel <= WEIGHTS_PER_STEP else [number % count]


def nonfinite_loss(step: int, value: float, frame: FrameType | None, loss: Any) -> Alarm:
    """The alarm for a loss that is NaN or infinite."""
    return Alarm(
        alarms.NONFINITE_LOSS,
        "critical",
        step,
        value,
        None,
        f"the loss is {value}",
        "its gradients will be NaN and the weights after them",
        "the step is kept for replay; look at the batch and the terms of the loss",
        frame=frame,
        loss=loss,
    )
