"""Learning-rate schedules: do they drive the optimizer that steps, and did a resume bring their state back?"""

from __future__ import annotations

import weakref
from types import FrameType
from typing import Any

import torch

from . import callers
from .origins import Origins
from .probe import Probe, Step

CHECKED = 40
"""Steps after which a scheduler is compared with the optimizers that have stepped."""


SAME_EPOCHS = 3
"""Epochs that a sampler shuffles with one number: two may be a warm-up and the first one."""
IDLE = 20
"""Steps of a scheduler without one of its optimizer, after which that has been replaced (a judgement)."""
FRESH = 20
"""Steps of a scheduler up to which it has begun anew: the next sampled step comes within 20."""


class Schedules(Probe):
    """Events ``scheduler`` (its kind and settings), ``live-scheduler-of-another-optimizer``,
    ``live-resume-without-scheduler``."""

    name = "schedules"
    rarely = frozenset(("before_step", "after_step"))

    def __init__(self, recorder: Any) -> None:
        super().__init__(recorder)
        self._schedulers: weakref.WeakKeyDictionary[Any, dict[str, Any]] = weakref.WeakKeyDictionary()
        self._resumed: weakref.WeakKeyDictionary[Any, tuple[str, int] | None] = weakref.WeakKeyDictionary()
        self._idle: weakref.WeakKeyDictionary[Any, tuple[int, int]] = weakref.WeakKeyDictionary()
        self._restored: weakref.WeakSet[Any] = weakref.WeakSet()
        self._epochs: weakref.WeakKeyDictionary[Any, list[int]] = weakref.WeakKeyDictionary()
        self._teaching: weakref.WeakSet[Any] = weakref.WeakSet()
        self._drawn: Any = None

    def attach(self) -> None:
        """Listen to ``step`` and ``load_state_dict`` of schedulers and to ``load_state_dict`` of optimizers."""
        todo: list[Any] = [torch.optim.lr_scheduler.LRScheduler]
        while todo:
            cls = todo.pop()
            todo += cls.__subclasses__()
            if "step" in cls.__dict__:
                callers.watch(cls, "step", self._stepping)
            if "load_state_dict" in cls.__dict__:
                callers.watch(cls, "load_state_dict", self._loading)
        callers.watch(torch.optim.Optimizer, "load_state_dict", self._resuming)
        if torch.distributed.is_available():
            from torch.utils.data.distributed import DistributedSampler

            callers.watch(DistributedSampler, "__iter__", self._drawing)

    def _drawing(self, sampler: Any, frame: FrameType | None) -> None:
        """A distributed sampler shuffles anew: with another epoch number than before?

        Only what steps follow on counts: of the evaluation nobody needs another order."""
        if not torch.is_grad_enabled():
            return
        self._drawn = weakref.ref(sampler)
        epochs = self._epochs.setdefault(sampler, [])
        epochs.append(sampler.epoch)
        same = len(epochs) == SAME_EPOCHS and len(set(epochs)) == 1
        if same and sampler.shuffle and sampler in self._teaching:
            text = f"{type(sampler).__name__} has shuffled {SAME_EPOCHS} times with epoch {epochs[0]}: the same order"
            self.tell("live-sampler-epoch-stands-still", text, frame=callers.user_frame(frame))

    def before_step(self, step: Step) -> None:
        """At the first step after a resume: has a scheduler of this optimizer begun anew?"""
        if self._drawn is not None and (sampler := self._drawn()) is not None:
            self._teaching.add(sampler)
        place = self._resumed.pop(step.optimizer, False)
        if place is not False:
            self._resume(step, place if isinstance(place, tuple) else None)

    def after_step(self, step: Step) -> None:
        """After some steps: does every scheduler that steps drive an optimizer that steps?"""
        if step.number >= CHECKED:
            self._stale()

    def close(self) -> None:
        """How often each scheduler was stepped."""
        self._stale()
        for scheduler, facts in list(self._schedulers.items()):
            if facts["calls"]:
                text = f"{type(scheduler).__name__} was stepped {facts['calls']} times"
                self.recorder.event("scheduler", text, None, **{**facts, "optimizer_steps": self.recorder.step - 1})

    def _stepping(self, scheduler: Any, frame: FrameType | None) -> None:
        facts = self._schedulers.get(scheduler)
        if facts is None:
            if callers.user_frame(frame) is None:
                return
            place = self._made(scheduler) or callers.place(callers.user_frame(frame))
            facts = {"calls": 0, "scheduler": type(scheduler).__name__}
            facts |= {"path": place[0], "line": place[1]} if place else {}
            for name in ("T_max", "total_steps", "step_size", "gamma", "total_iters", "T_0", "patience"):
                value = getattr(scheduler, name, None)
                if isinstance(value, (int, float)) and not isinstance(value, bool):
                    facts[name] = value
            self._schedulers[scheduler] = facts
        if not inside_init(frame):
            facts["calls"] += 1
            self._replaced(scheduler, facts)

    def _replaced(self, scheduler: Any, facts: dict[str, Any]) -> None:
        """Does it go on driving an optimizer that another one, with the same parameters, has taken the place of?"""
        mine = getattr(scheduler, "optimizer", None)
        watched = self.recorder.optimizers.get(mine) if mine is not None else None
        if watched is None:
            return
        steps, idle = self._idle.get(scheduler, (watched.steps, 0))
        idle = idle + 1 if steps == watched.steps else 0
        self._idle[scheduler] = watched.steps, idle
        if idle != IDLE:
            return
        held = {id(p) for p in watched.parameters}
        others = [w for w in self.recorder.optimizers.values() if w is not watched and w.index > watched.index]
        if any(id(p) in held for w in others for p in w.parameters):
            text = (
                f"{type(scheduler).__name__} drives an optimizer that has taken no step in its last {idle} steps;"
                " another one with the same parameters steps, and keeps its learning rate"
            )
            place = {key: facts[key] for key in ("path", "line") if key in facts}
            self.tell("live-scheduler-of-another-optimizer", text, **place)

    def _made(self, scheduler: Any) -> tuple[str, int] | None:
        origins = next((p for p in self.recorder.probes if isinstance(p, Origins)), None)
        return origins.place(scheduler) if origins is not None else None

    def _loading(self, scheduler: Any, _: FrameType | None) -> None:
        self._restored.add(scheduler)

    def _resuming(self, optimizer: Any, frame: FrameType | None) -> None:
        self._resumed[optimizer] = callers.place(callers.user_frame(frame))

    def _stale(self) -> None:
        stepping = set(map(id, self.recorder.optimizers))
        for scheduler, facts in list(self._schedulers.items()):
            mine = getattr(scheduler, "optimizer", None)
            if mine is None or facts["calls"] < 1 or not stepping or any(id(o) in stepping for o in _unwrapped(mine)):
                continue
            others = [o for s in self._schedulers if s is not scheduler for o in _unwrapped(getattr(s, "optimizer", 0))]
            if any(id(o) in stepping for o in others):
                continue
            text = (
                f"{type(scheduler).__name__} drives an optimizer that takes no step; the one that steps keeps its"
                " learning rate"
            )
            place = {key: facts[key] for key in ("path", "line") if key in facts}
            self.tell("live-scheduler-of-another-optimizer", text, **place)

    def _resume(self, step: Step, place: tuple[str, int] | None) -> None:
        if not any(step.optimizer.state.values()):
            return
        mine = [s for s in self._schedulers if getattr(s, "optimizer", None) is step.optimizer] or schedulers_of(
            step.optimizer
        )
        forgotten = [s for s in mine if s not in self._restored and int(getattr(s, "last_epoch", 99)) <= FRESH]
        if forgotten and len(forgotten) == len(mine):
            text = (
                f"the optimizer's state was loaded, but its {type(forgotten[0]).__name__} begins at step 0 again:"
                f" the learning rate is {step.watched.rates().get('lr', 0.0):.3g}"
            )
            facts: dict[str, Any] = {"path": place[0], "line": place[1]} if place else {}
            self.tell("live-resume-without-scheduler", text, step=step.number, **facts)


def _unwrapped(optimizer: Any) -> list[Any]:
    """An optimizer, and what it wraps (accelerate's, those that add a method to another one)."""
    found = [optimizer]
    while len(found) < 5 and (inner := getattr(found[-1], "optimizer", None)) is not None:
        found.append(inner)
    return found


def schedulers_of(optimizer: Any) -> list[Any]:
    """Schedulers alive that drive ``optimizer``, found among the objects that refer to it."""
    import gc

    base = torch.optim.lr_scheduler.LRScheduler
    found = []
    for holder in gc.get_referrers(optimizer):
        owners = gc.get_referrers(holder) if type(holder) is dict else [holder]
        found += [o for o in owners if issubclass(type(o), base) and o.__dict__.get("optimizer") is optimizer]
    return found


def inside_init(frame: FrameType | None) -> bool:
    """True if the step is the one that a scheduler takes in its own constructor."""
    for _ in range(4):
        if frame is None:
            return False
        if frame.f_code.co_name in ("__init__", "_initial_step"):
            return "lr_scheduler" in frame.f_code.co_filename
        frame = frame.f_back
    return False
