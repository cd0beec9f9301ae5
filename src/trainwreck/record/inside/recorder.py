"""What is recorded: per optimizer step the loss, learning rate and gradient norms by module; wiring at the start.

Nothing is read from a device outside a flush, except that on the CPU the loss is looked at every step. No module hook
is used (they would break compiled graphs): gradients are read after backward, modules are found once among the live
objects, and their mode flags are plain attributes.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import math
import os
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

FLUSH_STEPS = 20
"""Steps between two writes; what a ``kill -9`` can lose at most."""
MAX_BYTES = 64 << 20
"""Size of one rank's recording; beyond it every second, then every fourth … step is written."""
MAX_GROUPS = 24
"""Modules whose gradient norms are kept apart; deeper ones are summed into these."""
WIRING_STEPS = 5
"""Steps after which the wiring is judged: one may be a warm-up, five of a kind are no accident (a judgement)."""
MAX_FAULTS = 3
"""Faults of ours after which the recorder is silent for the rest of the run."""

Guarded = Callable[..., None]


def guarded(method: Callable[..., None]) -> Guarded:
    """``method`` with every fault of ours contained and counted."""

    @functools.wraps(method)
    def call(self: Recorder, *arguments: Any) -> None:
        if self.off:
            return
        try:
            method(self, *arguments)
        except Exception as problem:
            self.fault(problem)

    return call


