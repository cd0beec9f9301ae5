"""One optimizer: its parameters by module, gradient norms of every step, how far a step moves the weights."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from typing import Any

import torch

from .names import Names, groups

MAX_GROUPS = 24
"""Modules whose norms are kept apart; deeper ones are summed into these (a page of a heat map)."""
LARGE = 1 << 14
"""Elements of a gradient from which a part of its rows may stand for all."""
SAMPLE = 512
"""Elements of each parameter that are compared before and after a sampled step."""

Deferred = tuple[Any, Callable[[list[float]], dict[str, float]]]
"""A 1-d tensor that nobody has read yet, and what its numbers become: columns of the row."""


class Watched:
    """What is known of one optimizer. ``index`` counts the optimizers of the process from 0; ``steps`` are those done.

    ``prefix`` stands before the names of its columns: empty for the first optimizer.
    """

    def __init__(self, optimizer: Any, index: int, names: Names) -> None:
        self._optimizer = weakref.ref(optimizer)
        self.kind = type(optimizer).__name__
        self.index = index
        self.prefix = f"optimizer{index}/" if index else ""
        self.steps = 0
        self.without_grad: list[int] = []
        self.zero_grad: list[int] = []
        self._take(optimizer, names)
        self._before: list[tuple[int, Any]] = []

    def _take(self, optimizer: Any, names: Names) -> None:
        self.parameters = [p for group in optimizer.param_groups for p in group["params"]]
        names.scan(self.parameters)
        self.names = [names.of(p) or f"parameter {i}" for i, p in enumerate(self.parameters)]
        self.groups = groups(self.names, MAX_GROUPS)
        self.without_grad += [0] * (len(self.parameters) - len(self.without_grad))
        self.zero_grad += [0] * (len(self.parameters) - len(self.zero_grad))
        self.numel = sum(p.numel() for p in self.parameters)
        self.on_cpu = all(p.device.type == "cpu" for p in self.parameters)

    @property
    def optimizer(self) -> Any:
        """The optimizer itself, None if the user has dropped it."""
        return self._optimizer()

    def refresh(self, names: Names) -> None:
        """Take in parameters that were added since."""
        optimizer = self.optimizer
        if optimizer is not None and sum(len(g["params"]) for g in optimizer.param_groups) != len(self.parameters):
            self._take(optimizer, names)

    def rates(self) -> dict[str, float]:
        """Learning rates: ``lr`` of the first group, ``lr/group1`` … of others that differ from it."""
        found: dict[str, float] = {}
        for i, group in enumerate(self.optimizer.param_groups[:8]):
            rate = group.get("lr")
            if isinstance(rate, torch.Tensor):
                rate = float(rate) if rate.device.type == "cpu" else None
            if isinstance(rate, (int, float)) and (not i or rate != found.get("lr")):
                found[f"lr/group{i}" if i else "lr"] = float(rate)
        return found

    def gradient_norms(self, part: int = 1) -> tuple[dict[str, float], Deferred | None, tuple[str, float] | None]:
        """Norms of the gradients: (columns, what is to be read later, the first non-finite one by name).

        On the CPU the numbers are there at once; on a device they are left unread in the second part. With ``part``
        above 1 large gradients are estimated from every ``part``-th row.
        """
        present: list[int] = []
        gradients: list[Any] = []
        scales: dict[int, float] = {}
        for i, p in enumerate(self.parameters):
            gradient = p.grad
            if gradient is None:
                self.without_grad[i] += 1
                continue
            present.append(i)
            rows = dense(gradient)
            if part > 1 and rows.dim() > 1 and rows.numel() >= LARGE and rows.shape[0] >= 8 * part:
                scales[i] = math.sqrt(part)
                rows = rows[self.steps // 20 % part :: part]
            gradients.append(rows)
        if not gradients:
            return {}, None, None
        norms = torch.stack(foreach_norms(gradients))

        def columns(values: list[float]) -> dict[str, float]:
            return self.by_module("grad_norm", dict(zip(present, values, strict=True)))

        if norms.device.type != "cpu":
            return {}, (norms, columns), None
        values = norms.tolist()
        if scales:
            values = [v * scales.get(i, 1.0) for i, v in zip(present, values, strict=True)]
        if self.steps < 8:
            for i, value in zip(present, values, strict=True):
                self.zero_grad[i] += value == 0.0
        if math.isfinite(sum(values)):
            return columns(values), None, None
        bad = next((i for i, v in zip(present, values, strict=True) if not math.isfinite(v)), present[0])
        return columns(values), None, (self.names[bad], values[present.index(bad)])

    def by_module(self, what: str, squares_of: dict[int, float]) -> dict[str, float]:
        """Root of the sums of squares by module as ``what/Module.path`` and over all as ``what``.

        ``squares_of``: norm by the number of its parameter.
        """
        found = {what: math.sqrt(sum(v * v for v in squares_of.values()))}
        if len(self.groups) > 1:
            for name, members in self.groups.items():
                mine = [squares_of[i] for i in members if i in squares_of]
                if mine:
                    found[f"{what}/{name}"] = math.sqrt(sum(v * v for v in mine))
        return found

    def remember(self) -> None:
        """Keep some elements of every parameter, to see how far the step moves them."""
        self._before = [(i, sample_of(p).clone()) for i, p in enumerate(self.parameters) if p.grad is not None]

    def moved(self) -> Deferred | None:
        """How far the step moved what was remembered: columns ``update_ratio[/module]``, ``weight_norm[/module]``."""
        kept, self._before = self._before, []
        if not kept:
            return None
        old = [value.float() for _, value in kept]
        new = [sample_of(self.parameters[i]).float() for i, _ in kept]
        numbers = torch.stack([*foreach_norms(torch._foreach_sub(new, old)), *foreach_norms(old)])
        whole = torch.stack(foreach_norms([dense(p.detach()) for p in self.parameters]))
        members = [i for i, _ in kept]

        def columns(values: list[float]) -> dict[str, float]:
            count = len(members)
            steps = self.by_module("update_ratio", dict(zip(members, values[:count], strict=True)))
            sizes = self.by_module("update_ratio", dict(zip(members, values[count : 2 * count], strict=True)))
            found = {name: value / sizes[name] for name, value in steps.items() if sizes[name] > 0}
            found |= self.by_module("weight_norm", dict(enumerate(values[2 * count :])))
            return found

        return torch.cat([numbers, whole.to(numbers.device)]), columns


def dense(tensor: Any) -> Any:
    """What is stored of ``tensor`` here: the values of a sparse one, the local shard of a distributed one."""
    tensor = tensor.detach()
    tensor = getattr(tensor, "_local_tensor", tensor)
    return tensor._values() if tensor.layout != torch.strided and hasattr(tensor, "_values") else tensor


def foreach_norms(tensors: list[Any]) -> list[Any]:
    """The 2-norm of each, in single precision at least, as unread 0-d tensors."""
    if any(t.dtype in (torch.float16, torch.bfloat16) for t in tensors):
        return list(torch._foreach_norm(tensors, 2, dtype=torch.float32))
    norms = list(torch._foreach_norm(tensors))
    if any(n.dtype != norms[0].dtype or n.device != norms[0].device for n in norms):
        norms = [n.to(device=norms[0].device, dtype=torch.float32) for n in norms]
    return norms


def sample_of(parameter: Any) -> Any:
    """Up to ``SAMPLE`` elements spread over ``parameter``, as a view."""
    flat = dense(parameter).flatten()
    return flat[:: max(1, flat.numel() // SAMPLE)][:SAMPLE]
