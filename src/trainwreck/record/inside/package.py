"""The capture of a failing step: a folder with tensors (safetensors), facts (JSON) and the sources that ran.

Written to a folder of another name first and renamed, so that a reader finds all of it or none.
"""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import zipfile
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

import torch

from . import tensors, values
from .describe import relative

FORMAT = 1
MAX_BETWEEN = 6
"""Frames of a framework whose variables are kept: of its loop and its training step, the batch among them."""
MAX_NUMBERS = 200
MAX_CODES, MAX_COUNTED = 32, 1 << 20
"""Different values that are told of an integer variable (labels), and elements up to which they are looked for."""
MAX_SOURCES = 12
MAX_SOURCE_BYTES = 400_000
PACKAGES = ("torch", "numpy", "transformers", "trl", "peft", "accelerate", "lightning", "datasets", "deepspeed")


@dataclass(slots=True)
class Job:
    """What is to be captured. ``frames``: the live stack, innermost first. ``weights``: whether they are wanted."""

    folder: str
    facts: dict[str, Any]
    frames: list[FrameType]
    optimizer: Any
    random: list[Any] = field(default_factory=list)
    budget: int = 256 << 20
    weights: bool = True
    backward: dict[str, Any] | None = None
    """Where the user's code called backward, if that is not where it stands now."""


def write(job: Job, known: values.Known) -> None:
    """Write the capture. Raises OSError."""
    part = f"{job.folder}.part"
    os.makedirs(part, exist_ok=True)
    kept: dict[str, Any] = {}
    absent: list[str] = []
    left = [job.budget]

    def keep(names: dict[str, Any], what: str) -> None:
        total = sum(tensors.size(t) for t in names.values() if t.layout == torch.strided)
        if total > left[0]:
            absent.append(f"{what} ({total / 2**20:.0f} MiB are beyond the budget)")
            return
        left[0] -= total
        kept.update(names)

    frame = step_frame(job.frames)
    variables = {
        label + name: tensor
        for label, level in step_frames(job.frames)
        for name, tensor in values.variables(dict(level.f_locals))
    }
    held = set(known.held)
    batch = {n: t for n, t in variables.items() if values.storage(t) not in held}
    for name, tensor in batch.items():
        keep({f"local/{name}": tensor}, f"variable {name}")
    keep({f"random/{i}": state for i, state in enumerate(job.random)}, "random state")
    if job.weights:
        keep({f"weight/{name}": t for name, t in known.named()}, "weights")
        keep(_optimizer(job.optimizer), "optimizer state")
    else:
        absent.append("weights (kept with the first capture only)")
    absent += [f"{n} (its type)" for n in tensors.save(os.path.join(part, "tensors.safetensors"), kept)]
    facts = {
        "trainwreck_capture": FORMAT,
        **job.facts,
        **_place(frame),
        "backward": job.backward,
        "script": _script(),
        "argv": sys.argv,
        "cwd": os.getcwd(),
        "python": platform.python_version(),
        "versions": {n: getattr(sys.modules[n], "__version__", None) for n in PACKAGES if n in sys.modules},
        "device": _device(known),
        "variables": {n: _facts(t) for n, t in list(variables.items())[:64]},
        "numbers": {
            label + name: value for label, level in step_frames(job.frames) for name, value in _numbers(level).items()
        },
        "absent": absent,
        "weights_damaged": [d["name"] for d in known.damaged()][:16],
        "sources": _sources(job.frames, part),
    }
    tensors.write_json(os.path.join(part, "capture.json"), facts)
    os.rename(part, job.folder)


def _facts(tensor: Any) -> dict[str, Any]:
    """Ranges of a variable; of integers also which values they are, of a table the columns that are not finite."""
    facts = tensors.ranges(tensor) | {"graph": bool(tensor.requires_grad)}
    with contextlib.suppress(Exception):
        flat = tensor.detach()
        if flat.dtype in (torch.int64, torch.int32, torch.uint8) and 0 < flat.numel() <= MAX_COUNTED:
            codes = torch.unique(flat).tolist()
            facts |= {"codes": codes} if len(codes) <= MAX_CODES else {}
        elif (facts.get("nan") or facts.get("inf")) and flat.dim() == 2:
            bad = (~torch.isfinite(flat)).any(0).nonzero().flatten().tolist()
            facts |= {"bad_columns": bad} if len(bad) <= MAX_CODES else {}
    return facts