class Recorder:
    """The recorder of one process. Attached once; closed at exit; abandoned in forked children."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.off = False
        self._faults = 0
        self._file: TextIO | None = None
        self._written = 0
        self._stride = 1
        self._pid = os.getpid()
        self._optimizers: dict[int, _Watched] = {}
        self._losses: list[Any] = []
        self._rows: list[dict[str, Any]] = []
        self._step = 0
        self._nonfinite_told = False
        self._last = time.perf_counter()

    def attach(self) -> None:
        """Listen to every optimizer of the process and to every backward."""
        register_optimizer_step_pre_hook(self._before)
        register_optimizer_step_post_hook(self._after)
        backward = torch.Tensor.backward
        seen = self._saw_loss

        @functools.wraps(backward)
        def observed(tensor: Any, *arguments: Any, **options: Any) -> Any:
            seen(tensor)
            return backward(tensor, *arguments, **options)

        torch.Tensor.backward = observed

    def abandon(self) -> None:
        """In a forked child (a loader's worker): write nothing, not even at exit."""
        self.off = True
        self._file = None

    def fault(self, problem: Exception) -> None:
        """Note a fault of ours; after a few of them be silent."""
        self._faults += 1
        with contextlib.suppress(Exception):
            self._note("recorder-fault", f"{type(problem).__name__}: {problem}")
        if self._faults >= MAX_FAULTS:
            self.off = True
            print(f"trainwreck: recording stopped ({type(problem).__name__}: {problem})", file=sys.stderr)

    @guarded
    def _saw_loss(self, tensor: Any) -> None:
        if tensor.numel() == 1 and len(self._losses) < 256:
            self._losses.append(tensor.detach())

    @guarded
    def _before(self, optimizer: Any, arguments: Any, options: Any) -> None:
        watched = self._optimizers.get(id(optimizer))
        if watched is None:
            self._find_names()
            watched = _Watched(optimizer, len(self._optimizers), self._names)
            self._optimizers[id(optimizer)] = watched
        row: dict[str, Any] = {"step": watched.steps + 1}
        if watched.index:
            row["optimizer"] = watched.index
        if self._losses:
            row["loss"], row["backwards"] = _mean(self._losses), len(self._losses)
            self._losses = []
        row["lr"] = watched.rate()
        row["norms"] = watched.norms()
        watched.wiring(self)
        self._rows.append(row)
        if not self._nonfinite_told and _on_cpu(row.get("loss")) and not math.isfinite(float(row["loss"])):
            self._nonfinite_told = True
            self._flush()

    @guarded
    def _after(self, optimizer: Any, arguments: Any, options: Any) -> None:
        watched = self._optimizers.get(id(optimizer))
        if watched is None or not self._rows:
            return
        watched.steps += 1
        if self._losses:
            # A closure ran backward within the step: its first loss is the one at the old weights.
            row = self._rows[-1]
            row.setdefault("loss", self._losses[0])
            row.setdefault("backwards", len(self._losses))
            row["norms"] = row.get("norms") or watched.norms()
            self._losses = []
        watched.moved(self)
        now = time.perf_counter()
        self._rows[-1]["seconds"] = round(now - self._last, 6)
        self._last = now
        if len(self._rows) >= FLUSH_STEPS:
            self._flush()

    def _find_names(self) -> None:
        """Names of all parameters of all modules alive, by identity: ``ClassName.path.to.weight``."""
        # Asked of the type: isinstance would wake lazy objects, which may warn or import.
        modules = [m for m in gc.get_objects() if issubclass(type(m), torch.nn.Module)]
        inner = {id(c) for m in modules for c in m.children()}
        roots = [m for m in modules if id(m) not in inner and not isinstance(m, torch.nn.modules.loss._Loss)]
        self._names: dict[int, str] = {}
        self._roots = [r for r in roots if any(True for _ in r.parameters())]
        for root in self._roots:
            for name, parameter in root.named_parameters():
                self._names.setdefault(id(parameter), f"{type(root).__name__}.{name}")

    def roots(self) -> list[Any]:
        """The outermost modules that hold parameters, as found at the first step of the last new optimizer."""
        return self._roots

    def held(self) -> set[int]:
        """Identities of all parameters that some optimizer holds."""
        return {id(p) for w in self._optimizers.values() for p in w.parameters}

    def event(self, kind: str, text: str, module: str | None, step: int) -> None:
        """Write an event: something about the wiring that a reader should know."""
        self._flush()
        self._write({"event": kind, "text": text, "module": module, "step": step})

    def _note(self, kind: str, text: str) -> None:
        self._write({"event": kind, "text": text, "module": None, "step": self._step})

    @guarded
    def _flush_guarded(self) -> None:
        self._flush()

    def _flush(self) -> None:
        rows, self._rows = self._rows, []
        for row in rows:
            self._step = max(self._step, row["step"])
            if row["step"] % self._stride and row["step"] > 100:
                continue
            self._write(_plain(row))
        if self._file is not None:
            self._file.flush()

    def _write(self, row: dict[str, Any]) -> None:
        if self._file is None:
            os.makedirs(self.folder, exist_ok=True)
            rank = os.environ.get("RANK", "0")
            self._file = open(os.path.join(self.folder, f"rank{rank}.jsonl"), "a", encoding="utf-8")  # noqa: SIM115
            head = {"trainwreck_recording": 1, "rank": int(rank), "torch": torch.__version__, "argv": sys.argv}
            self._file.write(json.dumps(head) + "\n")
        line = json.dumps(row) + "\n"
        self._written += len(line)
        if self._written > MAX_BYTES:
            self._written = self._written // 2
            self._stride *= 2
        self._file.write(line)

    def close(self) -> None:
        """Write what is left. Called at exit; does nothing in a forked child."""
        if os.getpid() != self._pid or self.off:
            return
        self._flush_guarded()
        with contextlib.suppress(Exception):
            self._write({"event": "ended", "text": "the process ended by itself", "module": None, "step": self._step})
            if self._file is not None:
                self._file.close()
        self.off = True


class _Watched:
    """One optimizer: its parameters by module, and what its wiring looked like in the first steps."""

    def __init__(self, optimizer: Any, index: int, names: dict[int, str]) -> None:
        self.optimizer = optimizer
        self.index = index
        self.steps = 0
        self.parameters = [p for group in optimizer.param_groups for p in group["params"]]
        self.names = [names.get(id(p), f"parameter {i}") for i, p in enumerate(self.parameters)]
        self.groups = _groups(self.names)
        self.without_grad = [0] * len(self.parameters)
        self.in_eval = 0
        self.still = 0
        self._sample: list[Any] = []

    def rate(self) -> float | None:
        """Learning rate of the first group, a number where it is one."""
        rate = self.optimizer.param_groups[0].get("lr")
        return float(rate) if isinstance(rate, (int, float)) else (float(rate) if _on_cpu(rate) else None)

    def norms(self) -> dict[str, Any]:
        """For each module the gradients' norm, as tensors that nobody has read yet."""
        found: dict[str, Any] = {}
        gradients = [p.grad for p in self.parameters]
        for i, gradient in enumerate(gradients):
            self.without_grad[i] += gradient is None
        with torch.no_grad():
            for name, members in self.groups.items():
                present = [
                    g.detach()
                    for i in members
                    if (g := gradients[i]) is not None and not g.is_sparse and g.layout == torch.strided
                ]
                if present:
                    found[name] = torch.stack([n.float() for n in torch._foreach_norm(present)]).norm()
        return found

    def wiring(self, recorder: Recorder) -> None:
        """In the first steps: who gets no gradient, who is in no optimizer, who is in evaluation mode."""
        if self.steps < WIRING_STEPS:
            if self.steps < 2:
                self._sample = [
                    (p, p.detach().flatten()[:64].clone()) for p in self.parameters[:8] + self.parameters[-8:]
                ]
            modes = [m for r in recorder.roots() for m in r.modules() if _has_modes(m)]
            self.in_eval += bool(modes) and not any(m.training for m in modes)
            return
        if self.steps == WIRING_STEPS:
            self._judge(recorder)
        elif self.steps % 16 == 0 and self.in_eval >= 0:
            self._mode_flip(recorder)

    def _judge(self, recorder: Recorder) -> None:
        dead = [n for n, c in zip(self.names, self.without_grad, strict=True) if c >= WIRING_STEPS]
        if dead and len(dead) == len(self.names):
            recorder.event("live-no-gradient-at-all", "no parameter of the optimizer gets a gradient", None, self.steps)
        elif dead:
            text = f"{len(dead)} of {len(self.names)} parameters get no gradient: {', '.join(dead[:4])}"
            recorder.event("live-no-gradient", text, dead[0], self.steps)
        held = recorder.held()
        for root in recorder.roots():
            mine = [(n, p) for n, p in root.named_parameters() if p.requires_grad]
            left = [n for n, p in mine if id(p) not in held]
            got = [n for n, p in mine if id(p) not in held and p.grad is not None]
            # Most of the model left out is a choice (a linear probe); a minority was forgotten.
            if got and 2 * len(left) < len(mine):
                text = f"{len(left)} of {len(mine)} trainable parameters are in no optimizer: {', '.join(left[:4])}"
                recorder.event("live-not-in-optimizer", text, f"{type(root).__name__}.{left[0]}", self.steps)
        if self.in_eval >= WIRING_STEPS:
            text = "dropout and batch norm are in evaluation mode while the optimizer steps"
            recorder.event("live-eval-mode-in-training", text, None, self.steps)
            self.in_eval = -1

    def _mode_flip(self, recorder: Recorder) -> None:
        modes = [m for r in recorder.roots() for m in r.modules() if _has_modes(m)]
        trained = [m for m in modes if any(id(p) in recorder.held() for p in m.parameters())] or modes
        self.in_eval = self.in_eval + 1 if trained and not any(m.training for m in trained) else 0
        if self.in_eval >= 2:
            text = (
                f"from about step {self.steps} on dropout and batch norm are in evaluation mode while training goes on"
            )
            recorder.event("live-eval-mode-in-training", text, None, self.steps)
            self.in_eval = -1

    def moved(self, recorder: Recorder) -> None:
        """After the first two steps: did any of the sampled weights change?"""
        if self.steps > 2 or not self._sample:
            return
        same = all(torch.equal(p.detach().flatten()[:64], old) for p, old in self._sample)
        self.still += same
        if self.still >= 2 and (self.rate() or 0.0) > 0.0:
            recorder.event("live-step-changes-nothing", "the optimizer's steps change no weight", None, self.steps)
        if self.steps == 2:
            self._sample = []


def _has_modes(module: Any) -> bool:
    return isinstance(module, (torch.nn.modules.dropout._DropoutNd, torch.nn.modules.batchnorm._NormBase))


def _mean(losses: list[Any]) -> Any:
    """The mean over the micro-batches of one step, on their device."""
    return losses[0] if len(losses) == 1 else torch.stack([x.reshape(()).float() for x in losses]).mean()


def _on_cpu(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type == "cpu"


def _groups(names: list[str]) -> dict[str, list[int]]:
    """Parameters by module, at the depth that gives at most ``MAX_GROUPS`` modules."""
    for depth in range(8, 0, -1):
        groups: dict[str, list[int]] = {}
        for i, name in enumerate(names):
            parts = name.split(".")
            groups.setdefault(".".join(parts[: max(1, min(depth, len(parts) - 1))]), []).append(i)
        if len(groups) <= MAX_GROUPS:
            return groups
    return {"all": list(range(len(names)))}


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row with its tensors read, one transfer for all of them."""
    norms = row.pop("norms", {})
    tensors = [*([row["loss"]] if isinstance(row.get("loss"), torch.Tensor) else []), *norms.values()]
    if tensors:
        device = tensors[0].device
        values = torch.stack([t.detach().reshape(()).float().to(device) for t in tensors]).tolist()
        if isinstance(row.get("loss"), torch.Tensor):
            row["loss"] = values.pop(0)
        row["grad_norm"] = math.sqrt(sum(v * v for v in values)) if values else None
        row["grad_norms"] = dict(zip(norms, values, strict=True))
    return {k: v for k, v in row.items() if v is not None}
