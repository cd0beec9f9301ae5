"""Who called: the user's frame, and how backward is noticed without a frame of ours in the user's traceback."""

from __future__ import annotations

import functools
import os
import signal
import sys
import sysconfig
from collections.abc import Callable
from types import FrameType, MethodType
from typing import Any

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
_LIBRARIES = tuple(
    os.path.abspath(path) + os.sep
    for path in (*(sysconfig.get_path(n) for n in ("stdlib", "platstdlib", "purelib", "platlib")), HERE)
    if path
)
MAX_DEPTH = 60

Seen = Callable[[Any, FrameType | None], None]
Place = tuple[str, int]
"""Path, from the working directory where it lies below it, and line."""


class OnAccess:
    """Stands in a class for one of its methods: whoever asks an instance for it is told about, then gets the method.

    The call itself goes straight to the original, so an exception in it shows no frame of ours. Asking without calling
    counts as well, which nobody does in a loop. ``told`` must not raise.
    """

    def __init__(self, original: Any, told: Seen) -> None:
        self.original, self.told = original, told
        self.__doc__ = getattr(original, "__doc__", None)
        self.__wrapped__ = original

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self.original.__get__(None, owner)
        self.told(instance, sys._getframe(1))
        return MethodType(self.original, instance)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self.original(*arguments, **options)


def watch(owner: type, name: str, told: Seen) -> None:
    """Tell of every access to the method ``name`` of instances of ``owner``; what ``told`` raises is dropped."""

    def contained(instance: Any, frame: FrameType | None) -> None:
        try:
            told(instance, frame)
        except Exception:
            return

    held = owner.__dict__[name]
    if not isinstance(held, OnAccess):
        setattr(owner, name, OnAccess(held, contained))
        return
    first = held.told  # somebody else listens already: both are told

    def both(instance: Any, frame: FrameType | None) -> None:
        first(instance, frame)
        contained(instance, frame)

    setattr(owner, name, OnAccess(held.original, both))


def watch_backward(told: Seen) -> None:
    """Tell of every ``loss.backward()`` before it runs; ``told`` must not raise."""
    torch.Tensor.backward = OnAccess(torch.Tensor.__dict__["backward"], told)


@functools.cache
def is_users(filename: str) -> bool:
    """True for code that is neither Python's, nor an installed package's, nor ours."""
    return not filename.startswith(_LIBRARIES) and not filename.startswith("<frozen")


def is_own(kind: type) -> bool:
    """True for a class of the user's own code."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return kind.__module__ == "__main__" or (isinstance(file, str) and is_users(file))


def user_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of the user's own code from ``frame`` outwards; without one, the innermost not of torch."""
    other = None
    for _ in range(MAX_DEPTH):
        if frame is None:
            break
        name = frame.f_code.co_filename
        if is_users(name):
            return frame
        if other is None and f"{os.sep}torch{os.sep}" not in name and not name.startswith(HERE):
            other = frame
        frame = frame.f_back
    return other


def here() -> FrameType | None:
    """The user's frame that is under way now. Asked for when it is needed: a frame that is kept keeps all it holds."""
    return user_frame(sys._getframe(1))


def place(frame: FrameType | None) -> tuple[str, int] | None:
    """(path, line) at which ``frame`` stands; the path relative to the working directory where it lies below it."""
    if frame is None:
        return None
    return relative(frame.f_code.co_filename), frame.f_lineno


def relative(path: str) -> str:
    """``path`` from the working directory where it lies below it, else in full."""
    here = os.getcwd() + os.sep
    path = os.path.abspath(path)
    return path[len(here) :] if path.startswith(here) else path


def assigned(frame: FrameType, name: str) -> int | None:
    """The last line up to where ``frame`` stands that gives the variable ``name`` its value; None without one."""
    import dis

    best, line = None, None
    for instruction in dis.get_instructions(frame.f_code):
        if instruction.starts_line is not None:
            line = instruction.positions.lineno if instruction.positions is not None else line
        if instruction.opname.startswith("STORE_") and instruction.argval == name and line is not None:
            best = line if line <= frame.f_lineno and (best is None or line > best) else best
    return best


def modes_active() -> bool:
    """True while the user has a dispatch mode on (counting operators, faking tensors): ours must not be among them."""
    return bool(torch._C._len_torch_dispatch_stack())


def interrupt() -> None:
    """End the program as Ctrl-C would, once the recorder has written what it knows (``--stop-on``)."""
    signal.raise_signal(signal.SIGINT)


class OnCall:
    """Stands for a function of a module's own: ``told`` gets the frame that is about to call it, then it is called.

    ``__call__`` is looked up at the call, which is the moment that is told of; what is called is the function itself,
    so a traceback shows no frame of ours. ``told`` must not raise.
    """

    def __init__(self, original: Any, told: Callable[[FrameType], None]) -> None:
        self.original, self.told = original, told
        functools.update_wrapper(self, original)

    @property
    def __call__(self) -> Any:
        self.told(sys._getframe(1))
        return self.original


def watch_autograd(told: Callable[[Any, FrameType | None, Any], None]) -> None:
    """Tell of ``torch.autograd.backward`` and ``torch.autograd.grad`` called directly: (tensor, caller, inputs).

    Both ask the same helper for the gradients to begin with, once their arguments are in order. ``inputs`` is None for
    ``backward``. What ``Tensor.backward`` calls was told already; calls from within a backward (checkpointing) and
    gradients for higher derivatives (``grad`` with ``create_graph``) are none of a training's steps.
    """
    method = torch.Tensor.__dict__["backward"]
    while isinstance(method, OnAccess):  # an earlier recording of this process listens as well
        method = method.original
    within = method.__code__
    backward, gradients = torch.autograd.backward.__code__, torch.autograd.grad.__code__

    def seen(frame: FrameType) -> None:
        code, caller = frame.f_code, frame.f_back
        if caller is None or caller.f_code is within or torch._C._current_graph_task_id() != -1:
            return
        direct = code is backward
        if not direct and code is not gradients:
            return
        try:
            found = frame.f_locals
            if not direct and found.get("create_graph"):
                return
            for tensor in found["tensors" if direct else "outputs"]:
                if isinstance(tensor, torch.Tensor):
                    told(tensor, caller, None if direct else found["inputs_tuple"])
        except Exception:
            return

    torch.autograd._make_grads = OnCall(torch.autograd._make_grads, seen)
