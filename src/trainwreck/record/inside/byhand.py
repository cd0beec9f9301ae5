"""Loops without an optimizer: weights that change between two backwards were updated by hand, and that is a step.

Asked before every backward until an optimizer has stepped, never after. A step is opened when a backward has ended
(its gradients are complete then) and closed before the next one, if weights have changed in between.
"""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Iterable
from types import CodeType, FrameType
from typing import Any

import torch

from . import callers, graph
from .probe import Step
from .watched import Watched, sample_of

JUDGED = 5
"""Steps after which weights that no update has changed are told: the wiring is judged then as well."""
MAX_LEAVES, MAX_LINES = 4096, 16
Line = tuple[CodeType, int]


def optimizer_alive() -> bool:
    """Whether the program holds an optimizer of torch's. A walk over all live objects."""
    return any(issubclass(type(o), torch.optim.Optimizer) for o in gc.get_objects())


class Update:
    """Stands for the optimizer that the loop does not have."""

    def __init__(self) -> None:
        self.param_groups: list[dict[str, Any]] = [{"params": []}]
        self.state: dict[Any, Any] = {}


class _Leaf:
    """What a weight looked like at the last backward."""

    __slots__ = ("changed", "missed", "pulled", "reference", "sample", "seen", "version")

    def __init__(self, parameter: Any) -> None:
        self.reference = weakref.ref(parameter)
        self.changed = self.pulled = False
        self.seen = self.missed = 0
        """Backwards that reached it; steps whose gradient for it was not zero, and which left it as it was."""
        self.version = -1
        self.sample: Any = None

    def keep(self, parameter: Any) -> None:
        """Remember it as it is. Through ``.data`` the version stays, so values are kept until a version has moved."""
        if self.sample is None and self.changed:
            self.version = parameter._version
        else:
            self.version, self.sample = parameter._version, sample_of(parameter.detach()).clone()

    def moved(self, parameter: Any) -> bool:
        """Whether it has changed since ``keep``."""
        if parameter._version != self.version:
            self.changed, self.sample = True, None
            return True
        moved = self.sample is not None and not torch.equal(sample_of(parameter.detach()), self.sample)
        self.changed = self.changed or moved
        return moved


