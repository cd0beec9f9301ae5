"""Names of parameters and modules by identity, found once among the live objects."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

import torch

MAX_SCANS = 12
"""Walks over all live objects in one run: each takes some tenths of a second in a large program."""


class Names:
    """Who is who: ``ClassName.path.to.weight`` for every parameter of every module alive.

    Modules are held weakly: a model that the user drops is gone. ``roots`` are the outermost modules with parameters.
    """

    def __init__(self) -> None:
        self._roots: list[weakref.ref[Any]] = []
        self._parameters: dict[int, tuple[weakref.ref[Any], str]] = {}
        self._labels: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._counts: dict[str, int] = {}
        self._scans = 0

    def scan(self, wanted: Iterable[Any] = ()) -> None:
        """Look at all live objects, unless the parameters ``wanted`` have names already."""
        wanted = list(wanted)
        if (wanted and all(self.of(p) for p in wanted)) or self._scans >= MAX_SCANS:
            return
        self._scans += 1
        # Asked of the type: isinstance would wake lazy objects, which may warn or import.
        modules = [m for m in gc.get_objects() if issubclass(type(m), torch.nn.Module)]
        inner = {id(c) for m in modules for c in m.__dict__.get("_modules", {}).values() if c is not None}
        loss = torch.nn.modules.loss._Loss
        roots = [m for m in modules if id(m) not in inner and not issubclass(type(m), loss)]
        # A wrapper (compile, DDP) and its module are found as one root; larger models first.
        self._roots = []
        for root in roots:
            self.add(root)

    def add(self, root: Any) -> None:
        """Take ``root`` and its parameters in."""
        named = [(name, p) for name, p in root.named_parameters()]
        if not named:
            return
        if all(r() is not root for r in self._roots):
            self._roots.append(weakref.ref(root))
        base = self.name_of(root)
        for name, parameter in named:
            if not self.of(parameter):
                self._parameters[id(parameter)] = (weakref.ref(parameter), f"{base}.{short(name)}")

    def name_of(self, root: Any) -> str:
        """Name of an outermost module: its class, numbered where there are several (``Net``, ``Net2``)."""
        known = self._labels.get(root)
        if known is None:
            base = type(root).__name__
            self._counts[base] = self._counts.get(base, 0) + 1
            known = base if self._counts[base] == 1 else f"{base}{self._counts[base]}"
            self._labels[root] = known
        return known

    def of(self, parameter: Any) -> str | None:
        """The name of ``parameter``, None if no module alive has it."""
        held = self._parameters.get(id(parameter))
        return held[1] if held is not None and held[0]() is parameter else None

    @property
    def roots(self) -> list[Any]:
        """The outermost modules that hold parameters and are still alive."""
        return [module for ref in self._roots if (module := ref()) is not None]

    def modules(self) -> Iterator[tuple[str, Any]]:
        """(name, module) of all modules below all roots, the roots themselves included."""
        for root in self.roots:
            base = self.name_of(root)
            for name, module in root.named_modules():
                yield (f"{base}.{short(name)}" if name else base), module


def short(name: str) -> str:
    """``name`` without what wrappers add to it."""
    for part in ("_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module."):
        name = name.replace(part, "")
    return name


def groups(names: list[str], most: int) -> dict[str, list[int]]:
    """Indices of ``names`` by module, at the greatest depth that gives at most ``most`` modules."""
    for depth in range(8, 0, -1):
        found: dict[str, list[int]] = {}
        for i, name in enumerate(names):
            parts = name.split(".")
            found.setdefault(".".join(parts[: max(1, min(depth, len(parts) - 1))]), []).append(i)
        if len(found) <= most:
            return found
    return {"all": list(range(len(names)))}
