"""Is what a custom function gives back its derivative? Measured in a copy of the training (``samples``).

What the functions are given in the second step is noted; in the copy they are asked again at points to either side.
What is meant to be no derivative is left alone: functions that pass their input on (reversed or scaled gradients), that
are flat (rounding, signs: straight-through), that are made of straight pieces (surrogates of a clamp), that draw random
numbers.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import torch

from . import callers, graph

MOST_FUNCTIONS, MOST_NUMBERS = 8, 1_000_000
STEP = 1e-2
"""Size of the way to either side, in root mean squares of the input: in single precision the difference keeps four
digits."""
STEADY = 0.03
"""Relative difference of the slopes at the whole and the half way up to which the function is smooth there."""
WRONG = 0.2
"""Share of the slope by which it and the derivative differ where that is no approximation (an inner solver that stops
early is off by some per cent)."""
STRAIGHT = 0.9
"""Share of the elements that lie on straight pieces, or are passed on, from which the function is such a one."""
PASSED = 0.1
DIRECTIONS = 3
SCALES = (1.0, 4.0)
"""What comes out of other operations is made so many times larger: near zero all curves are straight."""
APPLY = torch.autograd.Function.apply.__func__.__code__

Found = dict[str, Any]
Given = dict[Any, tuple[Any, tuple[Any, ...]]]
"""For each function the module around its first call and what it was called with."""


class Functions:
    """The custom functions of the program that a loss came from, and what they are given in the next step."""

    def __init__(self) -> None:
        self._kinds: list[Any] = []
        self._given: Given = {}
        self._originals: dict[Any, Any] = {}

    @property
    def listening(self) -> bool:
        """Whether functions are told of at the moment."""
        return bool(self._originals)

    def find(self, root: Any) -> None:
        """Those under a loss whose forward and backward are the program's own."""
        for node in graph.nodes(root):
            kind = getattr(node, "_forward_cls", None)
            if kind is not None and kind not in self._kinds and _users(kind):
                self._kinds.append(kind)

    def listen(self) -> None:
        """Note what each is given, at the moment at which torch looks up its forward: nothing else is changed."""
        for kind in self._kinds[:MOST_FUNCTIONS]:
            original = kind.__dict__["forward"]
            if isinstance(original, staticmethod):
                self._originals[kind] = original
                kind.forward = _Asked(original, kind, self._given)

    def taken(self) -> Given:
        """What was noted; the functions are as they were."""
        for kind, original in self._originals.items():
            kind.forward = original
        given, self._given, self._originals, self._kinds = self._given, {}, {}, []
        return given


class _Asked:
    """Stands for a static method: whoever asks for it gets the function itself."""

    def __init__(self, original: staticmethod[Any, Any], kind: Any, given: Given) -> None:
        self._function, self._kind, self._given = original.__func__, kind, given

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        try:
            if self._kind not in self._given:
                frame: Any = sys._getframe(1)
                arguments = frame.f_locals.get("args")
                if frame.f_code is APPLY and isinstance(arguments, tuple):
                    self._given[self._kind] = _owner(frame), arguments
        except Exception:
            return self._function
        return self._function


def _owner(frame: Any) -> Any:
    """The innermost module that is under way."""
    while frame is not None:
        holder = frame.f_locals.get("self")
        if isinstance(holder, torch.nn.Module):
            return holder
        frame = frame.f_back
    return None


def look(given: Given) -> Iterator[Found]:
    """What is wrong with the functions that were given these arguments: kind, place, module."""
    for kind, (owner, arguments) in given.items():
        off = None
        for scale in SCALES:
            try:
                off = off or _off(kind, arguments, scale)
            except Exception:  # what can't be asked again says nothing
                break
        if off is not None:
            code = kind.backward.__code__
            line = max((n for _, _, n in code.co_lines() if n is not None), default=code.co_firstlineno)
            facts: Found = {"kind": "derivative", "path": callers.relative(code.co_filename), "line": line}
            yield facts | {"module": id(owner), "function": kind.__name__, "off": f"{off:.0%}"}


def _users(kind: Any) -> bool:
    parts = [kind.__dict__.get(name) for name in ("forward", "backward")]
    codes = [getattr(p.__func__, "__code__", None) for p in parts if isinstance(p, staticmethod)]
    return len(codes) == 2 and all(c is not None and callers.is_users(c.co_filename) for c in codes)


