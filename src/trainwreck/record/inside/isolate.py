"""Make a forked copy of the training safe to run in: nothing that it does may reach the original or the outside.

Files that are open share their position with the original, sockets and pipes their bytes, workers their queues. So in
the copy loaders give nothing, collectives and sockets raise, no file is opened for writing outside our own folder,
optimizers and schedulers don't step, and a clock ends it.
"""

from __future__ import annotations

import contextlib
import gc
import os
import re
import signal
import socket
import sys
from collections.abc import Iterator
from typing import Any

import torch

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC
DENIED = re.compile(
    r"subprocess\.Popen|os\.(system|remove|rename|rmdir|mkdir|truncate|exec|posix_spawn|fork|kill)|"
    r"socket\.(connect|sendto)|shutil\.(rmtree|move)"
)
"""Audit events (Python's table of them) that reach other processes or files."""


class Blocked(Exception):
    """Something that a copy of the training must not do."""


class Reached(BaseException):
    """Backward was called: carries the loss out of the code that runs once more."""

    def __init__(self, loss: Any) -> None:
        super().__init__()
        self.loss = loss


def child(folder: str, seconds: int) -> None:
    """Turn this freshly forked process into a copy that may write below ``folder`` only and ends after ``seconds``."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM, signal.SIGCHLD):
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
    signal.alarm(seconds)
    torch.set_num_threads(1)
    gc.disable()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    with contextlib.suppress(Exception):
        os.nice(5)
    calm()
    sys.dont_write_bytecode = True
    sys.addaudithook(_audit(os.path.abspath(folder)))


def _audit(folder: str) -> Any:
    def look(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = (*arguments, None, None, None)[:3]
            writes = bool(flags & WRITES) if isinstance(flags, int) else any(c in str(mode) for c in "wax+")
            if writes and not (
                isinstance(path, str) and (path == os.devnull or os.path.abspath(path).startswith(folder))
            ):
                raise Blocked("a file is opened for writing")
        elif DENIED.fullmatch(event) and not (
            event in ("os.rename", "os.mkdir") and os.path.abspath(str(arguments[0])).startswith(folder)
        ):
            raise Blocked(event)

    return look


def _blocked(*arguments: Any, **options: Any) -> Any:
    raise Blocked("not in a copy of the training")


def _nothing(*arguments: Any, **options: Any) -> None:
    return None


def calm() -> None:
    """Loaders, collectives, sockets and steps do nothing from here on. For a process that ends with the replay."""
    from torch.utils.data import dataloader

    for kind in (dataloader._BaseDataLoaderIter, dataloader._MultiProcessingDataLoaderIter):
        kind.__next__ = _blocked
        kind.__del__ = _nothing
    dataloader.DataLoader.__iter__ = _blocked
    for name in ("send", "sendall", "sendto", "sendmsg"):
        with contextlib.suppress(AttributeError, TypeError):
            setattr(socket.socket, name, _blocked)
    _no_collectives()
    _no_steps()
    if "torch._dynamo" in sys.modules:  # Nothing is compiled otherwise, and the import takes seconds.
        with contextlib.suppress(Exception):
            torch.compiler.set_stance("force_eager")


def _no_steps() -> None:
    kinds: list[Any] = [torch.optim.Optimizer]
    for base in kinds:
        kinds += base.__subclasses__()
    for kind in kinds:
        for name in ("step", "zero_grad"):
            if name in kind.__dict__:
                setattr(kind, name, _nothing)
    schedulers: list[Any] = [torch.optim.lr_scheduler.LRScheduler]
    for base in schedulers:
        schedulers += base.__subclasses__()
        if "step" in base.__dict__:
            base.step = _nothing


def _no_collectives() -> None:
    distributed = sys.modules.get("torch.distributed.distributed_c10d")
    if distributed is None or not distributed.is_initialized():
        return
    for module in (distributed, sys.modules["torch.distributed"]):
        for name in (
            "all_reduce",
            "broadcast",
            "all_gather",
            "all_gather_into_tensor",
            "reduce_scatter_tensor",
            "send",
        ):
            setattr(module, name, _blocked)
        for name in (
            "recv",
            "isend",
            "irecv",
            "barrier",
            "reduce",
            "gather",
            "scatter",
            "all_to_all",
            "all_to_all_single",
        ):
            setattr(module, name, _blocked)
    from torch.nn.parallel import DistributedDataParallel

    def forward(self: Any, *arguments: Any, **options: Any) -> Any:
        return self.module(*arguments, **options)

    DistributedDataParallel.forward = forward


def distributed() -> bool:
    """Whether this process belongs to a group of more than one."""
    module = sys.modules.get("torch.distributed.distributed_c10d")
    return bool(module is not None and module.is_initialized() and module.get_world_size() > 1)


@contextlib.contextmanager
def caught_backward() -> Iterator[None]:
    """Inside, the first call of backward ends the code that made it, with ``Reached``."""
    backward, function = torch.Tensor.backward, torch.autograd.backward

    def reach(tensor: Any, *arguments: Any, **options: Any) -> None:
        raise Reached(tensor if isinstance(tensor, torch.Tensor) else tensor[0])

    torch.Tensor.backward = reach
    torch.autograd.backward = reach
    try:
        yield
    finally:
        torch.Tensor.backward, torch.autograd.backward = backward, function
