"""Weights that are not finite after a step whose gradients were: what the optimizer's own state and settings show."""

from __future__ import annotations

from types import FrameType
from typing import Any

import torch

from . import tensors, values


def blame(optimizer: Any, known: values.Known, frames: list[FrameType]) -> dict[str, Any]:
    """The origin of weights that a step made non-finite, with the settings and the state that show how."""
    from .describe import relative, users
    from .events import Frame

    damaged = known.damaged()
    names = [d["name"] for d in damaged]
    frame = users([Frame(f.f_code.co_filename, f.f_lineno, f.f_code.co_name) for f in frames])
    told: dict[str, Any] = {"kind": "optimizer", "phase": "optimizer", "reproduced": True, "notes": []}
    if frame is not None:
        told |= {"path": relative(frame.path), "line": frame.line, "function": frame.function}
    told["parameters"] = damaged[:8]
    told["module"] = names[0] if names else None
    if optimizer is None:
        return told | {"text": f"a step made {len(names)} parameters non-finite although the gradients were finite"}
    group = next((g for g in optimizer.param_groups if any(tensors.nonfinite(p) for p in g["params"])), None)
    settings = {k: tensors.plain(_plain(v)) for k, v in (group or {}).items() if k != "params"}
    told["settings"] = {k: v for k, v in settings.items() if isinstance(v, (int, float, str, list))}
    told["why"], words = _why(optimizer, group)
    name = type(optimizer).__name__
    told["text"] = f"{name}.step made {', '.join(names[:3])} non-finite from finite gradients: {words}"
    return told


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, torch.Tensor) and value.numel() == 1 else value


def _why(optimizer: Any, group: Any) -> tuple[str, str]:
    """A word and a sentence for what the settings and the state show; ``unknown`` where they show nothing."""
    if group is None:
        return "unknown", "no parameter of its own is damaged"
    rate = _plain(group.get("lr", 0.0))
    if isinstance(rate, float) and not (abs(rate) < float("inf")):
        return "rate", f"the learning rate is {rate}"
    bad = next(p for p in group["params"] if tensors.nonfinite(p))
    state = {k: v for k, v in optimizer.state.get(bad, {}).items() if isinstance(v, torch.Tensor) and v.numel() > 1}
    eps = group.get("eps")
    if isinstance(eps, float) and bad.dtype == torch.float16 and float(torch.tensor(eps, dtype=bad.dtype)) == 0.0:
        return "half-eps", f"eps = {eps:g} is zero in float16, and so are second moments of small gradients"
    damaged = [k for k, v in state.items() if tensors.nonfinite(v)]
    if damaged:
        return "state", f"its state {', '.join(damaged)} overflowed"
    if isinstance(eps, (int, float)) and eps == 0:
        return "eps", "eps is 0, so a gradient that is zero divides by zero"
    largest = max(
        (tensors.ranges(p.grad).get("absmax", 0.0) for p in group["params"] if p.grad is not None), default=0.0
    )
    return "update", f"learning rate {rate:g}, largest gradient {largest:.3g}"
