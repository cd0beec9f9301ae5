"""No step ends for long: where every thread of this process stands is written down, and what the one that trains is at.

A thread of ours wakes a few times a minute and looks at counters that the recorder keeps anyway, so a step costs
nothing. It touches no tensor and no lock of the user's, is no thread of ``threading``, and is gone while the process
forks. What a stall means is not said here: an evaluation is one as well, until it is over.
"""

from __future__ import annotations

import _thread
import os
import threading
import time
from statistics import median
from typing import Any

from . import interrupts, stacks, workers
from .alarms import STALL, Alarm
from .probe import Probe, Step
from .ranks import group

FLOOR = 30.0
"""Seconds without a step below which nothing is a stall: most evaluations and checkpoints of small runs are shorter,
and the shortest usual timeout of a collective is 600 s."""
FACTOR = 20.0
"""And this many times the median step (a judgement)."""
LONGEST = 2.0
"""And this many times the longest pause that was over by itself: evaluations that come again."""
BEFORE = 4.0
"""The floor is that many times higher before the second step is done: compiling, tuning of kernels, warm-up."""
ALARM = 4.0
"""A wait is told on standard error when it has lasted for that many times the limit."""
LOOKS, BETWEEN = 3, 1.0
"""Looks, and seconds between them, at whether the thread moves."""
MAX_TOLD = 10
"""Descriptions of one stall: at the limit, at twice the limit, and so on."""
WAITS = ("collective", "loader", "lock")


