"""Evaluation that runs in training mode: dropout and batch norm of the trained model while gradients are off.

One hook for all modules, from where a function that evaluates by its name puts gradients off to the next forward with a
graph; for the first few evaluations only, and never where torch compiles.
"""

from __future__ import annotations

import re
import threading
from types import FrameType
from typing import Any

import torch

from . import callers
from .callers import Place
from .probe import Probe, Step
from .wiring import has_modes

LOOKS = 4
"""Evaluations that are looked at."""
PASSES = 3
"""Passes over one input from which predictions are sampled: two are a loss and a score."""
EVALUATES = re.compile(
    r"(^|_)(eval|evaluate|evaluation|valid|validate|validation|val|test|score|accuracy|acc|predict|metric|metrics|iou|"
    r"rmse|mae|f1|auc|infer|inference|measure)(_|$)",
    re.IGNORECASE,
)
"""Names of functions that judge a model. Those that sample, roll out or update are none of them."""


class Evaluation(Probe):
    """Event ``live-training-mode-in-evaluation``."""

    name = "evaluation mode"
    rarely = frozenset(("after_step",))

    def __init__(self, recorder: Any) -> None:
        super().__init__(recorder)
        self._handle: Any = None
        self._place: tuple[Place, str] | None = None
        self._looks = 0
        self._thread = 0
        self._held: set[int] = set()
        self._suspect: tuple[str, str, Place] | None = None
        self._last: Any = None
        """The input of the outermost model's last call, for the evaluation under way."""
        self._again = 0
        self._meant = False

    def attach(self) -> None:
        """Know where gradients are put off, and by which function."""
        for context in (torch.no_grad, torch.inference_mode):
            callers.watch(context, "__enter__", self._putting_off)

    def after_step(self, step: Step) -> None:
        """Whose modules are trained."""
        if step.number in (1, 5):
            self._held |= {id(p) for p in step.watched.parameters}

    def close(self) -> None:
        """Take the hook away."""
        self._remove()
        self._conclude()

    def _conclude(self) -> None:
        """Tell what the evaluation before showed, unless it went over the same inputs again: then noise is meant."""
        suspect, self._suspect, self._last = self._suspect, None, None
        if suspect is not None:
            name, text, (path, line) = suspect
            self.tell("live-training-mode-in-evaluation", text, name, path=path, line=line)

    def _putting_off(self, _: Any, frame: FrameType | None) -> None:
        if self._looks >= LOOKS or self._handle is not None or frame is None or not self._held:
            return
        if callers.is_users(frame.f_code.co_filename):
            code: Any = frame.f_code
            line = frame.f_lineno
        else:
            code = getattr(frame.f_locals.get("func"), "__code__", None)  # torch's wrapper of a decorated function
            if code is None or not callers.is_users(code.co_filename):
                return
            line = code.co_firstlineno
        if not EVALUATES.search(code.co_name) or any(getattr(p, "compiled", False) for p in self.recorder.probes):
            return
        self._conclude()
        if self._meant:
            return
        self._looks += 1
        self._thread = threading.get_ident()
        self._place = (callers.relative(code.co_filename), line), code.co_name
        self._handle = torch.nn.modules.module.register_module_forward_pre_hook(self._hook)

    def _remove(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.remove()

    def _hook(self, module: Any, arguments: Any) -> None:
        try:
            if threading.get_ident() != self._thread:
                return
            if torch.is_grad_enabled() or torch.compiler.is_compiling():
                self._remove()
                self._conclude()
                return
            if arguments and any(module is root for root in self.recorder.names.roots):
                self._again = self._again + 1 if arguments[0] is self._last else 0
                self._last = arguments[0]
                if self._again >= PASSES - 1:
                    self._meant, self._suspect = True, None
                    self._remove()
                    return
            if self._suspect is None and module.training and has_modes(module) and self._trained():
                (path, line), function = self._place or (("", 0), "")
                name = next((n for n, m in self.recorder.names.modules() if m is module), None)
                if name is None or not self._of_trained(name):
                    return
                text = (
                    f"{name} runs in training mode in {function}, with gradients off: what it measures is not the model"
                )
                self._suspect = name, text, (path, line)
        except Exception as problem:
            self.recorder.faults.add(self.name, problem)

    def _trained(self) -> bool:
        return "live-training-mode-in-evaluation" not in self.recorder.told

    def _of_trained(self, name: str) -> bool:
        """True if the outermost model that ``name`` stands in is trained, and in training mode as a whole: a layer that
        alone was switched to training in a model that evaluates is meant (dropout that samples predictions)."""
        base = name.partition(".")[0]
        roots = [r for r in self.recorder.names.roots if self.recorder.names.name_of(r) == base]
        return any(r.training and any(id(p) in self._held for p in r.parameters()) for r in roots)
