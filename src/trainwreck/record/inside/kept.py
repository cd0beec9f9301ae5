"""Values kept with their graph: lists that grow by a tensor that requires a gradient, sums that never end.

Looked for among the variables of the user's frame and the attributes of its objects, at a few steps far apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from . import callers, graph
from .probe import Backward, Probe
from .variables import local_variables

MAX_OBJECTS = 200
LEAST = 8
"""Entries of a list from which it is worth counting."""
CHAIN = 24
"""Sums in a row under one variable: no loss has so many terms in one line."""


class Kept(Probe):
    """Event ``live-graph-kept``."""

    name = "kept graphs"
    rarely = frozenset(("backward",))

    def __init__(self, recorder: Any) -> None:
        super().__init__(recorder)
        self._lengths: dict[str, list[tuple[int, int]]] = {}
        self._next = 20

    def backward(self, moment: Backward) -> None:
        """At steps 20, 40, 80, 160 …: what has grown since?"""
        if moment.step < self._next or moment.frame is None:
            return
        self._next = 2 * moment.step
        with local_variables(moment.frame) as found:
            self._lists(found, moment)
            self._sums(found, moment)

    def _lists(self, found: dict[str, Any], moment: Backward) -> None:
        for path, items in containers(found):
            if len(items) < 2 or not has_graph(items[-1]) or not has_graph(items[0]):
                continue
            seen = self._lengths.setdefault(path, [])
            seen.append((moment.step, len(items)))
            if len(items) >= LEAST and len(seen) >= 2 and len(items) >= 1.5 * seen[-2][1]:
                text = (
                    f"{path} holds {len(items)} tensors with their graph and grows: each keeps the activations of its"
                    " forward alive"
                )
                self.tell(
                    "live-graph-kept", text, path, frame=moment.frame, variable=path.partition(".")[0], step=moment.step
                )

    def _sums(self, found: dict[str, Any], moment: Backward) -> None:
        for name, value in list(found.items()):
            if not isinstance(value, torch.Tensor) or value.numel() != 1 or value.grad_fn is None:
                continue
            if value is not moment.loss and chain(value.grad_fn) >= CHAIN:
                text = f"{name} is a sum over all steps that keeps the graph of each: add .item() or a detached value"
                self.tell("live-graph-kept", text, name, frame=moment.frame, variable=name, step=moment.step)


def containers(found: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Lists and deques among variables, in dictionaries, and among the attributes of plain objects, by path."""
    count = 0
    for name, value in list(found.items()):
        if name.startswith("__") or isinstance(value, (torch.Tensor, torch.nn.Module, type)):
            continue
        count += 1
        if count > MAX_OBJECTS:
            return
        if is_list(value):
            yield name, value
            continue
        members = value if isinstance(value, dict) else getattr(value, "__dict__", None)
        if not isinstance(members, dict) or len(members) > 64 or type(value).__module__.split(".")[0] == "torch":
            continue
        for key, item in list(members.items()):
            if is_list(item):
                yield f"{name}.{key}", item
            elif callers.is_own(type(item)):
                # A meter or a log that the trainer holds.
                for inner, held in list(getattr(item, "__dict__", {}).items())[:64]:
                    if is_list(held):
                        yield f"{name}.{key}.{inner}", held


def is_list(value: Any) -> bool:
    """True for a list or deque with something in it."""
    return type(value).__name__ in ("list", "deque") and len(value) > 0


def has_graph(value: Any) -> bool:
    """True for a tensor that is a result with a graph behind it."""
    return isinstance(value, torch.Tensor) and value.grad_fn is not None


def chain(node: Any) -> int:
    """How many sums follow one another along the longest side."""
    best = 0
    for side in (0, 1):
        count, current = 0, node
        while current is not None and graph.kind(current) == "AddBackward0" and count <= CHAIN:
            count += 1
            following = graph.child(current, side)
            current = following if following is not None else graph.child(current, 1 - side)
        best = max(best, count)
    return best
