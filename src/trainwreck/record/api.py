"""The recorder as a library: ``watch`` around a training loop, ``log`` for values that only the program knows."""

from __future__ import annotations

import importlib
import os
import sys
import time
import types
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainwreck.core.results import Result

PACKAGE = "_trainwreck_inside"
"""The name under which the inner side is loaded, the same as under ``trainwreck run``: one recorder a process."""
MAX_CODES = 1 << 16
"""Largest code that is counted: a histogram of larger ones would cost memory on the device."""
CODES = ("codes", "indices", "code_indices", "token_ids")
"""Names under which ``log`` takes integers to be codes whose use is counted."""


def hooks() -> Any:
    """The module that holds this process's recorder; loaded by path, as ``trainwreck run`` does it."""
    if PACKAGE not in sys.modules:
        package = types.ModuleType(PACKAGE)
        package.__path__ = [str(Path(__file__).parent / "inside")]
        sys.modules[PACKAGE] = package
    return importlib.import_module(f"{PACKAGE}.hooks")


def recorder() -> Any:
    """The recorder that is at work, None if there is none."""
    return hooks().current() if f"{PACKAGE}.hooks" in sys.modules else None


class Watching:
    """A recording under way; ends with its ``with`` block, with ``close()``, or at exit."""

    def __init__(self, folder: str, started: bool) -> None:
        self.folder = folder
        self._started = started

    def __enter__(self) -> Watching:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: Any) -> None:
        if value is not None and isinstance(value, Exception):
            self.failed(value)
        self.close()

    def failed(self, error: BaseException) -> None:
        """Keep the traceback of ``error``: it belongs to the evidence, whoever catches it further out."""
        hooks().keep_traceback(self.folder, error)

    def close(self) -> None:
        """End the recording, unless it belongs to ``trainwreck run``, which ends it itself."""
        if self._started:
            hooks().stop()
            self._started = False

    def diagnose(self, code: str | os.PathLike[str] | None = None) -> Result:
        """The diagnosis of what was recorded so far, together with the program (default: the script that runs)."""
        from trainwreck.engine import diagnose

        at_work = recorder()
        if at_work is not None:
            at_work.flush()
            # Without a word on its end a recording is that of a killed process.
            at_work.event("ended", "looked at while it runs")
        script = Path(code) if code is not None else Path(sys.argv[0])
        known = script.is_dir() or (script.suffix == ".py" and script.is_file())
        return diagnose([Path(self.folder)], code=[str(script)] if known else [])


def watch(
    *objects: Any,
    record_to: str | os.PathLike[str] | None = None,
    every_leaf: bool = False,
    on_alarm: str | None = None,
    stop_on: str | None = None,
    quiet: bool = False,
    capture_bytes: int | None = None,
) -> Watching:
    """Record this process's training from now on: ``with trainwreck.watch(model, optimizer): …``.

    ``objects`` are modules (and optimizers) that you care about: their names appear in reports; every other model of
    the process is recorded as well. ``record_to`` is the folder (default ``.trainwreck/runs/…``). ``every_leaf`` looks
    at the outputs of every leaf module at every step. ``on_alarm`` is a shell command, ``stop_on`` ``critical`` or
    ``warning``. Under ``trainwreck run`` its recording goes on and no second one is made. Call it before the first call
    of a compiled model. Raises ModuleNotFoundError without torch; nothing else that goes wrong reaches the training.
    """
    importlib.import_module("torch")
    module = hooks()
    at_work = module.current()
    started = at_work is None or at_work.off
    if started:
        options = {
            "every_leaf": every_leaf,
            "on_alarm": on_alarm,
            "stop_on": stop_on,
            "quiet": quiet,
            "capture_bytes": capture_bytes,
        }
        folder = os.fspath(record_to) if record_to is not None else _default_folder()
        module.install(folder, {k: v for k, v in options.items() if v})
        at_work = module.current()
    if at_work is None:
        return Watching(os.fspath(record_to or ""), False)
    for thing in objects:
        if hasattr(thing, "named_parameters"):
            at_work.names.add(thing)
    return Watching(at_work.folder, started)


def log(
    values: Mapping[str, Any] | None = None, /, *, loss_terms: Mapping[str, Any] | None = None, **more: Any
) -> None:
    """Keep values of the step under way that only the program knows.

    ``loss_terms`` are the parts of the loss by name. Numbers and one-element tensors are kept as they are; of larger
    tensors mean, deviation, least and greatest value and the share of zeros; of integer ``codes`` how many are in use
    and their perplexity. Tensors stay on their device until the next flush. Without a recorder nothing happens.
    """
    at_work = recorder()
    if at_work is None or at_work.off:
        return
    try:
        row: dict[str, Any] = {"step": at_work.step}
        for name, value in (loss_terms or {}).items():
            row |= {f"term/{key}": v for key, v in _columns(str(name), value).items()}
        for name, value in {**(values or {}), **more}.items():
            row |= _columns(str(name), value)
        at_work.row("logged", row)
    except Exception as problem:
        at_work.faults.add("log", problem)


def _columns(name: str, value: Any) -> dict[str, Any]:
    """What is kept of one value; 0-d tensors in it are read at the next flush."""
    torch = sys.modules["torch"]
    if isinstance(value, (list, tuple)) or type(value).__module__ == "numpy":
        value = torch.as_tensor(value)
    if not isinstance(value, torch.Tensor):
        return {name: float(value)}
    with torch.no_grad():
        value = value.detach()
        if value.numel() == 1:
            return {name: value.reshape(()).float().clone()}
        if value.numel() == 0:
            return {f"{name}/count": 0.0}
        if name in CODES and not value.is_floating_point():
            return _use(name, value)
        numbers = value.float()
        return {
            f"{name}/mean": numbers.mean(),
            f"{name}/std": numbers.std(unbiased=False),
            f"{name}/min": numbers.min(),
            f"{name}/max": numbers.max(),
            f"{name}/zeros": (numbers == 0).float().mean(),
        }


def _use(name: str, codes: Any) -> dict[str, Any]:
    """How many different codes there are, and the perplexity of their histogram (exp of the entropy, in codes)."""
    torch = sys.modules["torch"]
    counts = torch.zeros(MAX_CODES, device=codes.device)
    flat = codes.flatten().long().clamp(0, MAX_CODES - 1)
    counts.scatter_add_(0, flat, torch.ones_like(flat, dtype=counts.dtype))
    shares = counts / counts.sum()
    entropy = -(shares * shares.clamp_min(1e-12).log()).sum()
    table = "codebook" if name == "codes" else f"{name}_codebook"
    return {f"{table}/used": (counts > 0).sum().float(), f"{table}/perplexity": entropy.exp()}


def _default_folder() -> str:
    return os.path.join(".trainwreck", "runs", f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}")
