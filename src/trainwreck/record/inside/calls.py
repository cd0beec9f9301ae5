"""Which modules run in the first steps of an optimizer, with or without a graph, and from which lines.

One hook for all modules, in place for these steps only and never where torch compiles. What it saw sorts parameters
that get no gradient: never called, called where gradients are off, or called and cut off afterwards.
"""

from __future__ import annotations

import threading
import weakref
from types import FrameType
from typing import Any

import torch

from . import callers
from .callers import Place
from .probe import Probe, Step

STEPS = 5
"""The steps after which the wiring is judged (wiring.py)."""
MOST = 60
"""Steps of all optimizers together for which the hook stays, where several take turns."""
MAX_FRAMES = 6


class Call:
    """How a module was called: with gradients on at least once; the user's frames; where gradients had been put off."""

    __slots__ = ("frames", "module", "off", "with_graph")

    def __init__(self, module: Any) -> None:
        self.module = weakref.ref(module)
        self.with_graph = False
        self.frames: list[Place] = []
        self.off: Place | None = None


class Calls(Probe):
    """Tells no event of its own; ``of`` answers wiring.py."""

    name = "module calls"
    rarely = frozenset(("before_step", "after_step"))

    def __init__(self, recorder: Any) -> None:
        super().__init__(recorder)
        self._calls: dict[int, Call] = {}
        self._handle: Any = None
        self._stepped: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._thread = 0
        self._steps = 0
        self._off: Place | None = None

    def attach(self) -> None:
        """Know where gradients are put off."""
        for context in (torch.no_grad, torch.inference_mode):
            if "__enter__" in context.__dict__:
                callers.watch(context, "__enter__", self._putting_off)

    @property
    def seen(self) -> bool:
        """False where nothing is known of calls: something is compiled, or there was no step to look at."""
        return bool(self._calls)

    def of(self, module: Any) -> Call | None:
        """How ``module`` was called since its optimizer began, None if it was not."""
        call = self._calls.get(id(module))
        return call if call is not None and call.module() is module else None

    def alternates(self, watched: Any) -> bool:
        """True if another optimizer has stepped since the last backward but one: each has a backward of its own."""
        return any(w is not watched and count < self.recorder.backwards for w, count in self._stepped.items())

    def before_step(self, step: Step) -> None:
        """The wiring is judged at this step: after it nothing more is looked at."""
        self._steps += 1
        if step.number >= STEPS or self._steps > MOST:
            self._remove()

    def after_step(self, step: Step) -> None:
        """Attach before the second step, and while others begin."""
        self._stepped[step.watched] = self.recorder.backwards
        if step.number == 1:
            self._steps = 0
        if step.number < STEPS and self._steps <= MOST and self._handle is None and not self._compiles():
            self._thread = threading.get_ident()
            self._handle = torch.nn.modules.module.register_module_forward_hook(self._hook)

    def close(self) -> None:
        """Take the hook away."""
        self._remove()

    def _remove(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.remove()

    def _compiles(self) -> bool:
        return any(getattr(p, "compiled", False) for p in self.recorder.probes)

    def _hook(self, module: Any, _: Any, __: Any) -> None:
        try:
            if torch.compiler.is_compiling() or threading.get_ident() != self._thread or self._compiles():
                return
            call = self._calls.get(id(module))
            if call is None or call.module() is not module:
                call = self._calls[id(module)] = Call(module)
                call.frames = frames(callers.here())
            if torch.is_grad_enabled():
                call.with_graph = True
            elif call.off is None:
                call.off = self._off
        except Exception as problem:
            self.recorder.faults.add(self.name, problem)

    def _putting_off(self, _: Any, frame: FrameType | None) -> None:
        if self._handle is None or frame is None:
            return
        if callers.is_users(frame.f_code.co_filename):
            self._off = callers.place(frame)
            return
        function = frame.f_locals.get("func")  # torch's wrapper of a decorated function
        code = getattr(function, "__code__", None)
        if code is not None and callers.is_users(code.co_filename):
            self._off = callers.relative(code.co_filename), code.co_firstlineno


def frames(frame: FrameType | None) -> list[Place]:
    """Places of the user's frames from ``frame`` outwards."""
    found: list[Place] = []
    for _ in range(callers.MAX_DEPTH):
        if frame is None or len(found) >= MAX_FRAMES:
            break
        if callers.is_users(frame.f_code.co_filename) and (place := callers.place(frame)) is not None:
            found.append(place)
        frame = frame.f_back
    return found
