"""The coordinator: the clock of steps, the probes, what is written when; every fault of ours stays here.

Nothing is read from a device outside a flush; on the CPU losses and gradient norms are looked at every step.
"""

from __future__ import annotations

import os
import sys
import time
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from . import byhand, callers, lanes
from .alarms import Alarm, Alarms
from .amp import scale_of
from .contain import Faults
from .names import Names
from .pace import EARLY_STEPS, Pace
from .pending import read
from .probe import MOMENTS, Backward, Probe, Step, mean
from .probes import loaded
from .store import MAX_BYTES, Store
from .watched import Deferred, Watched

FLUSH_STEPS, FLUSH_SECONDS, FLUSH_MOST = 20, 0.5, 500
"""A flush comes after 20 steps and half a second, or 500 steps, or 10 seconds: what a ``kill -9`` can lose at most.
Half a second keeps the cost of a flush (about 1 ms) under 0.3% for the fastest loops."""
FLUSH_LATEST = 10.0
RESTING = 20
"""Steps of others after which an optimizer no longer leads: more than the critic's steps between two of a generator."""


class Recorder:
    """The recorder of one process. ``attach`` once; ``close`` at exit; ``forked`` in a forked child.

    ``step`` is the number of the step under way of the optimizer that steps most, from 1. ``options``: ``max_bytes``
    (of one rank's numbers), ``every_leaf`` (module outputs at every step), ``on_alarm`` (a shell command), ``stop_on``
    (``critical`` or ``warning``), ``quiet``.
    """

    def __init__(self, folder: str, options: dict[str, Any] | None = None) -> None:
        self.folder = folder
        self.options = options or {}
        self.off = False
        self.step = 1
        self.look = 0
        """A step that a probe wants to be sampled as well."""
        self.backwards = 0
        self.told: set[str] = set()
        """Kinds of events that are told once."""
        self.faults = Faults()
        self.names = Names()
        self.lead: Watched | None = None
        """The optimizer that what happens once a step goes by: the first, until it is gone or rests for long."""
        self._resting = 0
        self.pace = Pace()
        self.optimizers: weakref.WeakKeyDictionary[Any, Watched] = weakref.WeakKeyDictionary()
        self._aside: weakref.WeakKeyDictionary[Any, Watched] = weakref.WeakKeyDictionary()
        """Optimizers of other trainings than the first, which run in threads of their own."""
        self.on_alarm: list[Callable[[Alarm], None]] = []
        self.store = Store(
            folder,
            {"torch": str(torch.__version__), "argv": sys.argv, "python": sys.version.split()[0], "cwd": os.getcwd()},
            int(self.options.get("max_bytes", MAX_BYTES)),
        )
        self.alarms = Alarms(
            self.on_alarm,
            self._write_alarm,
            self.faults.add,
            self.options.get("on_alarm"),
            self.options.get("stop_on"),
            bool(self.options.get("quiet")),
        )
        self.faults.note = lambda part, text: self.store.event("recorder-fault", f"{part}: {text}", self.step)
        self.lanes = lanes.Lanes()
        self.by_hand: byhand.ByHand | None = byhand.ByHand(self)
        """Looks for updates without an optimizer; None once an optimizer has stepped."""
        self.made = False
        """Whether the program has made an optimizer of torch's."""
        self.beats = self.steps = 0
        """Signs of life (steps, backwards, batches), and steps, of which a thread of ours is the reader."""
        self.open: dict[int, Step] = {}
        self._latest: Watched | None = None
        """The optimizer that has stepped last."""
        self._deferred: list[tuple[str, dict[str, Any], list[Deferred]]] = []
        self._flushed = time.monotonic()
        self._pid = os.getpid()
        self._count = self._others = 0
        self.probes = loaded(self)
        self._calls: dict[str, list[tuple[str, Callable[..., None]]]] = {}
        self._often: dict[str, list[tuple[str, Callable[..., None]]]] = {}
        self._index()

    # the moments

    def attach(self) -> None:
        """Listen to every backward and every optimizer of the process."""
        for probe in self.probes:
            self._contained(probe.name, probe.attach)
        callers.watch_backward(self._backward)
        callers.watch_autograd(self._backward)
        register_optimizer_step_pre_hook(self._before)
        register_optimizer_step_post_hook(self._after)

    @property
    def columns(self) -> dict[str, Any]:
        """Columns of the calling thread's step to come, from what happens between steps: waiting for data, terms."""
        return self.lanes.mine().columns

    def _backward(self, tensor: Any, caller: FrameType | None, inputs: Any = None) -> None:
        """``tensor.backward`` has been asked for, or the gradient for ``inputs`` to be returned. Raises nothing."""
        if self.off or "losses" in self.faults.off:
            return
        try:
            self._take_backward(tensor, caller, inputs)
        except Exception as problem:
            self.faults.add("losses", problem)

    def _take_backward(self, tensor: Any, caller: FrameType | None, inputs: Any) -> None:
        if callers.modes_active():
            return
        self.beats += 1
        lane = self.lanes.mine()
        lane.backwards += 1
        lane.clock = time.perf_counter()
        step, scale = self.step, None
        if lane.scale is not None:
            scaler, lane.scale = lane.scale(), None
            scale = scale_of(scaler) if scaler is not None else None
        if self.lanes.aside_backward() or (inputs is not None and (self.made or self.by_hand is None)):
            self._keep_loss(tensor, scale, lane, inputs)
            return
        if self.by_hand is not None and not self.made:
            try:
                self.by_hand.before(tensor, inputs, caller)
            except Exception as problem:
                self.by_hand = None
                self.faults.add("updates by hand", problem)
            step = self.step
        self.backwards += 1
        value = self._keep_loss(tensor, scale, lane, inputs)
        # The first steps of an optimizer that begins later (a second phase, a resume) are early ones as well.
        sampled = self.sampled(step) or (self._latest is not None and self._latest.steps < EARLY_STEPS)
        began = self.pace.begin(sampled)
        frame = callers.user_frame(caller)
        moment = Backward(tensor, frame, self.backwards, step, sampled, scale, value, caller, inputs is None)
        ordinary = value is None or value - value == 0.0  # neither NaN nor infinite
        self._tell("backward", moment, often=ordinary and not sampled)
        self.pace.end(began)

    def _keep_loss(self, tensor: Any, scale: Any, lane: lanes.Lane, inputs: Any) -> float | None:
        """Keep the loss for the step to come; its value where it lies on the CPU."""
        kept = lane.losses if inputs is None else lane.returned
        if tensor.numel() != 1 or len(kept) >= 4096:
            return None
        value = float(tensor.item()) if tensor.is_cpu else None
        # A copy: ``loss /= k`` after the backward would change what a reference shows.
        copy = value if value is not None else tensor.detach().reshape(()).clone()
        kept.append(copy if scale is None else copy / scale)
        return value

    def _before(self, optimizer: Any, _: Any, __: Any) -> None:
        if not self.off:
            self._contained("steps", self._take_step, optimizer)

    def _take_step(self, optimizer: Any) -> None:
        if callers.modes_active():
            return
        clock = time.perf_counter()
        if self.lanes.aside_step(optimizer, self.optimizers):
            self._step_aside(optimizer, clock)
            return
        watched = self._latest
        if watched is None or watched.reference() is not optimizer:
            watched = self.watched_of(optimizer)
        self.open_step(watched, optimizer, clock)

    def open_step(self, watched: Watched, optimizer: Any, clock: float) -> Step:
        """Gradients are complete: tell the probes."""
        watched.refresh(optimizer, self.names)
        self._resting = 0 if watched is self.lead else self._resting + 1
        if self.lead is None or self._resting > RESTING or self.lead.reference() is None:
            self.lead = watched
        number = watched.steps + 1
        if number > self.step:
            self.step = number
        losses = self.lanes.take()
        sampled = self.sampled(number)
        began = self.pace.begin(sampled)
        backward = self.lanes.mine().clock
        step = Step(optimizer, watched, number, sampled, {"step": number}, losses, [], clock, backward)
        self.open[id(optimizer)] = step
        self._tell("before_step", step, often=not sampled)
        self.pace.end(began)
        return step

    def watched_of(self, optimizer: Any) -> Watched:
        """What is known of an optimizer, from its first step on."""
        watched = self.optimizers.get(optimizer)
        if watched is None and optimizer in self._aside:
            watched = self.optimizers[optimizer] = self._aside.pop(optimizer)  # the first training is over
        if watched is None:
            if self.by_hand is not None and not isinstance(optimizer, byhand.Update):
                self.by_hand = None
            watched = self.optimizers[optimizer] = Watched(optimizer, self._count, self.names)
            self._count += 1
        return watched

    def _step_aside(self, optimizer: Any, clock: float) -> None:
        """A step of another training: its loss, learning rates and gradient norms in rows of its own."""
        watched = self._aside.get(optimizer)
        if watched is None:
            self._others += 1
            watched = self._aside[optimizer] = Watched(optimizer, self._others, self.names)
            watched.table = f"thread{self._others}"
            if "threads" not in self.told:
                self.told.add("threads")
                text = "several trainings run at once in threads of this process: only the first is looked at closely"
                self.event("threads", text, None)
        watched.refresh(optimizer, self.names)
        number = watched.steps + 1
        step = Step(optimizer, watched, number, False, {}, self.lanes.take(), [], clock, 0.0, True)
        step.row, step.deferred = watched.plain_row(number)
        self.open[id(optimizer)] = step

    def _after(self, optimizer: Any, _: Any, __: Any) -> None:
        step = self.open.pop(id(optimizer), None)
        if self.off or step is None:
            return
        self._contained("steps", self.close_step, step)
        if self.alarms.stopping is not None:
            callers.interrupt()

    def close_step(self, step: Step) -> None:
        """Weights are new: tell the probes, and keep the row."""
        step.watched.steps = step.number
        self.beats += 1
        self.steps += 1
        if not step.losses:
            step.losses = self.lanes.take()  # a closure ran backward within the step
        self.open.pop(id(step.optimizer), None)
        if not step.aside:
            self._latest = step.watched
            began = self.pace.begin(step.sampled)
            near = step.sampled or step.number <= 10 or self.sampled(step.number + 1)
            self._tell("after_step", step, often=not near)
            self.pace.end(began)
            if step.sampled and step.number == self.step:
                self.pace.adapt(step.number)
        self._keep(step)
        if step.aside and self.lanes.several:
            return  # another training's
        waiting, since = len(self._deferred), time.monotonic() - self._flushed
        if (waiting >= FLUSH_STEPS and since >= FLUSH_SECONDS) or waiting >= FLUSH_MOST or since >= FLUSH_LATEST:
            self.flush()
        if step.number == self.step:
            self.step += 1

    def _keep(self, step: Step) -> None:
        row = step.row
        if columns := self.lanes.columns():
            row.update(columns)
        if step.losses:
            count = len(step.losses)
            row["loss"], row["backwards"] = step.losses[0] if count == 1 else mean(step.losses), count
        self._deferred.append((step.watched.table, row, step.deferred))

    # what probes may ask and say

    def sampled(self, step: int) -> bool:
        """True for the steps at which dearer things are looked at."""
        return step % self.pace.stride == 0 or step <= EARLY_STEPS or step == self.look

    def event(self, kind: str, text: str, module: str | None = None, **facts: Any) -> None:
        """Write an event: something that a reader should know. ``facts``: value, path, line, … as plain JSON."""
        self.store.event(kind, text, facts.pop("step", self.step), module=module, **facts)

    def alarm(self, alarm: Alarm) -> None:
        """Raise ``alarm`` once: event, one line on standard error, callbacks. Samples are dense again after it."""
        self.pace.reset()
        self.alarms.raise_(alarm)

    def row(self, table: str, values: dict[str, Any]) -> None:
        """Keep one row of a table of its own (``values`` needs ``step``); tensors in it are read at the next flush."""
        self._deferred.append((table, dict(values), []))

    def drop_losses(self) -> None:
        """Forget the losses of a step that was not taken."""
        self.lanes.mine().losses.clear()

    def flush(self) -> None:
        """Read what is unread, in one transfer a device, and write it."""
        self._tell("flush")
        self._contained("writing", self._write)

    def close(self) -> None:
        """Write what is left. Does nothing in a forked child that recorded nothing of its own."""
        if not self.off and os.getpid() == self._pid:
            self._contained("writing", self._end)
            self.faults.last_words("writing")
        self.off = True

    def _end(self) -> None:
        if self.by_hand is not None:
            self._contained("steps", self.by_hand.finish)
        self._tell("close")
        self.flush()
        if self.store.base is not None:
            failed = sys.exc_info()[0] is not None or getattr(sys, "last_value", None) is not None
            self.event("ended", "the process ended by itself", failed=failed or None)
        self.store.close()

    def close_child(self) -> None:
        """In a forked child at its end: close, unless it recorded nothing of its own."""
        if self._deferred or self.store.base is not None:
            self.close()

    def leave(self, why: str) -> None:
        """Write what is unwritten: the process is about to end without a word to ``atexit``."""
        if not self.off and os.getpid() == self._pid and (self._deferred or self.store.base is not None):
            self.flush()
            self.event("ended", why)

    def forked(self) -> None:
        """In a forked child: it is a recorder of its own, and silent unless the child takes optimizer steps."""
        self._pid = os.getpid()
        self.store.forget()
        self._deferred.clear()
        self.lanes = lanes.Lanes()
        self.by_hand = byhand.ByHand(self)
        self.open.clear()
        self.optimizers.clear()
        self._aside.clear()
        self._latest = self.lead = None
        self._count, self._others, self.step, self.backwards = 0, 0, 1, 0

    # below the surface

    def _index(self) -> None:
        """For each moment the probes that need it, and those that need it at every step."""
        for moment in MOMENTS:
            mine = [p for p in self.probes if getattr(type(p), moment) is not getattr(Probe, moment)]
            self._calls[moment] = [(p.name, getattr(p, moment)) for p in mine]
            self._often[moment] = [(p.name, getattr(p, moment)) for p in mine if moment not in p.rarely]

    def _tell(self, moment: str, *arguments: Any, often: bool = False) -> None:
        """Call the probes; ``often``: only those that need this moment at every step."""
        off = self.faults.off
        enabled = torch.is_grad_enabled()
        torch._C._set_grad_enabled(False)  # what no_grad does, at a tenth of its price
        try:
            for name, call in (self._often if often else self._calls)[moment]:
                if name in off:
                    continue
                try:
                    call(*arguments)
                except Exception as problem:
                    self.faults.add(name, problem)
        finally:
            torch._C._set_grad_enabled(enabled)

    def _contained(self, part: str, call: Callable[..., None], *arguments: Any) -> None:
        if part in self.faults.off:
            return
        try:
            call(*arguments)
        except Exception as problem:
            self.faults.add(part, problem)

    def _write(self) -> None:
        rows, self._deferred = self._deferred, []
        self._flushed = time.monotonic()
        for table, row in read(rows):
            self.store.row(table, row)
        self.store.flush()

    def _write_alarm(self, alarm: Alarm) -> None:
        frame = alarm.frame
        place = callers.place(frame)
        self.store.event(
            f"alarm-{alarm.kind}",
            alarm.text,
            alarm.step,
            level=alarm.level,
            module=alarm.module,
            value=str(alarm.value) if alarm.value is not None else None,
            predicts=alarm.predicts or None,
            advice=alarm.advice or None,
            path=place[0] if place else None,
            line=place[1] if place else None,
        )
        self.flush()
