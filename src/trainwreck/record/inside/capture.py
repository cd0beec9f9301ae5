"""At the first alarms: keep the failing step as files, and run it once more in a copy of the process.

The copy (``fork``) shares memory with the training and writes there only for itself, so the training goes on unchanged,
bit for bit. Per step only the state of torch's generator is taken (about 1 µs) and the stack of backward noted.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
import time
import traceback
import weakref
from types import CodeType
from typing import Any

import torch

from . import callers, interrupts, isolate, package, replay, tensors, values, variables
from .alarms import NONFINITE_GRADIENT, NONFINITE_LOSS, NONFINITE_WEIGHTS, Alarm
from .health import nonfinite_loss
from .optimizers import blame
from .probe import Backward, Probe, Step

CHILD_SECONDS = 40
"""Life of a copy: capture and replay; a replay takes a few steps' time, so this is far beyond all but the largest."""
WAIT_SECONDS = 30.0
"""How long the end of the training waits for a copy that is not ready."""
MAX_CAPTURES = 5
"""Failing steps that are kept; their comparison needs several, their place on disk speaks against many."""
MAX_SPIKES = 2
"""Of these, steps that only spiked: a worse alarm may still come."""
BUDGET = 256 << 20
"""Bytes of one capture; weights or optimizer state beyond it are left out and said to be absent."""
MAX_STACK = 12
"""Frames of the stack of a backward that are noted: the step is seldom further out than a trainer's loop."""
REPLAYED = (NONFINITE_LOSS, NONFINITE_GRADIENT)


