"""The autograd graph under a loss, read without running anything: which operations lead to it, and what they saved.

Names of operations are torch's own (``LogSoftmaxBackward0``). Saved tensors are looked at only while nobody has hooks
on them: with activation checkpointing or offloading a look would run the forward again.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import torch

from . import callers

MAX_NODES = 1500
"""Nodes that are looked at; the part of a large graph that is nearest to the loss (about 2 µs each)."""
SHAPES = frozenset(
    f"{name}Backward{version}"
    for name in (
        *("View", "Reshape", "UnsafeView", "ReshapeAlias", "Squeeze", "Unsqueeze", "Transpose", "Permute", "T"),
        *("Clone", "ToCopy", "Expand", "Select", "Slice", "Contiguous", "Alias", "Flatten", "MovedimBackward"),
    )
    for version in (0, 1, 2)
)
"""Operations that change the shape, the order or the type, not the values."""
PRODUCTS = frozenset(("BmmBackward0", "MmBackward0"))
"""Products of two matrices: inputs 0 and 1 are the factors."""


class SavedTensors:
    """Whether saved tensors may be looked at: no longer once anybody has put hooks on them."""

    def __init__(self) -> None:
        self.readable = True

    def attach(self) -> None:
        """Notice ``saved_tensors_hooks`` and what builds on it."""

        def seen(_: Any, __: Any) -> None:
            self.readable = False

        callers.watch(torch.autograd.graph.saved_tensors_hooks, "__enter__", seen)

    def of(self, node: Any, name: str) -> Any:
        """What ``node`` saved as ``name``, None if it did not, has freed it, or nobody may look."""
        if not self.readable:
            return None
        try:
            return getattr(node, f"_saved_{name}")
        except (AttributeError, RuntimeError):
            return None


def nodes(root: Any, most: int = MAX_NODES) -> list[Any]:
    """The nodes under ``root``, nearest first, each once."""
    found: list[Any] = []
    seen, todo = {root}, deque([root])
    while todo and len(found) < most:
        node = todo.popleft()
        found.append(node)
        for child, _ in node.next_functions:
            if child is not None and child not in seen:
                seen.add(child)
                todo.append(child)
    return found


def kind(node: Any) -> str:
    """``LogSoftmaxBackward0``; empty for None."""
    return str(node.name()) if node is not None else ""


def child(node: Any, index: int = 0) -> Any:
    """What made input ``index`` of the operation; None for a constant."""
    following = node.next_functions
    return following[index][0] if index < len(following) else None


def source(node: Any, index: int = 0) -> Any:
    """Like ``child``, past operations that only change shapes."""
    found = child(node, index)
    for _ in range(12):
        if found is None or kind(found) not in SHAPES:
            return found
        found = child(found)
    return found


def product(node: Any, most: int = 12) -> Any:
    """The product of two batches of matrices that ``node`` was made from by scaling, masking and the like; or None."""
    for _ in range(most):
        if node is None or kind(node) in PRODUCTS:
            return node
        node = next((n for n, _ in node.next_functions if n is not None), None)
    return None


def reached(node: Any, wanted: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Those pairs of ``wanted`` whose node ``node`` was computed from."""
    behind = set(nodes(node))
    return [pair for pair in wanted if pair[0] in behind]


def shape(node: Any) -> tuple[int, ...]:
    """Shape of what the operation returned; empty if unknown."""
    try:
        return tuple(int(n) for n in node._input_metadata[0].shape)
    except (AttributeError, IndexError, TypeError, RuntimeError):
        return ()


def terms(root: Any, saved: SavedTensors, most: int = 64) -> list[tuple[Any, float]]:
    """Every node of the sum that makes up the loss, with the factor that it has in the loss.

    A node stands before those that it is made of: of ``loss = rec + 0.1 * kl`` the whole, ``rec``, the product, ``kl``.
    Factors that are tensors with a gradient end the walk.
    """
    found: list[tuple[Any, float]] = []
    todo: deque[tuple[Any, float]] = deque([(root, 1.0)])
    while todo and len(found) < most:
        node, weight = todo.popleft()
        found.append((node, weight))
        name = kind(node)
        if name == "AddBackward0" or name == "SubBackward0":
            sign = -1.0 if name == "SubBackward0" else 1.0
            alpha = saved.of(node, "alpha")
            second = sign * float(alpha) if isinstance(alpha, (int, float)) else sign
            for index, factor in ((0, 1.0), (1, second)):
                if (part := child(node, index)) is not None and shape(part) in ((), (1,)):
                    todo.append((part, weight * factor))
        elif name == "MulBackward0" or name == "DivBackward0":
            inputs = [child(node, 0), child(node, 1)]
            other = saved.of(node, "other" if inputs[0] is not None else "self")
            number = scalar(other)
            if None in inputs and number is not None and (name == "MulBackward0" or (number and inputs[0] is not None)):
                part = inputs[0] or inputs[1]
                if part is not None and shape(part) in ((), (1,)):
                    todo.append((part, weight * number if name == "MulBackward0" else weight / number))
        elif name == "NegBackward0" and (part := child(node)) is not None:
            todo.append((part, -weight))
    return found


def scalar(value: Any) -> float | None:
    """A number on the CPU, None otherwise."""
    if isinstance(value, torch.Tensor):
        return float(value) if value.numel() == 1 and value.device.type == "cpu" else None
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