class ByHand:
    """Opens and closes the steps of a loop that updates its weights itself."""

    def __init__(self, recorder: Any) -> None:
        self.recorder = recorder
        self._leaves: dict[int, _Leaf] = {}
        self._walks = 0
        self._each, self._since = 1, 0
        """Backwards that the last step had, and those since it."""
        self._step: Step | None = None
        self._line: Line | None = None
        """That of the last backward: losses that take turns have updates of their own."""
        self._updates: dict[Line, tuple[Update, Watched]] = {}
        self._told = False

    def before(self, tensor: Any, inputs: Any, caller: FrameType | None) -> None:
        """A backward of a loss is about to begin; ``inputs`` are what ``torch.autograd.grad`` was asked for."""
        if tensor.numel() != 1 or tensor.grad_fn is None:
            return
        if not self.recorder.backwards and optimizer_alive():
            self.recorder.made = True  # made before the recording began
            return
        self._conclude()
        self._since += 1
        frame = callers.user_frame(caller)
        self._line = (frame.f_code, frame.f_lineno) if frame is not None else None
        if inputs is not None:
            self._take(inputs)
        elif self._walks or self.recorder.sampled(self.recorder.step):
            self._walks = max(0, self._walks - 1)
            self._take(getattr(node, "variable", None) for node in graph.nodes(tensor.grad_fn))
        for leaf, parameter in self._alive():
            leaf.keep(parameter)
        if inputs is None and self._since >= self._each:
            _after_backward(tensor.grad_fn, self._open)

    def finish(self) -> None:
        """At the end: was the last step taken?"""
        self._conclude()

    def _take(self, leaves: Iterable[Any]) -> None:
        """Remember the weights that a loss reaches; forget all others where it reaches none that were known."""
        reached = {id(p): p for p in leaves if isinstance(p, torch.Tensor) and p.is_leaf and p.layout == torch.strided}
        if self._updates and reached and not any(i in self._leaves for i in reached):
            self._leaves, self._updates, self._each = {}, {}, 1  # another model
        for ident, parameter in reached.items():
            leaf = self._leaves.get(ident)
            if leaf is None or leaf.reference() is not parameter:
                if len(self._leaves) >= MAX_LEAVES:
                    continue
                leaf = self._leaves[ident] = _Leaf(parameter)
            leaf.seen += 1

    def _alive(self) -> list[tuple[_Leaf, Any]]:
        found = [(leaf, p) for leaf in self._leaves.values() if (p := leaf.reference()) is not None]
        if len(found) < len(self._leaves):
            self._leaves = {id(p): leaf for leaf, p in found}
        return found

    def _open(self) -> None:
        """The backward has ended: its gradients are there."""
        if self.recorder.off or self.recorder.by_hand is not self or self._step is not None:
            return
        update, watched = self._stand_in()
        if update.param_groups[0]["params"]:
            self._step = self.recorder.open_step(watched, update, time.perf_counter())
            if self._step.number <= JUDGED:
                for leaf, p in self._alive():
                    leaf.pulled = _is_pulled(p.grad)

    def _stand_in(self) -> tuple[Update, Watched]:
        """Of the line under way, with what is a weight: a parameter, or a tensor that more than one loss reached."""
        found = self._updates.get(self._line) if self._line is not None else None
        update = found[0] if found is not None else Update()
        held = update.param_groups[0]["params"]
        known = {id(p) for p in held}
        weights = (p for leaf, p in self._alive() if isinstance(p, torch.nn.Parameter) or leaf.seen > 1 or leaf.changed)
        held.extend(p for p in weights if id(p) not in known)
        if found is None:
            found = update, self.recorder.watched_of(update)
            if self._line is not None and len(self._updates) < MAX_LINES:
                self._updates[self._line] = found
        return found

    def _conclude(self) -> None:
        """Have the weights changed since the last backward? Then a step is over."""
        if not self._since:
            return
        alive = self._alive()
        moved = [leaf for leaf, p in alive if leaf.moved(p)]
        step, self._step = self._step, None
        if not moved:
            if step is not None:
                self.recorder.open.pop(id(step.optimizer), None)
                self.recorder.lanes.mine().losses[:0] = step.losses  # they belong to the next one
            self._walks = max(self._walks, 1)  # perhaps other weights are trained by now
            return
        self._each, self._since = self._since, 0
        if step is None:
            step = self._bare()
        else:
            self._judge(step, alive)
        self.recorder.close_step(step)

    def _bare(self) -> Step:
        """A step of which only its losses are known: no probe is told of it."""
        update, watched = self._stand_in()
        number = watched.steps + 1
        self.recorder.step = max(self.recorder.step, number)
        return Step(update, watched, number, False, {"step": number}, self.recorder.lanes.take(), aside=True)

    def _judge(self, step: Step, alive: list[tuple[_Leaf, Any]]) -> None:
        """Weights that get a gradient and that no update has changed in the first steps."""
        if step.number > JUDGED or self._told:
            return
        for leaf, _ in alive:
            leaf.missed += leaf.pulled and not leaf.changed
        left = [p for leaf, p in alive if not leaf.changed and leaf.missed >= JUDGED - 1]
        if step.number == JUDGED and left and 2 * len(left) < len(alive):
            self._told = True
            names = [self.recorder.names.of(p) or f"a tensor of shape {tuple(p.shape)}" for p in left]
            text = f"{len(left)} of {len(alive)} weights get a gradient, and no update changes them: "
            text += ", ".join(names[:4])
            self.recorder.event("live-not-in-optimizer", text, names[0], step=step.number)


def _is_pulled(gradient: Any) -> bool:
    return gradient is not None and gradient.layout == torch.strided and bool(sample_of(gradient).any())


def _after_backward(node: Any, then: Any) -> None:
    """Call ``then`` when the backward that begins at ``node`` has ended; it is called in the same thread."""

    def begins(_: Any) -> None:
        handle.remove()
        torch.autograd.Variable._execution_engine.queue_callback(ends)

    def ends() -> None:
        try:
            then()
        except Exception:
            return

    handle = node.register_prehook(begins)
