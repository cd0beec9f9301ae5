"""What a probe is: one thing that is watched, told of the moments of a training by the recorder.

A probe overrides the moments that it needs; the recorder calls only those, and contains what goes wrong in them. All
are called in the user's thread with gradients off. A probe reads nothing from a device outside ``flush`` (on the CPU it
may), keeps no reference to a user's tensor longer than it says, and draws no random number.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch

from . import callers

if TYPE_CHECKING:
    from .recorder import Recorder
    from .watched import Deferred, Watched

Row = dict[str, Any]
"""One step of one optimizer: column name to a number, or to a 0-d tensor that nobody has read yet."""


@dataclass(slots=True)
class Backward:
    """One call of ``loss.backward()``, before it runs.

    ``frame`` is the code that called it, the innermost frame that is not torch's or another library's where there is
    one. ``number`` counts backwards from 1, ``step`` is the optimizer step that it works for. ``scale`` is the loss
    scale in ``loss`` (a number, or a tensor on the device), None without a scaler. Valid during the call only.
    """

    loss: Any
    frame: FrameType | None
    number: int
    step: int
    sampled: bool
    scale: Any = None
    value: float | None = None
    """The loss as a number, scaled as it is; None on a device or for a loss of several elements."""
    caller: FrameType | None = None
    """The frame that asked for ``backward``, a library's where one did."""
    accumulates: bool = True
    """Whether gradients go into the leaves; False for ``torch.autograd.grad``, which returns them."""


@dataclass(slots=True)
class Step:
    """One call of ``optimizer.step()``: ``number`` from 1 for this optimizer; ``row`` is what will be written of it."""

    optimizer: Any
    watched: Watched
    number: int
    sampled: bool
    row: Row = field(default_factory=dict)
    losses: list[Any] = field(default_factory=list)
    """Losses of the backwards since the last step of any optimizer (empty before a closure has run): numbers on the
    CPU, unread tensors on a device."""
    deferred: list[Deferred] = field(default_factory=list)
    """1-d tensors that are read at the next flush, each with what its numbers become in the row."""
    began: float = 0.0
    """``time.perf_counter()`` before the probes looked at it."""
    backward: float = 0.0
    """The same at the last backward of the thread, 0 before the first."""
    aside: bool = False
    """Whether it belongs to another training than the one that probes look at: no probe is told."""


class Probe:
    """Base of all probes. ``name`` says in reports what is no longer recorded when it is switched off."""

    name = "probe"
    rarely: frozenset[str] = frozenset()
    """Moments at which it is called at sampled steps only (``backward`` also with a loss that is not finite,
    ``after_step`` also before a sampled one, and at the first ten): calls that do nothing cost most of what a recorder
    costs."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def tell(
        self,
        kind: str,
        text: str,
        module: str | None = None,
        *,
        frame: FrameType | None = None,
        variable: str | None = None,
        **facts: Any,
    ) -> None:
        """Write an event, once per kind: at the line of ``frame``, or the one there that made ``variable``."""
        if kind in self.recorder.told:
            return
        self.recorder.told.add(kind)
        place = callers.place(frame)
        line = callers.assigned(frame, variable) if frame is not None and variable is not None else None
        if place is not None:
            facts = {"path": place[0], "line": line or place[1], **facts}
        self.recorder.event(kind, text, module, variable=variable, **facts)

    def attach(self) -> None:
        """Once, when torch has just been imported: install what is needed."""

    def backward(self, moment: Backward) -> None:
        """Before a backward."""

    def before_step(self, step: Step) -> None:
        """Before an optimizer's step: gradients are complete."""

    def after_step(self, step: Step) -> None:
        """After it: weights are new. ``step.row`` is written after this."""

    def flush(self) -> None:
        """Every few steps: the only moment at which a device may be read."""

    def close(self) -> None:
        """At exit, before the last flush."""


MOMENTS = ("backward", "before_step", "after_step", "flush", "close")


def mean(losses: list[Any]) -> Any:
    """The mean over the micro-batches of one step; a tensor if one of them is unread, None of none."""
    if not losses:
        return None
    if any(isinstance(x, torch.Tensor) for x in losses):
        device = next(x.device for x in losses if isinstance(x, torch.Tensor))
        return torch.stack([torch.as_tensor(x, device=device).float() for x in losses]).mean()
    return sum(losses) / len(losses)