class Capture(Probe):
    """Knows the random state and the stack of the step under way; acts on alarms."""

    name = "capture"

    def attach(self) -> None:
        self._generator: Any = torch.default_generator
        self._random: Any = self._generator.get_state()
        self._still = False
        """Whether the program draws no random numbers in a step; looked at anew at each sampled one."""
        self._stack: list[tuple[int, CodeType, int]] = []
        self._children: dict[int, tuple[float, str]] = {}
        self._steps: set[int] = set()
        self._spikes = 0
        self._damaged = False
        """No further batch is worth keeping: the weights are not finite either, or enough have been kept."""
        self._optimizer: weakref.ref[Any] | None = None
        self.budget = int(self.recorder.options.get("capture_bytes", BUDGET))
        self.recorder.on_alarm.append(self.alarm)

    def backward(self, moment: Backward) -> None:
        """Note the stack without holding it: nothing of the user's lives longer for it."""
        found: list[tuple[int, CodeType, int]] = []
        frame = moment.caller
        while frame is not None and len(found) < MAX_STACK:
            code = frame.f_code
            if found or not values.on_the_way(code.co_filename):
                found.append((id(frame), code, frame.f_lasti))
            frame = frame.f_back
        self._stack = found
        if moment.value is not None and not math.isfinite(moment.value):
            self._repeated(moment, moment.value)

    def _repeated(self, moment: Backward, value: float) -> None:
        """One more failing batch of a loop that steps over such: several are kept, because they can be compared."""
        overflow = moment.scale is not None and math.isinf(value)
        if overflow or self._damaged or moment.step in self._steps or not self._steps:
            return
        optimizer = self._optimizer() if self._optimizer is not None else None
        held = [p for group in optimizer.param_groups for p in group["params"]] if optimizer is not None else []
        self._damaged = len(self._steps) >= MAX_CAPTURES or any(tensors.nonfinite(p) for p in held)
        if not self._damaged:
            self.alarm(nonfinite_loss(moment.step, value, moment.frame, moment.loss))

    def after_step(self, step: Step) -> None:
        """Take the state of the generator, unless the last step that was looked at closely drew no random number."""
        if step.sampled or not self._still:
            state = self._generator.get_state()
            self._still = step.sampled and torch.equal(state, self._random)
            self._random = state
        self._optimizer = step.watched.reference

    @property
    def _past(self) -> list[replay.Place]:
        return [replay.Place(*place) for place in self._stack]

    def flush(self) -> None:
        for child in list(self._children):
            self._reap(child, 0.0)

    def close(self) -> None:
        until = time.monotonic() + WAIT_SECONDS
        for child in list(self._children):
            self._reap(child, until - time.monotonic())

    def alarm(self, alarm: Alarm) -> None:
        """Keep the step of ``alarm`` and look for the origin, unless enough has been kept."""
        if alarm.step in self._steps or len(self._steps) >= MAX_CAPTURES or not self._matters(alarm):
            return
        self._steps.add(alarm.step)
        self._spikes += alarm.kind.endswith("-spike")
        rank = os.environ.get("RANK", "0")
        name = f"capture-{alarm.step}" + (f"-rank{rank}" if rank != "0" else "")
        folder = os.path.join(os.path.abspath(self.recorder.folder), name)
        frames = replay.stack(sys._getframe(1))
        facts = {"alarm": alarm.kind, "step": alarm.step, "rank": int(rank), "value": tensors.plain(alarm.value)}
        first = len(self._steps) == 1
        optimizer = alarm.optimizer or (self._optimizer() if self._optimizer is not None else None)
        job = package.Job(folder, facts, frames, optimizer, self._states(), self.budget, first, self._place())
        if _on_a_device():
            package.write(job, values.Known())
            _forget(frames)
            self.recorder.event("capture", f"trainwreck replay {folder} finds the origin", None, folder=name)
            return
        self._fork(job, alarm)

    def _matters(self, alarm: Alarm) -> bool:
        spike = alarm.kind.endswith("-spike") and self._spikes < MAX_SPIKES
        return spike or alarm.kind in (NONFINITE_LOSS, NONFINITE_GRADIENT, NONFINITE_WEIGHTS)

    def _place(self) -> dict[str, Any] | None:
        """Where the user's code called the last backward."""
        past = next((p for p in self._past if callers.is_users(p.code.co_filename)), None)
        if past is None:
            return None
        lines = [p[0] for p in past.code.co_positions()]
        at = past.instruction // 2
        return package.place(past.code, lines[at] if at < len(lines) else None)

    def _states(self) -> list[Any]:
        return [self._random, self._generator.get_state()]

    def _fork(self, job: package.Job, alarm: Alarm) -> None:
        os.makedirs(os.path.dirname(job.folder), exist_ok=True)
        with interrupts.put_off():
            child = os.fork()
            if child:
                self._children[child] = (time.monotonic(), job.folder)
                self.recorder.event(
                    "capture", "the failing step is kept and run again", None, folder=os.path.basename(job.folder)
                )
                return
            try:
                isolate.child(os.path.dirname(job.folder), CHILD_SECONDS)
                self._work(job, alarm)
            except BaseException as problem:
                _note(job.folder, problem)
                os._exit(1)
            os._exit(0)

    def _work(self, job: package.Job, alarm: Alarm) -> None:
        """In the copy: write the capture, then the origin beside it."""
        known = values.Known()
        try:
            package.write(job, known)
        except Exception as problem:
            _note(job.folder, problem)
        began = time.monotonic()
        if alarm.kind == NONFINITE_WEIGHTS:
            origin = blame(alarm.optimizer, known, job.frames)
        elif alarm.kind in REPLAYED:
            past = [] if alarm.kind == NONFINITE_LOSS else self._past
            question = replay.Question(alarm.kind == NONFINITE_GRADIENT, job.frames, past, job.random)
            origin = replay.Replay(question, known).answer()
            if not origin["reproduced"] and alarm.kind == NONFINITE_GRADIENT and isolate.distributed():
                origin |= {
                    "kind": "communication",
                    "phase": "communication",
                    "text": "this rank's own gradients are finite: the value came from another rank",
                }
        else:
            return
        origin |= {"trainwreck_origin": 1, **job.facts, "seconds": round(time.monotonic() - began, 3)}
        write_origin(job.folder, origin)

    def _reap(self, child: int, seconds: float) -> None:
        """Take the end of a copy in, waiting up to ``seconds`` for it; one that is over its time is killed."""
        began, folder = self._children[child]
        until = time.monotonic() + max(0.0, seconds)
        while True:
            try:
                done, status = os.waitpid(child, os.WNOHANG)
            except ChildProcessError:  # Somebody else of this process has waited for it.
                done, status = child, 0
            if done:
                break
            if time.monotonic() >= until:
                if seconds <= 0 and time.monotonic() - began < CHILD_SECONDS + 5:
                    return
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, 9)
                seconds, until = 1.0, time.monotonic() + 5
            time.sleep(0.01)
        del self._children[child]
        if status:
            self.recorder.event(
                "replay-failed", "the copy of the training ended early", None, folder=os.path.basename(folder)
            )


def write_origin(folder: str, origin: dict[str, Any]) -> None:
    """``origin.json`` of a capture; its first key tells what it is. Raises OSError."""
    os.makedirs(folder, exist_ok=True)
    ordered = {"trainwreck_origin": 1, **origin}
    tensors.write_json(os.path.join(folder, "origin.json"), ordered)


def _note(folder: str, problem: BaseException) -> None:
    """Leave a fault of ours in the copy as a text beside the capture."""
    with contextlib.suppress(BaseException), open(f"{folder}-fault.txt", "a", encoding="utf-8") as file:
        file.writelines(traceback.format_exception(problem))


def _forget(frames: list[Any]) -> None:
    """Empty the snapshots of local variables that looking left in ``frames``: they would keep tensors alive."""
    for frame in frames:
        if variables.OWN_SNAPSHOT and frame.f_code.co_flags & variables.OPTIMIZED and not variables.asks(frame.f_code):
            frame.f_locals.clear()


def _on_a_device() -> bool:
    """Whether memory of a device is in use: a fork can't touch it."""
    return bool(torch.cuda.is_initialized()) or bool(getattr(torch, "xpu", None) and torch.xpu.is_initialized())
