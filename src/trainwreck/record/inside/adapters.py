"""Adapters that add their product with a factor far above that of any recipe, read off the modules once."""

from __future__ import annotations

import re
from typing import Any

FACTOR = re.compile(r"^_?(scal(e|ing)|gain|lora_scal|multiplier)", re.IGNORECASE)
LARGE = 32.0
"""alpha / rank is 1 to 2 in the usual settings (alpha = rank or twice it), 16 where alpha is fixed at a small rank."""


def large_factors(modules: Any, held: set[int]) -> list[tuple[str, str, float]]:
    """(module, attribute, factor) of modules with two thin matrices in training and a large factor of their own."""
    found = []
    for name, module in modules:
        numbers = {k: v for k, v in list(module.__dict__.items()) if FACTOR.match(k) and type(v) in (int, float)}
        large = {k: float(v) for k, v in numbers.items() if abs(v) >= LARGE}
        if not large:
            continue
        own = [p for p in module._parameters.values() if p is not None]
        inner = [p for child in module._modules.values() if child is not None for p in child._parameters.values()]
        thin = [p for p in (*own, *inner) if p is not None and p.dim() == 2 and id(p) in held and is_thin(p)]
        if len(thin) >= 2:
            key = next(iter(large))
            found.append((name, key, large[key]))
    return found


def is_thin(parameter: Any) -> bool:
    """True for one factor of a low-rank product: a side is small, and smaller than the other."""
    small, large = sorted(parameter.shape)
    return bool(small < large and small <= 256)
