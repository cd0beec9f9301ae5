"""``trainwreck replay``: the script runs again up to the place of the capture, takes the captured state, and is traced.

Where the captured weights were damaged already, the script runs from its start, with a look at every loss and gradient,
to the step in which the damage began. Loaded instead of the recorder. The process ends with the answer; nothing of the
training goes on after it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from . import callers, isolate, package, replay, tensors, values

SECONDS = 600.0
"""Limit of the traced step. Nobody's training waits for it here; large models take minutes on a CPU."""


class Again:
    """Waits for the backward at the captured place, then answers and ends the process."""

    def __init__(self, capture: str, answer: str) -> None:
        self.capture, self.answer = capture, answer
        with open(os.path.join(capture, "capture.json"), encoding="utf-8") as file:
            self.facts: dict[str, Any] = json.load(file)
        self.place: dict[str, Any] = self.facts.get("backward") or self.facts
        self.tensors = tensors.load(os.path.join(capture, "tensors.safetensors"))
        self.steps = 0
        self.overrides: dict[int, dict[str, Any]] = {}
        """Captured variables for each frame that have no tensor to be put into."""
        self.damaged = bool(self.facts.get("weights_damaged"))
        self.past: list[replay.Place] = []
        self.random: list[Any] = []

    def attach(self) -> None:
        """Listen for backward and for steps."""
        if self.damaged:
            self.random = [torch.get_rng_state()]
            callers.watch_backward(self._look)
            register_optimizer_step_pre_hook(self._before)
        else:
            callers.watch_backward(self._backward)
        register_optimizer_step_post_hook(self._stepped)

    def _stepped(self, *_: Any) -> None:
        self.steps += 1
        self.random = [torch.get_rng_state()] if self.damaged else []

    def _look(self, loss: Any, caller: FrameType | None) -> None:
        """Of a damaged capture: is this the first loss that is not finite?"""
        if not callers.modes_active():
            frames = replay.stack(caller)
            self.past = replay.places(frames)
            if tensors.nonfinite(loss):
                self._end(lambda: self._born(frames, False))

    def _before(self, optimizer: Any, *_: Any) -> None:
        """Of a damaged capture: are these the first gradients that are not finite?"""
        gradients = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        if not callers.modes_active() and any(tensors.nonfinite(g) for g in gradients):
            frames = replay.stack(sys._getframe(1))
            self._end(lambda: self._born(frames, True))

    def _born(self, frames: list[FrameType], gradient: bool) -> dict[str, Any]:
        known = values.Known()
        isolate.calm()
        random = [*self.random, torch.get_rng_state()]
        told = replay.Replay(replay.Question(gradient, frames, self.past, random, SECONDS), known).answer()
        note = f"the weights of step {self.facts.get('step')} were damaged: this is the first step that went wrong"
        told["notes"] = [note, *told.get("notes", [])]
        return told | {"step": self.steps + 1, "alarm": "nonfinite-gradient" if gradient else "nonfinite-loss"}

    def _backward(self, loss: Any, caller: FrameType | None) -> None:
        if callers.modes_active() or not self._here(callers.user_frame(caller)):
            return
        if not self._has_weights() and self.steps + 1 < int(self.facts.get("step") or 1):
            return  # Nothing to put in: the training itself must come to the step.
        self._end(lambda: self._answer(caller))

    def _end(self, answer: Callable[[], dict[str, Any]]) -> None:
        """Write the answer; the process ends with it."""
        try:
            told = answer()
        except Exception as problem:
            told = {"kind": "unknown", "text": f"the replay failed ({type(problem).__name__}: {problem})"}
        tensors.write_json(self.answer, told)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)

    def _here(self, frame: FrameType | None) -> bool:
        """Whether ``frame`` stands where the capture was taken: file, function and line."""
        if frame is None:
            return False
        same = os.path.basename(frame.f_code.co_filename) == os.path.basename(str(self.place.get("file")))
        return same and (frame.f_code.co_name, frame.f_lineno) == (self.place.get("function"), self.place.get("line"))

    def _has_weights(self) -> bool:
        return any(name.startswith("weight/") for name in self.tensors)

    def _answer(self, caller: FrameType | None) -> dict[str, Any]:
        began = time.monotonic()
        frames = replay.stack(caller)
        known = values.Known()
        notes = self._restore(known, frames)
        isolate.calm()
        gradient = self.facts.get("alarm") != "nonfinite-loss"
        random = [self.tensors[name] for name in sorted(self.tensors) if name.startswith("random/")]
        question = replay.Question(gradient, frames, replay.places(frames), random, SECONDS, self.overrides)
        told = replay.Replay(question, known).answer()
        told["notes"] = [*notes, *told.get("notes", [])]
        told |= {"step": self.facts.get("step"), "alarm": self.facts.get("alarm"), "rank": self.facts.get("rank", 0)}
        told["device"] = next((str(p.device) for p in known.parameters()), "cpu")
        return told | {"seconds": round(time.monotonic() - began, 3)}

    def _restore(self, known: values.Known, frames: list[FrameType]) -> list[str]:
        """Put captured weights, buffers and variables in place of the live ones; what was not possible, in words."""
        notes: list[str] = []
        here = {f"weight/{name}": tensor for name, tensor in known.named()}
        held = [n for n in self.tensors if n.startswith("weight/")]
        missing = [n.removeprefix("weight/") for n in held if n not in here]
        if missing:
            notes.append(f"{len(missing)} captured weights have no place in the model: {', '.join(missing[:3])}")
        if not held:
            notes.append("the capture holds no weights: those of this run are used")
        for name in held:
            if name in here:
                put(here[name], self.tensors[name])
        facts, numbers = self.facts.get("variables", {}), self.facts.get("numbers", {})
        for label, frame in package.step_frames(frames):
            space = dict(frame.f_locals)
            live = {label + n: t for n, t in values.variables(space)}
            mine = self.overrides.setdefault(id(frame), {})
            for name, tensor in self.tensors.items():
                variable = name.removeprefix("local/")
                if name == variable or not variable.startswith(label) or facts.get(variable, {}).get("graph"):
                    continue
                plain = variable.removeprefix(label)
                if variable in live:
                    put(live[variable], tensor)
                elif plain.isidentifier():
                    mine[plain] = tensor
            for variable, value in numbers.items():
                plain = variable.removeprefix(label)
                if not variable.startswith(label):
                    continue
                if plain.isidentifier() and type(space.get(plain)) is type(value):
                    mine[plain] = value
                elif "." in plain:
                    owner, _, attribute = plain.partition(".")
                    attributes = getattr(space.get(owner), "__dict__", {})
                    if type(attributes.get(attribute)) is type(value):
                        attributes[attribute] = value
        return notes


def put(live: Any, captured: Any) -> None:
    """Give ``live`` the values of ``captured``, whatever its shape was."""
    with torch.no_grad():
        if live.shape == captured.shape and not live.is_inference():
            live.data.copy_(captured)
        else:
            live.data = captured.to(device=live.device, dtype=live.dtype)
