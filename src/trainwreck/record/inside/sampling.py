"""Outputs of leaf modules at sampled steps: hooks are attached for that step only, and never where torch compiles.

Also batch norm's running statistics, and units that never fired.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

import torch

from .digest import is_plain
from .hidden import hidden
from .probe import Probe, Step
from .watched import sample_of

TABLE = "modules"
MAX_MODULES = 256
MAX_UNITS = 8192
"""Units of one layer whose activity is remembered."""
RECTIFIERS = ("ReLU", "ReLU6", "GELU", "SiLU", "LeakyReLU", "ELU")
SQUASHERS = {"Sigmoid": (0.0, 1.0), "Tanh": (-1.0, 1.0), "Hardsigmoid": (0.0, 1.0)}
FLAT = 0.02
"""Distance from the end of a sigmoid's or tanh's range within which it is called saturated: its slope there is under a
tenth of the greatest."""
MODES = (torch.nn.modules.dropout._DropoutNd, torch.nn.modules.batchnorm._NormBase)
LEAST_ROWS = 8
"""Samples, and features, from which the spread over samples says something."""
RUNNING_STEPS = 8
"""Steps in training mode after which running statistics must have moved."""


class Sampling(Probe):
    """Table ``modules``: ``<module>.min``, ``.max``, ``.std``, ``.zero``, ``.saturated``; events for units that never
    fired and for statistics that do not move."""

    name = "module outputs"
    rarely = frozenset(("before_step", "after_step"))

    def __init__(self, recorder: Any) -> None:
        super().__init__(recorder)
        self.compiled = False
        self._every = bool(recorder.options.get("every_leaf"))
        if self._every:
            self.rarely = frozenset()
        self._handles: list[Any] = []
        self._leaves: dict[int, tuple[str, str, str, str]] = {}
        """By the identity of a module: its name, its class, and the names of two of its columns."""
        self._row: dict[str, Any] = {}
        self._fired: dict[str, Any] = {}
        self._looks: dict[str, int] = {}
        self._running: list[tuple[weakref.ref[Any], str, Any, Any]] = []
        self._told: set[str] = set()
        self._thread = 0
        self._sampled = False
        """Whether the step that is hooked is a sampled one, or one of ``every_leaf`` only."""
        self._in_training: set[str] = set()
        self._free: weakref.WeakKeyDictionary[Any, list[Any]] = weakref.WeakKeyDictionary()

    def attach(self) -> None:
        """Know when something is compiled: from then on no hook of ours may be in place."""
        original = torch.compile

        def compile(*arguments: Any, **options: Any) -> Any:
            self.compiled = True
            try:
                self._remove()
            except Exception as problem:
                self.recorder.faults.add(self.name, problem)
            return original(*arguments, **options)

        for name in ("__doc__", "__name__", "__qualname__", "__module__"):
            setattr(compile, name, getattr(original, name))
        compile.__wrapped__ = original  # type: ignore[attr-defined]
        torch.compile = compile

    def before_step(self, step: Step) -> None:
        """The sampled step's forwards are over."""
        if step.watched is self.recorder.lead:
            self._remove()
            if len(self._row) > 1:
                self.recorder.row(TABLE, self._row)
            self._row = {}

    def after_step(self, step: Step) -> None:
        """Attach before a step that is to be sampled; look at running statistics once."""
        if step.watched is not self.recorder.lead:
            return
        if step.number == 1:
            self._in_training.clear()  # what ran in an earlier phase says nothing of this one
            self._remember_statistics()
            self._remember_free_models()
        if step.number == RUNNING_STEPS:
            self._judge_statistics(step)
            self._judge_teachers(step)
        if not self.compiled and (self._every or self.recorder.sampled(step.number + 1)):
            self._attach(step.number + 1)

    def close(self) -> None:
        """Tell of units that never fired."""
        self._remove()
        for name, fired in self._fired.items():
            looks, units = self._looks[name], fired.numel()
            dead = units - int(fired.sum())
            if looks >= 4 and units >= 4 and dead > 0.5 * units:
                share = dead / units
                text = f"{dead} of {units} units of {name} were zero for every sample of {looks} sampled steps"
                self.recorder.event("live-dead-units", text, name, value=round(share, 3))

    # below

    def _attach(self, step: int) -> None:
        self._row = {"step": step}
        self._thread = threading.get_ident()
        self._sampled = self.recorder.sampled(step)
        if self._sampled or not self._leaves:
            found = leaves(self.recorder.names.modules())
            self._leaves = {id(m): (n, type(m).__name__, f"{n}.min", f"{n}.max") for n, m in found}
        # One hook for all modules: a hook in a module would be copied and saved with it.
        self._handles.append(torch.nn.modules.module.register_module_forward_hook(self._hook))

    def _remove(self) -> None:
        handles, self._handles = self._handles, []
        for handle in handles:
            handle.remove()

    def _hook(self, module: Any, arguments: Any, output: Any) -> None:
        try:
            known = self._leaves.get(id(module))
            if known is None or not module.training or known[2] in self._row:
                return
            if torch.compiler.is_compiling() or threading.get_ident() != self._thread:
                return
            if self.name in self.recorder.faults.off:
                return
            began = self.recorder.pace.begin(self._sampled)
            if self._sampled and isinstance(module, MODES):
                self._in_training.add(known[0])
            self._look(known, output)
            self.recorder.pace.end(began)
        except Exception as problem:
            self.recorder.faults.add(self.name, problem)

    def _look(self, known: tuple[str, str, str, str], output: Any) -> None:
        if isinstance(output, tuple) and output:
            output = output[0]
        if not is_plain(output) or not output.is_floating_point() or not output.numel():
            return
        name, kind, least, most = known
        value = output.detach()  # and so no gradient is asked for in what follows
        low, high = torch.aminmax(value)
        self._row[least], self._row[most] = low, high
        if not self._sampled:
            return
        self._row[f"{name}.std"] = value.float().std() if value.numel() > 1 else 0.0
        if value.dim() == 2 and min(value.shape) >= LEAST_ROWS:
            self._row[f"{name}.spread"] = value.float().std(0).mean()
        if kind in RECTIFIERS or float_is_zero(low):
            self._units(name, value)
        elif kind in SQUASHERS:
            bottom, top = SQUASHERS[kind]
            width = FLAT * (top - bottom)
            flat = (value < bottom + width) | (value > top - width)
            self._row[f"{name}.saturated"] = flat.float().mean()

    def _units(self, name: str, value: Any) -> None:
        """Share of zeros, and which units fired at all."""
        positive = value > 0
        self._row[f"{name}.zero"] = 1.0 - positive.float().mean()
        if value.dim() < 2 or value.shape[1 if value.dim() in (2, 4) else -1] > MAX_UNITS:
            return
        unit = 1 if value.dim() in (2, 4) else value.dim() - 1
        fired = positive.transpose(0, unit).reshape(positive.shape[unit], -1).any(1)
        known = self._fired.get(name)
        self._fired[name] = fired if known is None or known.shape != fired.shape else known | fired
        self._looks[name] = self._looks.get(name, 0) + 1

    def _remember_statistics(self) -> None:
        norm = torch.nn.modules.batchnorm._NormBase
        for name, module in list(self.recorder.names.modules())[:2000]:
            if issubclass(type(module), norm) and getattr(module, "running_mean", None) is not None and module.training:
                seen = module.num_batches_tracked
                ran = seen.clone() if seen is not None else None
                self._running.append((weakref.ref(module), name, module.running_mean.clone(), ran))
        del self._running[64:]

    def _free_models(self) -> list[Any]:
        """Outermost models of which no optimizer holds a parameter."""
        held = {id(p) for w in self.recorder.optimizers.values() for p in w.parameters}
        return [r for r in self.recorder.names.roots if not any(id(p) in held for p in r.parameters())]

    def _remember_free_models(self) -> None:
        """A few values of them, to tell a fixed teacher from an average that follows the trained model."""
        for root in self._free_models():
            if next(root.parameters()).device.type != "cpu":
                continue  # comparing would wait for the device
            self._free[root] = [sample_of(p).clone() for p in list(root.parameters())[:2]]

    def _judge_teachers(self, step: Step) -> None:
        """Fixed models that run in training mode beside the trained ones.

        One that moves is an average of the trained model; noise in it belongs to the method (mean teacher).
        """
        held = {id(p) for w in self.recorder.optimizers.values() for p in w.parameters}
        parts = hidden(self.recorder.names.modules(), held)
        for root in self._free_models():
            before = self._free.get(root)
            now = [sample_of(p) for p in list(root.parameters())[:2]]
            if before is None or not all(torch.equal(a, b) for a, b in zip(before, now, strict=True)):
                continue
            if any(root is module for _, _, module in parts):
                continue  # a part of the trained model that was left out of the optimizer, no teacher
            base = self.recorder.names.name_of(root)
            mine = sorted(n for n in self._in_training if n.startswith(f"{base}."))
            if mine:
                text = f"{base} runs in training mode ({mine[0]}) beside the trained model, and no optimizer holds it"
                self.tell("live-teacher-in-training-mode", text, base, step=step.number)

    def _judge_statistics(self, step: Step) -> None:
        alive = [
            (m, name, old)
            for ref, name, old, ran in self._running
            if (m := ref()) is not None and m.training and (ran is None or not torch.equal(m.num_batches_tracked, ran))
        ]  # those that have run since
        self._running = []
        if alive and alive[0][2].device.type == "cpu":
            still = [name for m, name, old in alive if m.running_mean is not None and torch.equal(m.running_mean, old)]
            if len(still) == len(alive):
                momentum = alive[0][0].momentum
                text = (
                    f"running statistics of {len(still)} batch-norm layers in training mode have not moved in"
                    f" {step.number - 1} steps (momentum {momentum}): evaluation will use their initial values"
                )
                self.recorder.event("live-running-statistics-still", text, still[0], step=step.number, value=momentum)


def leaves(modules: Any) -> list[tuple[str, Any]]:
    """Modules without children that take part in a forward, at most ``MAX_MODULES`` spread over the model."""
    skip = (torch.jit.ScriptModule, torch.nn.Identity, torch.nn.modules.loss._Loss)
    found = [(n, m) for n, m in modules if not m._modules and not isinstance(m, skip) and n]
    if len(found) > MAX_MODULES:
        found = found[:: len(found) // MAX_MODULES + 1]
    return found


def float_is_zero(value: Any) -> bool:
    """True for a CPU scalar that is exactly 0: what a rectifier leaves."""
    return bool(value.device.type == "cpu" and value == 0)
