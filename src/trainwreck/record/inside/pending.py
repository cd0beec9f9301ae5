"""Rows that hold tensors nobody has read yet."""

from __future__ import annotations

from typing import Any

import torch

from .watched import Deferred


def read(rows: list[tuple[str, dict[str, Any], list[Deferred]]]) -> list[tuple[str, dict[str, float]]]:
    """The rows with every tensor read, in one transfer for each device and kind of tensor."""
    waiting: dict[Any, list[Any]] = {}
    for _, row, deferred in rows:
        for value in [*row.values(), *(numbers for numbers, _ in deferred)]:
            if isinstance(value, torch.Tensor):
                waiting.setdefault(value.device, []).append(value.detach().flatten().float())
    numbers = {device: iter(torch.cat(parts).tolist()) for device, parts in waiting.items()}
    done: list[tuple[str, dict[str, float]]] = []
    for table, row, deferred in rows:
        plain: dict[str, float] = {}
        for name, value in row.items():
            if isinstance(value, torch.Tensor):
                plain[name] = next(numbers[value.device])
            elif value is not None:
                plain[name] = float(value)
        for held, columns in deferred:
            if isinstance(held, torch.Tensor):
                held = [next(numbers[held.device]) for _ in range(held.numel())]
            plain.update(columns(held))
        done.append((table, plain))
    return done
