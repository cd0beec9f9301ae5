"""Where things were set up: optimizers and schedulers with their settings, evaluation mode, state that was loaded.

Places are noted when the objects are made, which is seldom; settings are told at the first step.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from types import FrameType
from typing import Any

import torch

from . import callers
from .byhand import Update
from .callers import Place
from .probe import Probe, Step

SETTINGS = ("lr", "initial_lr", "weight_decay", "momentum", "eps", "betas", "alpha", "nesterov", "dampening")
LOW = (torch.bfloat16, torch.float16)
MAX_GROUPS = 8
MAX_LOADS = 32


class Origins(Probe):
    """Events ``optimizer`` (settings, where it was made, where it steps) and ``live-loaded-nothing-of-a-part``."""

    name = "origins"
    rarely = frozenset(("before_step",))

    def __init__(self, recorder: Any) -> None:
        super().__init__(recorder)
        self._made: weakref.WeakKeyDictionary[Any, Place] = weakref.WeakKeyDictionary()
        self._loads: list[tuple[list[str], list[str], int, Place | None]] = []
        self._casts: weakref.WeakKeyDictionary[Any, Place] = weakref.WeakKeyDictionary()
        self.evaluation: Place | None = None
        """Where a module was last put into evaluation mode by the program."""

    def attach(self) -> None:
        """Listen to constructors, to ``eval`` and to the loading of states."""
        callers.watch(torch.optim.Optimizer, "__init__", self._making)
        callers.watch(torch.optim.lr_scheduler.LRScheduler, "__init__", self._making)
        callers.watch(torch.nn.Module, "eval", self._evaluating)
        callers.watch(torch.nn.Module, "_load_from_state_dict", self._loading)
        for name in ("to", "bfloat16", "half"):
            callers.watch(torch.nn.Module, name, self._casting)

    def place(self, made: Any) -> Place | None:
        """Where an optimizer or scheduler was made."""
        return self._made.get(made)

    def cast(self, parameters: Iterable[Any]) -> Place | None:
        """Where the module that holds one of ``parameters`` was last put into another type or onto another device."""
        wanted = {id(p) for p in parameters}
        return next((at for m, at in self._casts.items() if any(id(p) in wanted for p in m.parameters())), None)

    def before_step(self, step: Step) -> None:
        """At the first step of an optimizer: its settings; what was loaded before it."""
        if step.number != 1:
            return
        loads, self._loads = self._loads, []
        for load in loads:
            self._judge(*load)
        groups = [_settings(g) for g in step.optimizer.param_groups[:MAX_GROUPS]]
        made = self._made.get(step.optimizer)
        if isinstance(step.optimizer, Update):
            return
        stepped = callers.place(callers.here())
        words = ", ".join(f"{k} {v}" for k, v in groups[0].items()) if groups else ""
        facts: dict[str, Any] = {"path": made[0], "line": made[1]} if made is not None else {}
        if any(p.dtype in LOW for p in step.watched.parameters):
            cast = self.cast(step.watched.parameters)
            facts["cast"] = list(cast) if cast is not None else None
        self.recorder.event(
            "optimizer",
            f"{type(step.optimizer).__name__}: {words}",
            None,
            step=step.number,
            optimizer=type(step.optimizer).__name__,
            index=step.watched.index,
            settings=groups,
            stepped=list(stepped) if stepped is not None else None,
            **facts,
        )

    def _making(self, made: Any, frame: FrameType | None) -> None:
        self.recorder.made = self.recorder.made or isinstance(made, torch.optim.Optimizer)
        if made not in self._made and (place := callers.place(callers.user_frame(frame))) is not None:
            self._made[made] = place

    def _evaluating(self, _: Any, frame: FrameType | None) -> None:
        if frame is not None and callers.is_users(frame.f_code.co_filename):
            self.evaluation = callers.place(frame)

    def _casting(self, module: Any, frame: FrameType | None) -> None:
        if frame is not None and callers.is_users(frame.f_code.co_filename):
            place = callers.place(frame)
            first = next(module.parameters(), None)
            if place is not None and first is not None and first.dtype not in LOW:
                self._casts[module] = place

    def _loading(self, module: Any, frame: FrameType | None) -> None:
        """A module is about to load its part: of the outermost one note the lists that will say what was left out."""
        if frame is None or frame.f_code.co_name != "load" or len(self._loads) >= MAX_LOADS:
            return
        outer: FrameType | None = frame.f_back
        if outer is None or outer.f_code.co_name != "load_state_dict" or outer.f_locals.get("self") is not module:
            return
        found = outer.f_locals
        self._by_reference(module, found.get("state_dict"), outer)
        missing, unexpected, strict = found.get("missing_keys"), found.get("unexpected_keys"), found.get("strict")
        if strict is False and isinstance(missing, list) and isinstance(unexpected, list):
            count = len(found.get("state_dict") or ())
            self._loads.append((missing, unexpected, count, callers.place(callers.user_frame(outer.f_back))))

    def _by_reference(self, module: Any, state: Any, outer: FrameType) -> None:
        """A state that shows the model's own memory, loaded after steps: it holds what they made of it."""
        if not isinstance(state, dict) or self.recorder.step <= 1:
            return
        own = {name: p for name, p in module.named_parameters()}
        shared = [n for n, p in own.items() if n in state and _same_memory(state[n], p)]
        if own and len(shared) == len(own):
            place = callers.place(callers.user_frame(outer.f_back))
            text = (
                f"the state that is loaded here is the model's own memory ({shared[0]} and all others): it has moved"
                " with every step, and nothing is brought back"
            )
            facts: dict[str, Any] = {"path": place[0], "line": place[1]} if place is not None else {}
            self.tell("live-state-is-the-model-itself", text, **facts)

    def _judge(self, missing: list[str], unexpected: list[str], count: int, place: Place | None) -> None:
        """Keys that are there under another prefix: nothing of that part was loaded, and nobody was told."""
        if not missing or not unexpected or not count:
            return
        same = [u for u in unexpected if any(_same_end(u, m) for m in missing)]
        if 2 * len(same) < len(unexpected) or len(same) < 2:
            return
        other = next(m for m in missing if _same_end(same[0], m))
        text = (
            f"{len(same)} of {count} values of a state were not loaded: it calls {same[0]} what the model calls"
            f" {other}, and strict=False hides it"
        )
        facts: dict[str, Any] = {"path": place[0], "line": place[1]} if place is not None else {}
        self.tell("live-state-under-other-names", text, other, **facts)


def _same_memory(one: Any, other: Any) -> bool:
    if not isinstance(one, torch.Tensor) or one.layout != torch.strided or not other.numel():
        return False
    return bool(one.data_ptr() == other.data_ptr() and one.shape == other.shape)


def _same_end(one: str, other: str) -> bool:
    if one == other:
        return False
    inner = _inner(one)
    return one.endswith("." + other) or other.endswith("." + one) or (inner is not None and inner == _inner(other))


def _inner(name: str) -> str | None:
    """``name`` without its first part, None where little is left of it."""
    rest = name.partition(".")[2]
    return rest if rest.count(".") >= 1 else None


def _settings(group: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in SETTINGS:
        value = group.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            found[name] = value
        elif isinstance(value, (tuple, list)) and all(isinstance(v, (int, float)) for v in value):
            found[name] = list(value)
    return found