class Stalls(Probe):
    """Events ``stall`` (``state``, ``waited``, ``still``, ``threads``, ``workers``, the place) and ``stall-over``."""

    name = "stalls"
    rarely = frozenset(("before_step",))

    def __init__(self, recorder: Any) -> None:
        super().__init__(recorder)
        self.floor = float(recorder.options.get("stall_seconds", FLOOR))
        self._poll = min(5.0, max(0.2, self.floor / 10))
        self._stop: Any = None
        self._done: Any = None
        self._wanted = False
        self._pid = 0
        self._begin()

    def _begin(self) -> None:
        self._beats, self._steps = -1, 0
        self._since = self._looked = time.monotonic()
        self._paces: list[float] = []
        self._signals = interrupts.PutOff()
        self._longest = 0.0
        self._open = False
        self._state = ""
        self._told = 0
        self._alarmed = False

    def attach(self) -> None:
        """Be out of the way of every fork: a child must not inherit a lock that our thread holds."""
        workers.prepare()
        os.register_at_fork(before=self._forking, after_in_parent=self._resume, after_in_child=self._forget)
        if "RANK" in os.environ:
            self._start()  # a rank may wait for others before its first step

    def before_step(self, step: Step) -> None:
        """Watch from the first step on."""
        if self._stop is None:
            self._start()

    def close(self) -> None:
        """The process ends. A wait stays open: nobody knows here whether it came to its end or was broken off."""
        self._wanted = False
        self._pause()
        if self._open and self._state not in WAITS:
            self._over(time.monotonic())

    # the thread

    def _start(self) -> None:
        if self.recorder.off or self._stop is not None:
            return
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self._begin()
        self._wanted = True
        stop, done = _thread.allocate_lock(), _thread.allocate_lock()
        stop.acquire()
        done.acquire()
        self._stop, self._done = stop, done
        _thread.start_new_thread(self._run, (stop, done))

    def _pause(self) -> None:
        stop, self._stop = self._stop, None
        if stop is not None:
            stop.release()
            self._done.acquire(True, 2.0)

    def _forking(self) -> None:
        self._signals.begin()
        self._pause()

    def _resume(self) -> None:
        if self._wanted and self._pid == os.getpid():
            self._start()
        interrupts.again(self._signals.end())

    def _forget(self) -> None:
        self._stop, self._wanted, self._open = None, False, False
        interrupts.again(self._signals.end())

    def _run(self, stop: Any, done: Any) -> None:
        try:
            while not stop.acquire(True, self._poll):
                if self.recorder.off or self.name in self.recorder.faults.off:
                    break
                try:
                    self._look(stop)
                except Exception as problem:
                    self.recorder.faults.add(self.name, problem)
        finally:
            done.release()

    def _look(self, stop: Any) -> None:
        now = time.monotonic()
        if now - self._looked > 3 * self._poll + 5.0:
            self._since += now - self._looked  # the process itself was stopped, or the machine slept
        self._looked = now
        beats, steps = self.recorder.beats, self.recorder.steps
        if beats != self._beats:
            pause = now - self._since
            if self._open:
                self._over(now)
            if self._beats >= 0:
                self._longest = max(self._longest, pause if pause > self.floor else 0.0)
            if steps > self._steps:
                self._paces = [*self._paces[-63:], pause / (steps - self._steps)]
            self._beats, self._steps, self._since, self._told = beats, steps, now, 0
            return
        waited = now - self._since
        if waited > self.limit() * 2**self._told and self._told < MAX_TOLD:
            self._describe(waited, stop)
        self._looked = time.monotonic()

    def limit(self) -> float:
        """Seconds without a step after which threads are looked at."""
        least = self.floor * (1.0 if self._steps > 1 else BEFORE)
        pace = median(self._paces) if self._paces else 0.0
        return max(least, FACTOR * pace, LONGEST * self._longest)

    def _describe(self, waited: float, stop: Any) -> None:
        training = self.recorder.lanes.stepping or self.recorder.lanes.first or threading.main_thread().ident or 0
        keys = [stacks.key_of(training)]
        clock, spent, own = time.monotonic(), time.process_time(), stacks.seconds_of(training)
        for _ in range(LOOKS - 1):
            if stop.acquire(True, min(BETWEEN, self._poll)):
                stop.release()  # for the loop
                return
            keys.append(stacks.key_of(training))
        if self.recorder.beats != self._beats or not keys[-1]:
            return
        still = len(set(keys)) == 1
        elapsed = time.monotonic() - clock
        idle = (time.process_time() - spent) / elapsed < stacks.IDLE
        found = stacks.threads(training)
        member = group()
        frames = found[0]["frames"] if found else []
        user = stacks.place(frames)
        if user is None:
            return  # a notebook between two cells
        kind = stacks.kind_of(frames, still, idle, member is not None)
        self._told += 1
        if kind in ("debugger", "events"):
            return
        after = stacks.seconds_of(training)
        share = (after - own) / elapsed if after is not None and own is not None else None
        text = f"no step has ended for {waited:.0f} s: {user['function']} is at {words(user)} ({kind})"
        facts = {"state": kind, "waited": round(waited, 1), "still": still, "idle": idle, "processor": share}
        facts |= {"path": user["path"], "line": user["line"], "call": user.get("call"), "threads": found}
        if kind == "loader":
            facts["workers"] = workers.look()
        self._open, self._state = True, kind
        self.recorder.event("stall", text, None, limit=self.limit(), **facts, **(member or {}))
        if kind in WAITS and not self._alarmed and waited > ALARM * self.limit():
            self._alarmed = True
            self.recorder.alarms.say(alarm(self.recorder.step, kind, waited, user))

    def _over(self, now: float) -> None:
        self._open = False
        self.recorder.event("stall-over", f"the program went on after {now - self._since:.0f} s", None)


def alarm(step: int, kind: str, waited: float, user: stacks.Frame) -> Alarm:
    """The alarm for a process that waits."""
    what = {"collective": "for another rank", "loader": "for a batch", "lock": "for a lock, a queue or a thread"}[kind]
    text = f"no step has ended for {waited:.0f} s: the training waits {what} at {words(user)}"
    predicts = "it never goes on if nobody answers"
    advice = "the stacks of all threads are in the recording (trainwreck diagnose)"
    return Alarm(STALL, "warning", step, round(waited, 1), None, text, predicts, advice)


def words(frame: stacks.Frame) -> str:
    """A frame as ``train.py:12, loss.backward()``."""
    call = frame.get("call")
    return f"{frame['path']}:{frame['line']}" + (f", {call}" if call else "")
