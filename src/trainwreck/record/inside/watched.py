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
ROWS = 8
"""Rows that such a part has at least."""
COUNTED = 8
"""Steps in which gradients that are exactly zero are counted: the wiring is judged after five."""
FACTOR = 4.0
"""How far the norm of a whole gradient may be from what a part of its size stands for if all rows were alike. Beyond
it the part was an odd one (dead units), and the factor found at the last whole look says little."""
SAMPLE = 512
"""Elements of each parameter that are compared before and after a sampled step."""

Deferred = tuple[Any, Callable[[list[float]], dict[str, float]]]
"""Numbers of a row, and what they become at the next flush: its columns. A list, or a 1-d tensor that nobody has read
yet."""


class Watched:
    """What is known of one optimizer. ``index`` counts the optimizers of the process from 0; ``steps`` are those done.

    ``table`` is the table of its rows: ``steps`` of the first optimizer, ``optimizer1`` … of others.
    """

    def __init__(self, optimizer: Any, index: int, names: Names) -> None:
        self.reference = weakref.ref(optimizer)
        self.kind = type(optimizer).__name__
        self.index = index
        self.table = f"optimizer{index}" if index else "steps"
        self.steps = 0
        self.without_grad: list[int] = []
        self.zero_grad: list[int] = []
        self._take(optimizer, names)
        self._before: list[tuple[int, Any]] = []
        self.plain = False
        """Whether the gradients at the last whole look were dense ones of single or double precision on the CPU."""
        self._cuts: list[tuple[int, int, int]] = []
        """The parts that stand for large gradients: number of the parameter, first row, row after the last."""
        self._factors: dict[int, float] = {}
        self._guards: list[int] = [0]
        """Parameters whose gradients are looked at where not all are."""

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
        return self.reference()

    def refresh(self, optimizer: Any, names: Names) -> None:
        """Take in parameters that were added since."""
        count = 0
        for group in optimizer.param_groups:
            count += len(group["params"])
        if count != len(self.parameters):
            self.plain = False
            self._take(optimizer, names)

    def rates(self) -> dict[str, float]:
        """Learning rates: ``lr`` of the first group, ``lr/group1`` … of others that differ from it."""
        groups = self.optimizer.param_groups
        if len(groups) == 1 and type(groups[0].get("lr")) is float:
            return {"lr": groups[0]["lr"]}
        found: dict[str, float] = {}
        for i, group in enumerate(groups[:8]):
            rate = group.get("lr")
            if isinstance(rate, torch.Tensor):
                rate = float(rate) if rate.device.type == "cpu" else None
            if isinstance(rate, (int, float)) and (not i or rate != found.get("lr")):
                found[f"lr/group{i}" if i else "lr"] = float(rate)
        return found

    def plain_row(self, number: int) -> tuple[dict[str, Any], list[Deferred]]:
        """Step ``number`` with learning rates and gradient norms, and what of it is read later."""
        total, columns, _ = self.gradient_norms()
        row = {"step": number, **self.rates(), **({} if total is None else {"grad_norm": total})}
        return row, [] if columns is None else [columns]

    def gradient_norms(self, part: int = 1) -> tuple[float | None, Deferred | None, tuple[str, float] | None]:
        """Norms of the gradients: (over all, by module, the first non-finite one by name).

        On the CPU the first is a number; on a device it is None and the second holds all. With ``part`` above 1 large
        gradients are estimated from a block of one in ``part`` of their rows, another one after each whole look.
        """
        # In the first steps zeros are counted.
        values = self._plain_norms(part) if self.plain and self.steps >= COUNTED else None
        if values is None:
            return self._any_norms()
        total = math.hypot(*values)
        if not math.isfinite(total):
            return self._any_norms()  # the name that is told must be right
        return total, (values, self._columns), None

    def _plain_norms(self, part: int) -> list[float] | None:
        """Norms of all gradients, None where one is missing or no longer of the kind that it was."""
        gradients = [p.grad for p in self.parameters]
        try:
            if part == 1:
                return [n.item() for n in torch._foreach_norm(gradients)]
            for i, first, last in self._cuts:
                gradients[i] = gradients[i][first:last]
            values = [n.item() for n in torch._foreach_norm(gradients)]
        except (TypeError, RuntimeError):
            self.plain = False
            return None
        for i, factor in self._factors.items():
            values[i] *= factor
        return values

    def guarded(self) -> tuple[str, float] | None:
        """The first gradient that is not finite, if the few that are looked at show that there is one.

        What is born in a backward goes on to everything before it, so the first small gradient shows nearly all of it.
        """
        try:
            norms = torch._foreach_norm([self.parameters[i].grad for i in self._guards])
        except (TypeError, RuntimeError):
            return self._any_norms()[2]
        for norm in norms:
            value = norm.item()
            if value - value != 0.0:  # NaN or infinite
                return self._any_norms()[2]
        return None

    def _any_norms(self) -> tuple[float | None, Deferred | None, tuple[str, float] | None]:
        """Norms of gradients of any kind, each whole."""
        present: list[int] = []
        gradients: list[Any] = []
        for i, p in enumerate(self.parameters):
            gradient = p.grad
            if gradient is None:
                self.without_grad[i] += 1
                continue
            present.append(i)
            gradients.append(dense(gradient))
        if not gradients:
            return None, None, None
        norms = torch.stack(foreach_norms(gradients))

        def columns(values: list[float]) -> dict[str, float]:
            return self.by_module("grad_norm", dict(zip(present, values, strict=True)))

        if norms.device.type != "cpu":
            return None, (norms, columns), None
        values = norms.tolist()
        if self.steps < COUNTED:
            for i, value in zip(present, values, strict=True):
                self.zero_grad[i] += value == 0.0
        self.plain = all(is_dense(p.grad) for p in self.parameters)
        total = math.hypot(*values)
        if math.isfinite(total):
            return total, (values, columns), None
        bad = next((i for i, v in zip(present, values, strict=True) if not math.isfinite(v)), present[0])
        return total, (values, columns), (self.names[bad], values[present.index(bad)])

    def cut(self, part: int) -> None:
        """Choose other parts of large gradients, one in ``part`` of the rows, and compare them with the whole."""
        self._cuts, self._factors = [], {}
        small = [i for i, p in enumerate(self.parameters) if p.grad is not None and p.grad.numel() < LARGE]
        small = small or [0]
        self._guards = [small[0]] if len(small) < 3 else [small[0], small[len(small) // 2], small[-1]]
        if part == 1 or not self.plain:
            return
        for i, p in enumerate(self.parameters):
            rows = p.grad.shape[0] // part if p.grad.dim() > 1 else 0
            if p.grad.numel() >= LARGE and rows >= ROWS:
                first = self.steps // 20 % part * rows
                self._cuts.append((i, first, first + rows))
        pieces = [self.parameters[i].grad[a:b] for i, a, b in self._cuts]
        if not pieces:
            return
        wholes = torch._foreach_norm([self.parameters[i].grad for i, _, _ in self._cuts])
        even = math.sqrt(part)
        for (i, _, _), piece, whole in zip(self._cuts, torch._foreach_norm(pieces), wholes, strict=True):
            size = float(piece)
            factor = float(whole) / size if size > 0.0 else even
            self._factors[i] = min(max(factor, even / FACTOR), even * FACTOR) if math.isfinite(factor) else even

    def _columns(self, values: list[float]) -> dict[str, float]:
        return self.by_module("grad_norm", dict(enumerate(values)))

    def by_module(self, what: str, norm_of: dict[int, float]) -> dict[str, float]:
        """Root of the sums of squares by module as ``what/Module.path`` and over all as ``what``.

        ``norm_of``: norm by the number of its parameter.
        """
        found = {what: math.hypot(*norm_of.values())}
        if len(self.groups) > 1:
            for name, members in self.groups.items():
                mine = [norm_of[i] for i in members if i in norm_of]
                if mine:
                    found[f"{what}/{name}"] = math.hypot(*mine)
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
        still = self._still(kept)

        def columns(values: list[float]) -> dict[str, float]:
            count = len(members)
            steps = self.by_module("update_ratio", dict(zip(members, values[:count], strict=True)))
            sizes = self.by_module("update_ratio", dict(zip(members, values[count : 2 * count], strict=True)))
            found = {name: value / sizes[name] for name, value in steps.items() if sizes[name] > 0}
            found |= self.by_module("weight_norm", dict(enumerate(values[2 * count : 2 * count + len(whole)])))
            if still is not None:
                found["unmoved"] = values[-1]
            return found

        parts = [numbers, whole.to(numbers.device)]
        return torch.cat(parts if still is None else [*parts, still.reshape(1).to(numbers)]), columns

    def _still(self, kept: list[tuple[int, Any]]) -> Any:
        """Of the weights in half precision that had a gradient, the share that the step left as they were. None without
        such weights, or under an optimizer that may round at random or keep a precise copy."""
        if not type(self.optimizer).__module__.startswith("torch.optim"):
            return None
        same, count = [], []
        for i, old in kept:
            parameter = self.parameters[i]
            if parameter.dtype in (torch.bfloat16, torch.float16) and parameter.grad is not None:
                pulled = sample_of(parameter.grad) != 0
                same.append(((sample_of(parameter) == old) & pulled).sum())
                count.append(pulled.sum())
        return torch.stack(same).sum() / torch.stack(count).sum().clamp(min=1) if same else None


def dense(tensor: Any) -> Any:
    """What is stored of ``tensor`` here: the values of a sparse one, the local shard of a distributed one."""
    tensor = tensor.detach()
    tensor = getattr(tensor, "_local_tensor", tensor)
    return tensor._values() if tensor.layout != torch.strided and hasattr(tensor, "_values") else tensor


def is_dense(gradient: Any) -> bool:
    """True for a gradient on the CPU, of single or double precision, that can be looked at as it is."""
    plain = type(gradient) is torch.Tensor and gradient.is_cpu and gradient.layout == torch.strided
    return plain and gradient.dtype in (torch.float32, torch.float64)


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