def step_frame(frames: list[FrameType]) -> FrameType | None:
    """The frame whose variables are the step's: the innermost one of the user's, else the innermost."""
    from .callers import is_users

    return next((f for f in frames if is_users(f.f_code.co_filename)), frames[0] if frames else None)


def step_frames(frames: list[FrameType]) -> list[tuple[str, FrameType]]:
    """Frames whose variables belong to the step, each with what stands before the names of its variables.

    The user's own innermost frame comes first and needs nothing; between it and backward lie those of a framework.
    """
    own = step_frame(frames)
    if own is None:
        return []
    between = frames[: frames.index(own)][-MAX_BETWEEN:]
    return [("", own), *((f"{f.f_code.co_name}:", f) for f in reversed(between))]


def _place(frame: FrameType | None) -> dict[str, Any]:
    return place(frame.f_code, frame.f_lineno) if frame is not None else {}


def place(code: CodeType, line: int | None) -> dict[str, Any]:
    """Path (as told), file (in full), line and function of a piece of code."""
    path = code.co_filename
    return {"path": relative(path), "file": os.path.abspath(path), "line": line, "function": code.co_name}


def _script() -> dict[str, Any]:
    """How the program was started: a file, or ``-m`` with a module."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    name = spec.name.removesuffix(".__main__") if spec is not None else None
    return {"module": name, "file": getattr(main, "__file__", None)}


def _device(known: values.Known) -> dict[str, Any]:
    first = next(iter(known.parameters()), None)
    dtypes = sorted({str(p.dtype).removeprefix("torch.") for p in known.parameters()})
    return {"type": first.device.type if first is not None else "cpu", "dtypes": dtypes}


def _numbers(frame: FrameType) -> dict[str, Any]:
    """Plain numbers and short texts among the variables of a frame, and among the attributes of its plain objects."""
    found: dict[str, Any] = {}
    for name, value in list(frame.f_locals.items()):
        if name.startswith("__"):
            continue
        if _is_plain(value):
            found[name] = value
        elif _is_own(type(value)) and isinstance(getattr(value, "__dict__", None), dict):
            found |= {f"{name}.{k}": v for k, v in list(vars(value).items())[:40] if _is_plain(v)}
    return dict(list(found.items())[:MAX_NUMBERS])


def _is_own(kind: type) -> bool:
    """Whether a class is the user's: of such objects plain attributes are kept (counters, schedules)."""
    from .callers import is_users

    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return kind.__module__ == "__main__" or (isinstance(file, str) and is_users(file))


def _is_plain(value: Any) -> bool:
    return type(value) in (int, float, bool) or (type(value) is str and len(value) <= 80)


def _optimizer(optimizer: Any) -> dict[str, Any]:
    if optimizer is None:
        return {}
    found = {}
    parameters = [p for g in optimizer.param_groups for p in g["params"]]
    for i, parameter in enumerate(parameters):
        for key, value in optimizer.state.get(parameter, {}).items():
            if isinstance(value, torch.Tensor):
                found[f"optimizer/{i}/{key}"] = value
    return found


def _sources(frames: list[FrameType], part: str) -> dict[str, str]:
    """Copies of the user's files on the stack and of the user's modules in use: path to name in ``sources.zip``."""
    from .callers import is_users

    paths = [f.f_code.co_filename for f in frames]
    paths += [p for m in list(sys.modules.values()) if isinstance(p := getattr(m, "__file__", None), str)]
    found: dict[str, str] = {}
    with zipfile.ZipFile(os.path.join(part, "sources.zip"), "w", zipfile.ZIP_DEFLATED) as archive:
        for path in dict.fromkeys(
            os.path.abspath(p) for p in paths if p.endswith(".py") and is_users(os.path.abspath(p))
        ):
            if len(found) >= MAX_SOURCES:
                break
            with contextlib.suppress(OSError):
                if os.path.getsize(path) <= MAX_SOURCE_BYTES:
                    name = f"{len(found)}-{os.path.basename(path)}"
                    archive.write(path, name)
                    found[relative(path)] = name
    return found