def _off(kind: Any, given: tuple[Any, ...], scale: float) -> float | None:
    """By which share of the slope the derivative is off; None where it is right or nothing can be said."""
    inputs = [_own(value, scale) for value in given]
    learned = [t for t in inputs if isinstance(t, torch.Tensor) and t.requires_grad and t.is_floating_point()]
    if not learned or sum(t.numel() for t in learned) > MOST_NUMBERS or any(t.layout != torch.strided for t in learned):
        return None
    if any(t.dtype not in (torch.float32, torch.float64) for t in learned):
        return None
    outputs = _results(kind, inputs)
    again = _results(kind, inputs)
    if not outputs or not all(torch.equal(a, b) for a, b in zip(outputs, again, strict=True)):
        return None
    if any(_passes_on(x, y) for x in learned for y in outputs):
        return None
    generator = torch.Generator().manual_seed(0)
    weights = [torch.randn(y.shape, generator=generator, dtype=torch.float64) for y in outputs]
    with torch.enable_grad():
        total = _total(outputs, weights)
    gradients = torch.autograd.grad(total, learned, allow_unused=True)
    worst = 0.0
    for x, gradient in zip(learned, gradients, strict=True):
        if gradient is None or not bool(gradient.any()):
            continue
        size = float(x.detach().double().square().mean().sqrt()) or 1.0
        found = []
        for number in range(DIRECTIONS):
            way = gradient.double() if not number else torch.randn(x.shape, generator=generator, dtype=torch.float64)
            way = way / way.square().mean().sqrt().clamp(min=1e-30)
            unit = float(gradient.double().norm()) * float(way.norm()) / (1.0 if not number else x.numel() ** 0.5)
            slopes = [_slope(kind, inputs, weights, x, way, size * STEP * part) for part in (1.0, 0.5)]
            expected = float((gradient.double() * way).sum())
            if abs(slopes[0] - slopes[1]) > STEADY * max(unit, abs(slopes[0])):
                return None
            if not number and abs(slopes[1]) < STEADY * unit:
                return None  # flat: another slope than its own is what such a function is written for
            found.append(abs(slopes[1] - expected) / max(unit, abs(slopes[1])))
        if straight(kind, inputs, x, size):
            return None
        worst = max(worst, max(found))
    return worst if worst > WRONG else None


def _own(value: Any, scale: float) -> Any:
    """A result of other operations becomes a leaf of its own; a parameter stays, the function may know it as well."""
    if isinstance(value, torch.Tensor) and value.requires_grad and not value.is_leaf:
        return (value.detach() * scale).requires_grad_(True)
    return value


def _results(kind: Any, inputs: list[Any]) -> list[Any]:
    with torch.enable_grad():
        made = kind.apply(*inputs)
    made = made if isinstance(made, tuple) else (made,)
    return [y for y in made if isinstance(y, torch.Tensor) and y.is_floating_point() and y.requires_grad]


def _total(outputs: list[Any], weights: list[Any]) -> Any:
    return torch.stack([(y.double() * w).sum() for y, w in zip(outputs, weights, strict=True)]).sum()


def _slope(kind: Any, inputs: list[Any], weights: list[Any], x: Any, way: Any, step: float) -> float:
    ends = []
    kept = x.detach().clone()
    for side in (1.0, -1.0):
        with torch.no_grad():
            x.copy_((kept.double() + side * step * way).to(x.dtype))
        ends.append(float(_total(_results(kind, inputs), weights).detach()))
    with torch.no_grad():
        x.copy_(kept)
    return (ends[0] - ends[1]) / (2.0 * step)


def _passes_on(x: Any, y: Any) -> bool:
    """True where the function gives its input on, wholly or in part (a clamp): its gradient is written to differ."""
    if x.shape != y.shape:
        return False
    same = torch.isclose(x.detach(), y.detach(), rtol=1e-5, atol=1e-7) & (x.detach() != 0)
    return float(same.float().mean()) > PASSED


def straight(kind: Any, inputs: list[Any], x: Any, size: float) -> bool:
    """True for a function that works element by element and is made of straight pieces: its backward is a surrogate."""
    with torch.no_grad():
        kept = x.detach().clone()
        middle = [y.detach().clone() for y in _results(kind, inputs) if y.shape == x.shape]
        if not middle or x.numel() < 2:
            return False
        ends = []
        for side in (1.0, -1.0):
            x.copy_(kept + side * 0.1 * size)
            ends.append(next(y.detach().clone() for y in _results(kind, inputs) if y.shape == x.shape))
        x.copy_(kept)
        half = torch.rand(x.shape, generator=torch.Generator().manual_seed(1)) < 0.5
        x.add_(half.to(x.dtype) * size)
        moved = next(y.detach().clone() for y in _results(kind, inputs) if y.shape == x.shape)
        x.copy_(kept)
    if bool(((moved != middle[0]) & ~half).any()):
        return False
    bend = (ends[0] - 2.0 * middle[0] + ends[1]).abs()
    rise = (ends[0] - ends[1]).abs()
    return float((bend <= 1e-3 * rise + 1e-6 * size).float().mean()) > STRAIGHT
