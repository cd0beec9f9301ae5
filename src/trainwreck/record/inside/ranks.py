"""What a comparison of ranks needs afterwards: who takes part, and the weights' norms before anything has been trained.

Nothing is sent between ranks (a collective of ours could hang the program): every rank writes its own file, and the
reader puts them side by side.
"""

from __future__ import annotations

import sys
from typing import Any

import torch

from . import callers
from .probe import Probe, Step
from .variables import local_variables
from .watched import dense, foreach_norms, sample_of

MAX_FRAMES = 30
MOVES, LOOKED_AT = 2, 400
"""Times that weights moved between two steps, of the first so many, from which that belongs to the method."""


class Ranks(Probe):
    """One event for each process of a group, and the columns ``start_norm[/module]`` of the first step."""

    name = "ranks"
    rarely = frozenset(("before_step", "after_step"))

    def __init__(self, recorder: Any) -> None:
        super().__init__(recorder)
        self._left: Any = None
        """A few weights as the last step left them."""
        self._moves = 0

    def after_step(self, step: Step) -> None:
        """In a group: what do the weights look like now."""
        first = step.watched.parameters[0] if step.watched.parameters else None
        if not self.rarely and not step.watched.index and first is not None and first.is_cpu:
            self._left = sample_of(dense(first)).clone()

    def _outside(self, step: Step) -> None:
        """Have the weights moved since the last step? They are averaged from time to time (local SGD)."""
        if self._left is None or step.watched.index or self._moves >= MOVES or step.number > LOOKED_AT:
            return
        if not torch.equal(self._left, sample_of(dense(step.watched.parameters[0]))):
            self._moves += 1
            if self._moves == MOVES:
                self.tell("weights-moved-outside", "something other than the optimizer changes the weights", None)

    def before_step(self, step: Step) -> None:
        """At the first step of each optimizer."""
        if step.number > 1:
            self._outside(step)
            return
        member = group()
        if member is None:
            return
        if self.rarely:
            self.rarely = frozenset()  # in a group every step counts
            self.recorder._index()
        parameters = step.watched.parameters
        sharded = any(hasattr(p, "_local_tensor") for p in parameters) or _flat(step.watched.names)
        if not step.watched.index:
            wrapped = any(type(m).__name__ == "DistributedDataParallel" for _, m in self.recorder.names.modules())
            text = f"rank {member['rank']} of {member['world']} ({member['backend']})"
            place = self._made(parameters)
            facts: dict[str, Any] = {"model": list(place)} if place is not None else {}
            self.recorder.event("rank", text, None, sharded=sharded, ddp=wrapped, **member, **facts)
        if sharded:
            return
        norms = torch.stack(foreach_norms([dense(p) for p in parameters]))

        def columns(values: list[float]) -> dict[str, float]:
            return step.watched.by_module("start_norm", dict(enumerate(values)))

        step.deferred.append((norms, columns))

    def _made(self, parameters: list[Any]) -> callers.Place | None:
        """The line that gave the trained model to a variable of the frames under way."""
        held = {id(p) for p in parameters}
        frame = callers.here()
        for _ in range(MAX_FRAMES):
            if frame is None:
                break
            if callers.is_users(frame.f_code.co_filename):
                with local_variables(frame) as variables:
                    models = [n for n, v in list(variables.items()) if _holds(v, held)]
                lines = [line for n in models if (line := callers.assigned(frame, n)) is not None]
                if lines:
                    return callers.relative(frame.f_code.co_filename), min(lines)
            frame = frame.f_back
        return None


def _holds(value: Any, held: set[int]) -> bool:
    return isinstance(value, torch.nn.Module) and any(id(p) in held for p in value.parameters())


def in_a_group() -> bool:
    """True in a process of a group of at least two."""
    return group() is not None


def group() -> dict[str, Any] | None:
    """Rank, world size and backend of the default process group, None outside one of at least two."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    world = int(distributed.get_world_size())
    if world < 2:
        return None
    return {"rank": int(distributed.get_rank()), "world": world, "backend": str(distributed.get_backend())}


def _flat(names: list[str]) -> bool:
    """True for the flat parameters of the first FSDP, of which each rank holds another part."""
    return any("_flat_param" in name for name in names)
