"""At a crash: what the variables of the failing frames held, in numbers; small tensors as they were."""

from __future__ import annotations

import os
import traceback
from types import FrameType
from typing import Any

import torch

from . import callers, tensors, values
from .describe import relative

MAX_FRAMES = 12
INNER = 3
"""Frames of libraries that are told as well: an index error shows the table that was indexed only there."""
MAX_BYTES = 64 << 20
"""Bytes of tensors that are kept."""


def crash(folder: str, error: BaseException, step: int, rank: str = "0") -> None:
    """Write ``capture-crash/`` with ``capture.json`` and ``tensors.safetensors``. Raises OSError."""
    frames = _frames(error)
    told, kept = [], {}
    left = MAX_BYTES
    for depth, (frame, line) in enumerate(frames):
        facts: dict[str, Any] = {}
        for name, tensor in values.variables(dict(frame.f_locals), depth=2):
            if isinstance(tensor, torch.nn.Parameter):
                facts[name] = {"shape": list(tensor.shape), "dtype": str(tensor.dtype).removeprefix("torch.")}
                continue
            facts[name] = _ranges(tensor)
            if tensor.device.type == "cpu" and tensor.layout == torch.strided and tensors.size(tensor) <= left:
                left -= tensors.size(tensor)
                kept[f"local/{depth}/{name}"] = tensor
            if len(facts) >= 40:
                break
        code = frame.f_code
        told.append({"path": relative(code.co_filename), "line": line, "function": code.co_name, "variables": facts})
    name = "capture-crash" + (f"-rank{rank}" if rank != "0" else "")
    part = os.path.join(os.path.abspath(folder), f"{name}.part")
    os.makedirs(part, exist_ok=True)
    tensors.save(os.path.join(part, "tensors.safetensors"), kept)
    text = "".join(traceback.format_exception_only(error)).strip()
    own = next((f for f in told if not str(f["path"]).startswith(os.sep)), told[0] if told else {})
    facts = {"trainwreck_capture": 1, "alarm": "crash", "step": step, "rank": int(rank), "error": text[:2000]}
    facts |= {"path": own.get("path"), "line": own.get("line"), "function": own.get("function"), "frames": told}
    tensors.write_json(os.path.join(part, "capture.json"), facts)
    os.rename(part, part.removesuffix(".part"))


def _frames(error: BaseException) -> list[tuple[FrameType, int]]:
    """(frame, line) of the user's code and of the innermost library frames, innermost first."""
    found: list[tuple[FrameType, int]] = []
    step = error.__traceback__
    while step is not None:
        found.append((step.tb_frame, step.tb_lineno))
        step = step.tb_next
    found.reverse()
    chosen = [f for i, f in enumerate(found) if i < INNER or callers.is_users(f[0].f_code.co_filename)]
    return chosen[:MAX_FRAMES]


def _ranges(tensor: Any) -> dict[str, Any]:
    """Ranges, of tensors on a device the shape only: after a device assert nothing can be read any more."""
    if tensor.device.type != "cpu":
        dtype = str(tensor.dtype).removeprefix("torch.")
        return {"shape": list(tensor.shape), "dtype": dtype, "device": str(tensor.device)}
    return tensors.ranges(tensor)
