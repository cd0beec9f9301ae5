"""What a dataset holds that does not survive the way into a worker: looked at by type, nothing is called or pickled."""

from __future__ import annotations

import io
import types
from collections.abc import Iterator
from typing import Any

import torch

MAX_DEPTH, MAX_ITEMS = 3, 200
_GENERATORS = {("numpy.random._generator", "Generator"), ("numpy.random.mtrand", "RandomState"), ("random", "Random")}
_CONNECTIONS = {
    ("sqlite3", "Connection"),
    ("_sqlite3", "Connection"),
    ("h5py._hl.files", "File"),
    ("lmdb", "Environment"),
}


def holdings(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """(path of the attribute, what it is) of everything doubtful under ``value``.

    What: ``generator`` (of random numbers), ``lambda`` (or a local function), ``iterator``, ``lock``, ``file``,
    ``cuda``.
    """
    attributes = getattr(value, "__dict__", None)
    if depth >= MAX_DEPTH or not isinstance(attributes, dict):
        return
    for name, item in list(attributes.items())[:MAX_ITEMS]:
        label = f"{path}.{name}" if path else name
        what = kind_of(item)
        if what is not None:
            yield label, what
        elif isinstance(item, (list, tuple)):
            for index, member in enumerate(item[:16]):
                inner = kind_of(member)
                if inner is not None:
                    yield f"{label}[{index}]", inner
                elif not isinstance(member, torch.Tensor):
                    yield from holdings(member, f"{label}[{index}]", depth + 1)
        elif not isinstance(item, (torch.Tensor, types.ModuleType, type, torch.nn.Module)):
            yield from holdings(item, label, depth + 1)


def kind_of(item: Any) -> str | None:
    """What ``item`` is, of the kinds that workers can't share; None for anything else."""
    cls = type(item)
    name = (cls.__module__, cls.__name__)
    if isinstance(item, torch.Generator) or name in _GENERATORS:
        return "generator"
    if isinstance(item, types.FunctionType):
        return "lambda" if "<lambda>" in item.__qualname__ or "<locals>" in item.__qualname__ else None
    if isinstance(item, (types.GeneratorType, types.CoroutineType)):
        return "iterator"
    if name in (("_thread", "lock"), ("_thread", "RLock")):
        return "lock"
    if (isinstance(item, io.IOBase) and not isinstance(item, (io.BytesIO, io.StringIO))) or name in _CONNECTIONS:
        return "file"
    if isinstance(item, torch.Tensor) and item.device.type == "cuda":
        return "cuda"
    return None
