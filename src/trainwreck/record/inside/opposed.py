"""Gradient reversal: a part of the network is trained against another, so their common loss may well rise.

At the first sampled steps a hook on each custom function of the program compares the gradient that comes in with that
which goes out. It returns nothing, and goes with the graph.
"""

from __future__ import annotations

from typing import Any

import torch

from . import graph
from .probe import Backward, Probe

LOOKS, WITHOUT = 20, 3
"""Sampled steps that are looked at: the strength of a reversal often begins at zero. So many without such a function
are enough."""
MOST = 4
"""Functions of one backward."""
OPPOSITE = -0.999
"""Cosine between the two gradients below which the one is the other reversed."""


class Opposed(Probe):
    """Event ``moving-target`` at the first gradient that is found reversed."""

    name = "opposed"
    rarely = frozenset(("backward",))

    def __init__(self, recorder: Any) -> None:
        super().__init__(recorder)
        self._looks = self._without = 0

    def backward(self, moment: Backward) -> None:
        """Put the hooks onto the custom functions under this loss."""
        root = moment.loss.grad_fn
        if root is None or not moment.sampled or self._looks >= LOOKS or self._without >= WITHOUT:
            return
        if "moving-target" in self.recorder.told or moment.loss.device.type != "cpu":
            return
        self._looks += 1
        found = [node for node in graph.nodes(root) if _custom(node)][:MOST]
        self._without = 0 if found else self._without + 1
        for node in found:
            node.register_hook(self._hook(graph.kind(node).removesuffix("Backward"), moment.step))

    def _hook(self, name: str, step: int) -> Any:
        def compare(given: Any, received: Any) -> None:
            try:
                if reversed_(given, received):
                    text = f"{name} reverses the gradient: what is behind it is trained against what is before it"
                    self.tell("moving-target", text, None, step=step)
            except Exception as problem:
                self.recorder.faults.add(self.name, problem)

        return compare


def _custom(node: Any) -> bool:
    """True for a function that the program defines, not torch (checkpointing, compiled regions) or a library."""
    cls = getattr(node, "_forward_cls", None)
    return isinstance(node, torch.autograd.function.BackwardCFunction) and not str(
        getattr(cls, "__module__", "torch")
    ).startswith("torch.")


def reversed_(given: Any, received: Any) -> bool:
    """Whether the only gradient that goes on (``given``) is the one that came (``received``), turned round."""
    onward = [t for t in given if t is not None]
    came = [t for t in received if t is not None]
    if len(onward) != 1 or len(came) != 1 or onward[0].shape != came[0].shape or onward[0].numel() < 2:
        return False
    one, other = onward[0].detach().double().flatten(), came[0].detach().double().flatten()
    size = float(one.norm() * other.norm())
    return size > 0.0 and float(one @ other) < OPPOSITE * size
