"""What the samples that fail have in common, against the other samples of the same batch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from . import tensors

MAX_ROWS = 64
MAX_SENTENCES = 6
LARGER = 10.0
"""Times the largest magnitude of the other rows at which values of the failing ones stand out; a judgement."""


def failing(result: Any) -> list[int] | None:
    """Rows (first axis) of a result that are not finite; None where it has no rows, or where all of them are."""
    if result.dim() < 1 or result.shape[0] < 2:
        return None
    bad = ~torch.isfinite(result.detach()).reshape(result.shape[0], -1).all(1)
    rows: list[int] = bad.nonzero().flatten().tolist()
    return rows if 0 < len(rows) < result.shape[0] else None


def sentences(rows: list[int], size: int, variables: Iterable[tuple[str, Any]]) -> list[str]:
    """One sentence for each variable of the batch in which the failing rows differ from all others."""
    chosen = torch.zeros(size, dtype=torch.bool)
    chosen[rows] = True
    found: list[str] = []
    for name, tensor in variables:
        usable = tensor.layout == torch.strided and tensor.dim() >= 1 and tensor.shape[0] == size
        if not usable or tensor.requires_grad or tensor.is_complex() or len(found) >= MAX_SENTENCES:
            continue
        flat = tensor.detach().to("cpu").reshape(size, -1)
        said = _differs(flat[chosen], flat[~chosen])
        if said:
            found.append(f"{name} {said}")
    return found


def _differs(bad: Any, good: Any) -> str | None:
    if not bad.numel():
        return None
    if bad.is_floating_point():
        broken = tensors.nonfinite(bad)
        if broken and not tensors.nonfinite(good):
            return "is not finite in the failing rows only"
        if broken:
            return None
    same = _same(bad, good)
    if same is not None:
        return same
    if bad.shape[1] > 1:
        lengths, others = (bad != 0).sum(1), (good != 0).sum(1)
        if int(lengths.max()) < int(others.min()):
            return f"has at most {int(lengths.max())} entries other than 0 in the failing rows (others {_span(others)})"
    if bad.dtype == torch.bool:
        return None
    largest, other = float(bad.abs().max()), float(good.abs().max())
    if bad.is_floating_point() and other < largest and largest > LARGER * other:
        return f"reaches {largest:.4g} in the failing rows (others {other:.4g})"
    return None


def _same(bad: Any, good: Any) -> str | None:
    """All failing rows hold one value throughout, which no other row does."""
    value = bad.reshape(-1)[0]
    if not bool((bad == value).all()) or bool((good == value).all(1).any()):
        return None
    spread = f"others {_span(good)}" if good.numel() and good.dtype != torch.bool else "no other row is"
    return (
        f"is {value.item():.6g} throughout in the failing rows ({spread})"
        if bad.dtype != torch.bool
        else (f"is {bool(value)} throughout in the failing rows, and in no other")
    )


def _span(values: Any) -> str:
    values = values[torch.isfinite(values)] if values.is_floating_point() else values
    return f"{values.min().item():.4g}..{values.max().item():.4g}" if values.numel() else "none"
