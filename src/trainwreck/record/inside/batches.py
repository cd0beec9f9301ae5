"""Data loaders: how long each batch was waited for, what a dataset holds that workers can't share, repeated batches."""

from __future__ import annotations

import contextlib
import hashlib
import multiprocessing
import sys
import time
import weakref
from types import FrameType
from typing import Any

import torch
from torch.utils.data import DataLoader, IterableDataset, SequentialSampler
from torch.utils.data import dataloader as implementation

from . import callers
from .digest import is_plain
from .holdings import holdings
from .probe import Probe

MAX_HASHED = 400
"""Batches of one loader whose content is compared (iterable datasets with several workers only)."""


class Batches(Probe):
    """Column ``data_seconds``; an event ``loader`` for each loader; events for what its dataset should not hold."""

    name = "batches"

    def __init__(self, recorder: Any) -> None:
        super().__init__(recorder)
        self._started = 0.0
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()
        self._hashes: dict[bytes, int] = {}
        self._counts = [0, 0]

    def attach(self) -> None:
        """Listen to loaders being iterated, and to their iterators asking for a batch and having one."""
        callers.watch(DataLoader, "__iter__", self._begins)
        for name in ("_SingleProcessDataLoaderIter", "_MultiProcessingDataLoaderIter"):
            iterator = getattr(implementation, name)
            if "_next_data" in iterator.__dict__:
                callers.watch(iterator, "_next_data", self._asks)
        base = implementation._BaseDataLoaderIter
        base._num_yielded = _Counter(self._has)

    def _asks(self, _: Any, __: FrameType | None) -> None:
        self._started = time.perf_counter()

    def _has(self, iterator: Any, frame: FrameType) -> None:
        self.recorder.beats += 1
        if self._started:
            columns = self.recorder.columns
            columns["data_seconds"] = columns.get("data_seconds", 0.0) + time.perf_counter() - self._started
            self._started = 0.0
        many = getattr(iterator, "_num_workers", 0) > 1
        if many and issubclass(type(getattr(iterator, "_dataset", None)), IterableDataset):
            self._compare(frame.f_locals.get("data"))

    def _begins(self, loader: Any, frame: FrameType | None) -> None:
        if loader in self._known or self.recorder.off:
            return
        self._known.add(loader)
        with contextlib.suppress(RuntimeError):
            self._inspect(loader, frame)

    def _inspect(self, loader: Any, frame: FrameType | None) -> None:
        place = callers.place(callers.user_frame(frame))
        facts: dict[str, Any] = {"path": place[0], "line": place[1]} if place else {}
        workers, method = int(loader.num_workers), start_method(loader)
        length = None
        with contextlib.suppress(Exception):
            length = len(loader.dataset)
        sequential = type(loader.sampler) is SequentialSampler
        text = f"{type(loader.dataset).__name__}: batches of {loader.batch_size}, {workers} workers"
        self.recorder.event(
            "loader",
            text,
            type(loader.dataset).__name__,
            workers=workers,
            batch_size=loader.batch_size,
            sampler=type(loader.sampler).__name__,
            sequential=sequential,
            length=length,
            start=method,
            **facts,
        )
        if not workers:
            return
        reseeds = loader.worker_init_fn is not None
        for path, what in holdings(loader.dataset):
            label = f"{type(loader.dataset).__name__}.{path}"
            if what == "generator" and workers > 1 and not reseeds:
                text = (
                    f"{label} is a random generator that each of the {workers} workers gets as a copy: they all draw"
                    " the same numbers"
                )
                self.tell("live-dataset-holds-generator", text, label, **facts)
            elif what in ("lambda", "iterator", "lock") and method in ("spawn", "forkserver"):
                article = "an" if what == "iterator" else "a"
                text = f"{label} is {article} {what}, which can't be sent to a worker that is started by {method}"
                self.tell("live-dataset-unpicklable", text, label, **facts)
            elif what == "file":
                text = f"{label} is an open file or connection that {workers} workers would share"
                self.tell("live-dataset-holds-file", text, label, **facts)
            elif what == "cuda":
                text = f"{label} is a tensor on a device, which a worker can't use after a fork"
                self.tell("live-dataset-holds-device-tensor", text, label, **facts)
        for name in ("collate_fn", "worker_init_fn"):
            given = getattr(loader, name)
            qualified = str(getattr(given, "__qualname__", ""))
            if method in ("spawn", "forkserver") and ("<lambda>" in qualified or "<locals>" in qualified):
                text = f"{name} is a local function, which can't be sent to a worker that is started by {method}"
                self.tell("live-dataset-unpicklable", text, name, **facts)

    def _compare(self, data: Any) -> None:
        """Does a batch repeat an earlier one of this epoch, as when workers do not share an iterable dataset out?"""
        tensor = first_tensor(data)
        if tensor is None or self._counts[0] >= MAX_HASHED or tensor.numel() < 4:
            return
        self._counts[0] += 1
        content = tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes()
        key = hashlib.blake2b(content, digest_size=12).digest()
        if key in self._hashes:
            self._counts[1] += 1
        self._hashes[key] = self._hashes.get(key, 0) + 1
        if self._counts[0] == 16 and self._counts[1] >= 7:
            text = f"{self._counts[1]} of the first 16 batches repeat an earlier one: all workers yield the same data"
            self.tell("live-batches-repeated", text)


class _Counter:
    """Stands for the iterator's count of batches: it is set in the moment in which a batch is there."""

    def __init__(self, told: Any) -> None:
        self._told = told

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        try:
            return instance.__dict__["_num_yielded"]
        except KeyError:
            raise AttributeError("_num_yielded") from None

    def __set__(self, instance: Any, value: int) -> None:
        instance.__dict__["_num_yielded"] = value
        if value:
            try:
                self._told(instance, sys._getframe(1))
            except Exception:
                return


def start_method(loader: Any) -> str:
    """How the loader's workers are started: fork, spawn or forkserver."""
    context = loader.multiprocessing_context
    if context is not None:
        return str(context.get_start_method())
    return str(multiprocessing.get_start_method(allow_none=True) or multiprocessing.get_context().get_start_method())


def first_tensor(data: Any) -> Any:
    """The first tensor of a batch, None without one."""
    if is_plain(data):
        return data
    items = data.values() if isinstance(data, dict) else data if isinstance(data, (list, tuple)) else ()
    return next((found for item in items if (found := first_tensor(item)) is not None), None)
