"""A tensor in a few numbers: range, mean, spread, what is not finite; of class labels and codes how they are spread."""

from __future__ import annotations

import math
from typing import Any

import torch

LARGEST = 1 << 16
"""Elements that are looked at; of a larger tensor an even sample (ranges are then those of the sample)."""
MAX_CODES = 4096
"""Integers up to here are taken for classes or codes, and counted."""
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def is_plain(value: Any) -> bool:
    """True for a tensor with values that can be looked at without waking anything."""
    return (
        isinstance(value, torch.Tensor)
        and type(value) in (torch.Tensor, torch.nn.Parameter)
        and value.layout == torch.strided
        and value.device.type in ("cpu", "cuda", "mps", "xpu")
        and not value.is_meta
        and not getattr(value, "is_quantized", False)
    )


def digest(value: Any) -> dict[str, Any]:
    """Numbers of ``value`` by what they are: 0-d tensors that nobody has read, on the device of ``value``.

    ``min max mean std nonfinite zero`` of numbers; of integers in the range of codes also ``codes`` (how many different
    ones), ``top`` (share of the most frequent), ``entropy`` (nats) and ``adjacent`` (share of equal neighbours).
    Empty for a tensor without elements or of another type.
    """
    flat = value.detach().reshape(-1)
    if not flat.numel():
        return {}
    if flat.numel() > LARGEST:
        flat = flat[:: flat.numel() // LARGEST]
    if flat.dtype == torch.bool:
        return {"mean": flat.float().mean()}
    if flat.dtype in INTEGERS:
        found = _integers(flat, value.dim())
        return found | {"length": float(value.shape[1])} if value.dim() == 2 else found
    if flat.dtype not in FLOATS:
        return {}
    flat = flat.float()
    finite = torch.isfinite(flat)
    bad = flat.numel() - finite.sum()
    if flat.device.type == "cpu" and bad:
        flat = flat[finite]
        if not flat.numel():
            return {"nonfinite": bad}
    low, high = torch.aminmax(flat)
    found = {"min": low, "max": high, "mean": flat.mean(), "nonfinite": bad, "zero": (flat == 0).float().mean()}
    found["std"] = flat.std() if flat.numel() > 1 else torch.zeros((), device=flat.device)
    if flat.device.type == "cpu" and value.dim() <= 2 and low >= 0 and high < 64 and high == high.round():
        whole = flat.long()
        if torch.equal(whole.float(), flat):
            found |= _spread(whole)
    return found


def _integers(flat: Any, dimensions: int) -> dict[str, Any]:
    low, high = torch.aminmax(flat)
    found: dict[str, Any] = {"min": low, "max": high, "mean": flat.float().mean()}
    # Counting needs the range, so only where reading it costs nothing.
    if flat.device.type == "cpu" and int(high) < MAX_CODES and int(low) >= -100:
        found |= _spread(flat[flat >= 0].long())
    return found


def _spread(codes: Any) -> dict[str, Any]:
    """How class labels or codes are spread over their values, and how often neighbours are equal."""
    if codes.numel() < 2:
        return {}
    counts = torch.bincount(codes)
    shares = counts[counts > 0].float() / codes.numel()
    return {
        "codes": float(shares.numel()),
        "top": shares.max(),
        "entropy": -(shares * shares.log()).sum(),
        "adjacent": (codes[1:] == codes[:-1]).float().mean(),
    }


def plain_number(value: Any) -> float | None:
    """``value`` as a float if it is a plain Python number within range."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) or isinstance(value, float) else None
