"""Which call made a tensor, so that a birth can name where its argument came from (the head of a log-variance)."""

from __future__ import annotations

import re
import weakref
from dataclasses import dataclass
from typing import Any

import torch

PASSING = re.compile(
    r"r?(mul|add|sub|neg|div|truediv)_?|to|float|half|bfloat16|double|type|view|reshape|flatten|squeeze|unsqueeze|"
    r"transpose|permute|contiguous|expand|chunk|split|getitem|clone|detach|select|sum|mean"
)
"""Calls that shift, scale, cast or rearrange: the value comes from what they were given."""
MAX_HOPS = 12


@dataclass(slots=True)
class Made:
    """One call: its name, the module that ran, the innermost line outside torch, and its first tensor argument."""

    result: weakref.ref[Any]
    call: str
    module: str | None
    place: tuple[str, int] | None
    given: int | None


class Producers:
    """Remembers for every tensor alive the call that returned it. Holds no tensor."""

    def __init__(self) -> None:
        self._made: dict[int, Made] = {}

    def note(self, call: str, args: Any, result: Any, module: str | None, place: tuple[str, int] | None) -> None:
        """``call`` has returned ``result``."""
        given = next((id(a) for a in args if isinstance(a, torch.Tensor)), None)
        for tensor in result if isinstance(result, (list, tuple)) else (result,):
            if isinstance(tensor, torch.Tensor) and id(tensor) != given:
                self._made[id(tensor)] = Made(weakref.ref(tensor), call, module, place, given)

    def of(self, tensor: Any) -> Made | None:
        """The call that the values of ``tensor`` come from, behind those that only pass them on."""
        made = self._made.get(id(tensor))
        if made is None or made.result() is not tensor:
            return None
        for _ in range(MAX_HOPS):
            before = self._made.get(made.given) if made.given is not None else None
            if not PASSING.fullmatch(made.call) or before is None:
                break
            made = before
        return made
