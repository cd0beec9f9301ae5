"""Mixed precision: the loss scale, steps that the scaler skipped, and the loss as it was before scaling."""

from __future__ import annotations

import weakref
from types import FrameType
from typing import Any

import torch

from . import alarms, callers
from .alarms import Alarm
from .probe import Probe

TABLE = "amp"
FLOOR = 1.0
"""A loss scale at or below this leaves no room for small gradients, and comes from overflow after overflow."""
SKIPPED_IN_A_ROW = 20
"""Skipped steps without one that was taken: a scaler that starts at 65,536 needs at most 17 to come down to 1."""


class LossScale(Probe):
    """Table ``amp``: ``loss_scale`` and ``skipped`` (0 or 1) of every update of the scaler."""

    name = "loss scale"

    def __init__(self, recorder: Any) -> None:
        super().__init__(recorder)
        self._scaler: weakref.ref[Any] | None = None
        self._last_step = 0
        self._in_a_row = 0
        self._scales: list[tuple[int, Any]] = []
        self._steps = self._unscaled_late = 0
        self._place: callers.Place | None = None

    def attach(self) -> None:
        """Listen to ``GradScaler.scale`` and ``.update``."""
        scaler = torch.amp.GradScaler
        callers.watch(scaler, "scale", self._scaling)
        callers.watch(scaler, "update", self._updating)
        callers.watch(scaler, "step", self._stepping)

    def flush(self) -> None:
        """Is the scale at its floor?"""
        scales, self._scales = self._scales, []
        if not scales or not self.recorder.alarms.once(alarms.SCALE_FLOOR):
            return
        step, last = scales[-1]
        value = float(last)
        if value <= FLOOR:
            self.recorder.alarm(
                Alarm(
                    alarms.SCALE_FLOOR,
                    "warning",
                    step,
                    value,
                    None,
                    f"the loss scale has fallen to {value:g}",
                    "gradients overflow at every scale: no step will be taken, or small gradients vanish",
                    "look for the first module whose output overflows in half precision, or use bfloat16",
                )
            )

    def _stepping(self, scaler: Any, frame: FrameType | None) -> None:
        """Does the step itself divide the gradients by the scale? What came before was done to scaled ones."""
        if not scaler.is_enabled() or self.recorder.off:
            return
        self._steps += 1
        states = getattr(scaler, "_per_optimizer_states", None) or {}
        if not any(getattr(s.get("stage"), "name", "") == "UNSCALED" for s in list(states.values())):
            self._unscaled_late += 1
            self._place = self._place or callers.place(callers.user_frame(frame))

    def close(self) -> None:
        """How often gradients were scaled until the scaler's step."""
        if self._unscaled_late and self._unscaled_late == self._steps:
            facts: dict[str, Any] = dict(zip(("path", "line"), self._place, strict=True)) if self._place else {}
            text = f"the gradients carry the loss scale until the scaler's own step, {self._steps} times"
            self.recorder.event("scaled-until-step", text, None, value=self._steps, **facts)

    def _scaling(self, scaler: Any, _: Any) -> None:
        if scaler.is_enabled():
            self._scaler = weakref.ref(scaler)
            self.recorder.lanes.mine().scale = self._scaler

    def _updating(self, scaler: Any, _: Any) -> None:
        if not scaler.is_enabled() or self.recorder.off:
            return
        taken = self.recorder.step > self._last_step
        self._last_step = self.recorder.step
        self._in_a_row = 0 if taken else self._in_a_row + 1
        if not taken:
            self.recorder.drop_losses()
        scale = scale_of(scaler)
        if isinstance(scale, torch.Tensor):
            scale = scale.detach().clone()
        self._scales.append((self.recorder.step, scale))
        self.recorder.row(TABLE, {"step": self.recorder.step, "loss_scale": scale, "skipped": 0.0 if taken else 1.0})
        if self._in_a_row == SKIPPED_IN_A_ROW:
            text = f"the loss scaler has skipped {SKIPPED_IN_A_ROW} steps in a row"
            self.recorder.event("live-every-step-skipped", text, None)


def scale_of(scaler: Any) -> Any:
    """The scale as a number or as an unread tensor."""
    scale = scaler._scale
    if scale is None:
        return float(scaler._init_scale)
    return float(scale) if scale.device.type == "cpu" else scale
