"""The coordinator: the clock of steps, the probes, what is written when; every fault of ours stays here.

Nothing is read from a device outside a flush; on the CPU losses and gradient norms are looked at every step.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from . import callers
from .alarms import Alarm, Alarms
from .amp import scale_of
from .contain import Faults
from .names import Names
from .pace import EARLY_STEPS, Pace
from .probe import MOMENTS, Backward, Probe, Step, mean
from .store import MAX_BYTES, Store
from .watched import Deferred, Watched

FLUSH_STEPS, FLUSH_SECONDS, FLUSH_MOST = 20, 0.5, 500
"""A flush comes after 20 steps and half a second, or 500 steps, or 10 seconds: what a ``kill -9`` can lose at most.
Half a second keeps the cost of a flush (about 1 ms) under 0.3% for the fastest loops."""
FLUSH_LATEST = 10.0
RESTING = 20
"""Steps of others after which an optimizer no longer leads: more than the critic's steps between two of a generator."""
PROBES = (
    "health:Health",
    "wiring:Wiring",
    "calls:Calls",
    "origins:Origins",
    "evaluation:Evaluation",
    "reach:Reach",
    "frames:Frames",
    "objective:Objective",
    "attention:Attention",
    "lines:Lines",
    "batches:Batches",
    "sampling:Sampling",
    "copies:Copies",
    "schedules:Schedules",
    "policy:Policy",
    "kept:Kept",
    "amp:LossScale",
    "timing:Timing",
    "ranks:Ranks",
    "trends:Trends",
    "capture:Capture",
)
"""``module:Class`` of every probe; one that is missing or fails to load is left out and noted."""


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
        self.columns: dict[str, Any] = {}
        """Columns of the step to come, from what happens between steps: waiting for data, terms of the loss."""
        self.scale: weakref.ref[Any] | None = None
        """The scaler of the loss whose backward comes next, set by the probe of loss scaling."""
        self._losses: list[Any] = []
        self._open: dict[int, Step] = {}
        self._latest: Watched | None = None
        """The optimizer that has stepped last."""
        self._clock = 0.0
        """``time.perf_counter()`` at the last backward."""
        self._deferred: list[tuple[str, dict[str, Any], list[Deferred]]] = []
        self._flushed = time.monotonic()
        self._pid = os.getpid()
        self._count = 0
        self.probes = self._load_probes()
        self._calls: dict[str, list[tuple[str, Callable[..., None]]]] = {}
        self._often: dict[str, list[tuple[str, Callable[..., None]]]] = {}
        self._index()

    # the moments

    def attach(self) -> None:
        """Listen to every backward and every optimizer of the process."""
        for probe in self.probes:
            self._contained(probe.name, probe.attach)
        callers.watch_backward(self._backward)
        register_optimizer_step_pre_hook(self._before)
        register_optimizer_step_post_hook(self._after)

    def _backward(self, tensor: Any, caller: FrameType | None) -> None:
        """``tensor.backward`` has been asked for. Raises nothing."""
        if self.off or "losses" in self.faults.off:
            return
        try:
            self._take_backward(tensor, caller)
        except Exception as problem:
            self._fault("losses", problem)

    def _take_backward(self, tensor: Any, caller: FrameType | None) -> None:
        if callers.modes_active():
            return
        self._clock = time.perf_counter()
        self.backwards += 1
        step, scale = self.step, None
        if self.scale is not None:
            scaler, self.scale = self.scale(), None
            scale = scale_of(scaler) if scaler is not None else None
        value = self._keep_loss(tensor, scale)
        # The first steps of an optimizer that begins later (a second phase, a resume) are early ones as well.
        sampled = self.sampled(step) or (self._latest is not None and self._latest.steps < EARLY_STEPS)
        began = self.pace.begin(sampled)
        frame = callers.user_frame(caller)
        moment = Backward(tensor, frame, self.backwards, step, sampled, scale, value, caller)
        ordinary = value is None or value - value == 0.0  # neither NaN nor infinite
        self._tell("backward", moment, often=ordinary and not sampled)
        self.pace.end(began)

    def _keep_loss(self, tensor: Any, scale: Any) -> float | None:
        """Keep the loss for the step to come; its value where it lies on the CPU."""
        if tensor.numel() != 1 or len(self._losses) >= 4096:
            return None
        value = float(tensor.item()) if tensor.is_cpu else None
        # A copy: ``loss /= k`` after the backward would change what a reference shows.
        kept = value if value is not None else tensor.detach().reshape(()).clone()
        self._losses.append(kept if scale is None else kept / scale)
        return value

    def _before(self, optimizer: Any, _: Any, __: Any) -> None:
        if not self.off:
            self._contained("steps", self._take_step, optimizer)

    def _take_step(self, optimizer: Any) -> None:
        if callers.modes_active():
            return
        clock = time.perf_counter()
        watched = self._latest
        if watched is None or watched.reference() is not optimizer:
            watched = self._watched(optimizer)
        watched.refresh(optimizer, self.names)
        self._resting = 0 if watched is self.lead else self._resting + 1
        if self.lead is None or self._resting > RESTING or self.lead.reference() is None:
            self.lead = watched
        number = watched.steps + 1
        if number > self.step:
            self.step = number
        losses, self._losses = self._losses, []
        sampled = self.sampled(number)
        began = self.pace.begin(sampled)
        step = Step(optimizer, watched, number, sampled, {"step": number}, losses, [], clock, self._clock)
        self._open[id(optimizer)] = step
        self._tell("before_step", step, often=not sampled)
        self.pace.end(began)

    def _watched(self, optimizer: Any) -> Watched:
        watched = self.optimizers.get(optimizer)
        if watched is None:
            watched = self.optimizers[optimizer] = Watched(optimizer, self._count, self.names)
            self._count += 1
        return watched

    def _after(self, optimizer: Any, _: Any, __: Any) -> None:
        step = self._open.pop(id(optimizer), None)
        if self.off or step is None:
            return
        self._contained("steps", self._close_step, step)
        if self.alarms.stopping is not None:
            callers.interrupt()

    def _close_step(self, step: Step) -> None:
        step.watched.steps = step.number
        self._latest = step.watched
        if self._losses and not step.losses:
            step.losses, self._losses = self._losses, []  # a closure ran backward within the step
        began = self.pace.begin(step.sampled)
        near = step.sampled or step.number <= 10 or self.sampled(step.number + 1)
        self._tell("after_step", step, often=not near)
        self.pace.end(began)
        if step.sampled and step.number == self.step:
            self.pace.adapt(step.number)
        self._finish(step)
        if step.number == self.step:
            self.step += 1

    def _finish(self, step: Step) -> None:
        row = step.row
        if self.columns:
            row.update(self.columns)
            self.columns = {}
        if step.losses:
            count = len(step.losses)
            row["loss"], row["backwards"] = step.losses[0] if count == 1 else mean(step.losses), count
        self._deferred.append((step.watched.table, row, step.deferred))
        waiting, since = len(self._deferred), time.monotonic() - self._flushed
        if (waiting >= FLUSH_STEPS and since >= FLUSH_SECONDS) or waiting >= FLUSH_MOST or since >= FLUSH_LATEST:
            self.flush()

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
        self._losses.clear()

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
        self._tell("close")
        self.flush()
        if self.store.base is not None:
            self.event("ended", "the process ended by itself")
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
        self._losses.clear()
        self._open.clear()
        self.optimizers.clear()
        self._latest = self.lead = None
        self._count, self.step, self.backwards = 0, 1, 0

    # below the surface

    def _load_probes(self) -> list[Probe]:
        found: list[Probe] = []
        for name in PROBES:
            module, _, cls = name.partition(":")
            try:
                found.append(getattr(importlib.import_module(f".{module}", __package__), cls)(self))
            except ModuleNotFoundError as problem:
                if not str(problem.name).endswith(f".{module}"):
                    self.faults.add(module, problem)
            except Exception as problem:
                self.faults.add(module, problem)
        return found

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
                    self._fault(name, problem)
        finally:
            torch._C._set_grad_enabled(enabled)

    def _contained(self, part: str, call: Callable[..., None], *arguments: Any) -> None:
        if part in self.faults.off:
            return
        try:
            call(*arguments)
        except Exception as problem:
            self._fault(part, problem)

    def _fault(self, part: str, problem: Exception) -> None:
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


def read(rows: list[tuple[str, dict[str, Any], list[Deferred]]]) -> list[tuple[str, dict[str, float]]]:
    """The rows with every tensor read, in one transfer for each device and kind of tensor."""
    waiting: dict[Any, list[Any]] = {}
    for _, row, deferred in rows:
        for value in [*row.values(), *(numbers for numbers, _ in deferred)]:
            if isinstance(value, torch.Tensor):
                waiting.setdefault(value.device, []).append(value.detach().flatten().float())
    numbers = {device: iter(torch.cat(parts).tolist()) for device, parts in waiting.items()}
    done: list[tuple[str, dict[str, float]]] = []
    for table, row, deferred in rows:
        plain: dict[str, float] = {}
        for name, value in row.items():
            if isinstance(value, torch.Tensor):
                plain[name] = next(numbers[value.device])
            elif value is not None:
                plain[name] = float(value)
        for held, columns in deferred:
            if isinstance(held, torch.Tensor):
                held = [next(numbers[held.device]) for _ in range(held.numel())]
            plain.update(columns(held))
        done.append((table, plain))
    return done
