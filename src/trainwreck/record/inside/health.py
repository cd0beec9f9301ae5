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
from .ranks import in_a_group
from .watched import Watched, dense, foreach_norms

WEIGHTS_PER_STEP = 1 << 14
"""Elements of the weights whose finiteness is looked at after each step on the CPU (some 10 µs); of a larger model a
part of one parameter in turn, and all of it at sampled steps."""
SHARE = 0.0025
"""Share of a step that gradient norms may take on the CPU (the goal for the whole recorder is 0.02)."""
EVERY, EVERY_AFTER = 4, 100
"""Where even that is too dear, norms are taken at every 4th step once 100 steps are done (a judgement: the history that
alarms learn from has begun by then), and between them a few small gradients are looked at for what is not finite."""
SMALLEST = 16
"""Large gradients are never estimated from less than one in so many of their rows."""
WEIGHTS_EVERY = 4
"""Steps between two looks at a part of the weights of a large model. What they would miss is told by the next loss."""


class Health(Probe):
    """Norms by module in every row, and the alarms for what is not finite.

    Where norms of all gradients would cost too much, large ones are estimated from a part of their rows between sampled
    steps. Small ones (biases, norms) are always read whole, and a gradient that is not finite shows there first.
    """

    name = "gradient norms"
    rarely = frozenset(("backward",))
    _part = 1
    _whole = _time = 0.0
    """Processor seconds of the last whole look, and the clock at it."""
    _sampled = 0
    _every = 1
    _partly = 0.0
    """Seconds of the first look after a sampled step."""
    _skipped = False

    def backward(self, moment: Backward) -> None:
        """The loss, before its backward: a CPU loss is looked at now, a device's at the flush."""
        value = moment.value
        if value is None or math.isfinite(value) or not self.recorder.alarms.once(alarms.NONFINITE_LOSS):
            return
        if moment.scale is not None and math.isinf(value):
            return  # an overflow of the scaled loss: the scaler will skip the step
        self.recorder.alarm(nonfinite_loss(moment.step, value, moment.frame, moment.loss))

    def before_step(self, step: Step) -> None:
        """Gradient norms by module; the first parameter whose gradient is not finite."""
        watched, row = step.watched, step.row
        # Of the first optimizer only: a second one's norms come between its steps.
        first = not watched.index
        if first and step.sampled:
            began = time.process_time()
            total, columns, bad = watched.gradient_norms()
            self._whole = time.process_time() - began
            self._afford(step)
        elif first and self._every > 1 and step.number % self._every:
            self._skipped = True
            bad = watched.guarded()
            total = columns = None
        else:
            total, columns, bad = watched.gradient_norms(self._part if first else 1)
            if first and not self._partly:
                self._partly = time.perf_counter() - step.began
        row.update(watched.rates())
        if total is not None:
            row["grad_norm"] = total
        if columns is not None:
            step.deferred.append(columns)
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

    def _afford(self, step: Step) -> None:
        """After a whole look, at a sampled step: how much of the gradients is looked at until the next one."""
        now, past = time.process_time(), step.number - self._sampled
        each = (now - self._time) / max(past, 1)
        self._time, self._sampled = now, step.number
        if past > 1 and step.watched.on_cpu and each > 0.0:
            share = self._whole / each
            # Ranks compare their norms, so all of them look at all of it.
            whole = share < 2 * SHARE or in_a_group()
            dear = step.watched.plain and self._partly > SHARE * each and step.number >= EVERY_AFTER
            self._every = EVERY if dear and not whole else 1
            self._part = 1 if whole else min(SMALLEST, 2 ** math.ceil(math.log2(share / SHARE)))
            self._partly = 0.0
            step.watched.cut(self._part)

    def after_step(self, step: Step) -> None:
        """Update ratios at sampled steps; whether the weights are still finite."""
        watched = step.watched
        if self._skipped:
            self._skipped = False
        elif "grad_norm" not in step.row and not step.deferred:
            if not step.losses and step.number == 1:
                return
            total, columns, _ = watched.gradient_norms()  # a closure made them
            if total is not None and columns is not None:
                step.row["grad_norm"] = total
                step.deferred.append(columns)
        if (moved := watched.moved()) is not None:
            step.deferred.append(moved)
        whole = step.sampled or watched.numel <= WEIGHTS_PER_STEP
        due = watched.on_cpu and (whole or not step.number % WEIGHTS_EVERY)
        if due and self.recorder.alarms.once(alarms.NONFINITE_WEIGHTS):
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
    return list(range(count)) if whole or watched.numel <= WEIGHTS_PER_STEP else [number // WEIGHTS_EVERY % count]


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
