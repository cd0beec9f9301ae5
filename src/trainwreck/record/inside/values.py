"""Values around a step: parameters, buffers and variables by name, and which of them are damaged."""

from __future__ import annotations

import functools
import gc
import os
from collections.abc import Iterator
from typing import Any

import torch

from . import tensors
from .names import short

HERE = os.path.dirname(os.path.abspath(__file__))
TORCH = os.path.dirname(os.path.realpath(torch.__file__))
WAYS = tuple(
    os.path.join(TORCH, *parts)
    for parts in (("_tensor.py",), ("autograd",), ("optim",), ("utils", "_contextlib.py"), ("overrides.py",))
)


@functools.cache
def on_the_way(path: str) -> bool:
    """Whether a file is ours, or torch's own between the user's call and the hook."""
    return os.path.abspath(path).startswith(HERE + os.sep) or os.path.realpath(path).startswith(WAYS)


class Known:
    """Names of modules, parameters and buffers of all modules alive. Looks once, when it is made."""

    def __init__(self, roots: list[Any] | None = None) -> None:
        self.roots = roots if roots is not None else find_roots()
        self.names: dict[int, str] = {}
        self.held: dict[int, tuple[str, str]] = {}
        """Storage to (parameter or buffer, name)."""
        self._parameters: list[tuple[str, Any]] = []
        self._buffers: list[tuple[str, Any]] = []
        for root in self.roots:
            self._add(root)

        self._add_loose()

    def _add_loose(self) -> None:
        """Parameters that an optimizer holds and no module: named by their place in it."""
        for optimizer in (o for o in gc.get_objects() if issubclass(type(o), torch.optim.Optimizer)):
            parameters = [p for g in optimizer.__dict__.get("param_groups", ()) for p in g["params"]]
            for i, parameter in enumerate(parameters):
                if storage(parameter) not in self.held:
                    name = f"{type(optimizer).__name__}.parameter{i}"
                    self._parameters.append((name, parameter))
                    self.held[storage(parameter)] = ("parameter", name)

    def _add(self, root: Any) -> None:
        root = unwrapped(root)
        base = type(root).__name__
        for name, module in root.named_modules():
            self.names.setdefault(id(module), ".".join(filter(None, [base, short(name)])))
        for name, parameter in root.named_parameters():
            self._parameters.append((f"{base}.{short(name)}", parameter))
            self.held.setdefault(storage(parameter), ("parameter", f"{base}.{short(name)}"))
        for name, buffer in root.named_buffers():
            self._buffers.append((f"{base}.{short(name)}", buffer))
            self.held.setdefault(storage(buffer), ("buffer", f"{base}.{short(name)}"))

    def parameters(self) -> list[Any]:
        """All parameters of all modules, each once."""
        seen: dict[int, Any] = {}
        for _, parameter in self._parameters:
            seen.setdefault(id(parameter), parameter)
        return list(seen.values())

    def named(self) -> Iterator[tuple[str, Any]]:
        """(name, tensor) of parameters, then of buffers, each tensor once."""
        seen: set[int] = set()
        for name, tensor in [*self._parameters, *self._buffers]:
            if id(tensor) not in seen:
                seen.add(id(tensor))
                yield name, tensor

    def damaged(self) -> list[dict[str, Any]]:
        """Parameters that are not finite, with their ranges: name, shape, counts of NaN and infinity."""
        found, seen = [], set()
        for name, parameter in self._parameters:
            if id(parameter) not in seen and tensors.nonfinite(parameter):
                found.append({"name": name, **tensors.ranges(parameter)})
            seen.add(id(parameter))
        return found


def unwrapped(root: Any) -> Any:
    """The module inside the wrappers of compilation and data parallelism."""
    inner = {"OptimizedModule": "_orig_mod", "DistributedDataParallel": "module", "DataParallel": "module"}
    while (name := inner.get(type(root).__name__)) and name in root.__dict__.get("_modules", {}):
        root = root._modules[name]
    return root


def find_roots() -> list[Any]:
    """The outermost modules alive that hold parameters."""
    # Asked of the type: isinstance would wake lazy objects, which may warn or import.
    modules = [m for m in gc.get_objects() if issubclass(type(m), torch.nn.Module)]
    inner = {id(c) for m in modules for c in m.__dict__.get("_modules", {}).values() if c is not None}
    roots = [m for m in modules if id(m) not in inner and any(True for _ in m.parameters())]
    return roots or [m for m in modules if id(m) not in inner]


def storage(tensor: Any) -> int:
    """Identity of the memory that a tensor shows."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except Exception:
        return id(tensor)


def variables(space: dict[str, Any], depth: int = 3) -> Iterator[tuple[str, Any]]:
    """(name, tensor) of tensors in variables and in containers and plain objects that variables hold."""
    for name, value in list(space.items()):
        if not name.startswith("__"):
            yield from _inside(name, value, depth)


def _inside(name: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    if isinstance(value, torch.Tensor):
        yield name, value
    elif depth and isinstance(value, dict):
        for key, item in list(value.items())[:64]:
            yield from _inside(f"{name}[{key!r}]", item, depth - 1)
    elif depth and isinstance(value, (list, tuple)):
        fields = getattr(value, "_fields", None)
        for i, item in enumerate(value[:64]):
            yield from _inside(f"{name}.{fields[i]}" if fields else f"{name}[{i}]", item, depth - 1)
    elif depth and not isinstance(value, (torch.nn.Module, type)) and isinstance(getattr(value, "__dict__", 0), dict):
        if type(value).__module__ in ("builtins", "torch.utils.data.dataloader"):
            return
        for key, item in list(vars(value).items())[:64]:
            if isinstance(item, torch.Tensor):
                yield f"{name}.{key}", item


def losses(value: Any) -> list[Any]:
    """The tensors of a graph among what a slice left: one loss, or arguments that hold it."""
    if isinstance(value, torch.Tensor):
        return [value] if value.is_floating_point() else []
    if isinstance(value, (list, tuple)):
        found = [t for item in value for t in losses(item)]
        return [t for t in found if t.requires_grad] or found
    return []


def before_step(value: Any) -> Any:
    """A stand-in for state of the step before: its value now without a graph, zeros where it is not finite."""
    if isinstance(value, torch.Tensor):
        copy = value.detach().clone()
        return torch.zeros_like(copy) if tensors.nonfinite(copy) else copy
    if isinstance(value, (list, tuple)):
        items = [before_step(item) for item in value]
        if isinstance(value, list):
            return items
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, dict):
        return {key: before_step(item) for key, item in value.items()}
    return value
