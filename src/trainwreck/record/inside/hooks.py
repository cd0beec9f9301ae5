"""Install the recorder: wait until the user imports torch, then listen to backward and to optimizer steps.

Standard library only at import; the file is loaded by path, before anything of the user's runs.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.abc
import importlib.util
import os
import sys
import traceback
import types
from collections.abc import Callable, Sequence
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
_recorder: Any = None


def install(folder: str) -> None:
    """Record into ``folder`` from the moment torch is imported; note an exception that ends the program."""
    sys.meta_path.insert(0, _AfterTorch(folder))
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _excepthook(folder)


class _AfterTorch(importlib.abc.MetaPathFinder):
    """Lets the other finders load torch, and starts the recorder when it is ready."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def find_spec(self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None) -> Any:
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        loader, folder = spec.loader, self._folder
        execute = loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            with contextlib.suppress(AttributeError):
                del loader.exec_module
            execute(module)
            start(folder)

        loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def start(folder: str) -> None:
    """Attach the recorder to torch. A fault of ours is told in one line and the training goes on."""
    global _recorder
    try:
        module = _load("recorder")
        _recorder = module.Recorder(folder)
        _recorder.attach()
        atexit.register(_recorder.close)
        os.register_at_fork(after_in_child=_recorder.abandon)
    except Exception as problem:
        print(f"trainwreck: not recording ({type(problem).__name__}: {problem})", file=sys.stderr)


def _load(name: str) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(f"_trainwreck_{name}", os.path.join(HERE, f"{name}.py"))
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _excepthook(folder: str) -> Callable[..., None]:
    """Print the user's traceback without our frames, and keep a copy beside the recording."""

    def hook(kind: type[BaseException], value: BaseException, trace: types.TracebackType | None) -> None:
        with contextlib.suppress(Exception):
            strip(value)
            trace = value.__traceback__
        sys.__excepthook__(kind, value, trace)
        with contextlib.suppress(Exception):
            rank = os.environ.get("RANK", "0")
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, f"traceback-rank{rank}.txt"), "w", encoding="utf-8") as file:
                file.writelines(traceback.format_exception(kind, value, trace))

    return hook


def strip(error: BaseException, seen: set[int] | None = None) -> None:
    """Take our own frames out of the traceback of ``error`` and of everything that it came from."""
    seen = set() if seen is None else seen
    if id(error) in seen:
        return
    seen.add(id(error))
    links = []
    step = error.__traceback__
    while step is not None:
        if not os.path.abspath(step.tb_frame.f_code.co_filename).startswith(HERE):
            links.append(step)
        step = step.tb_next
    rebuilt: types.TracebackType | None = None
    for link in reversed(links):
        rebuilt = types.TracebackType(rebuilt, link.tb_frame, link.tb_lasti, link.tb_lineno)
    error.__traceback__ = rebuilt
    for other in (error.__cause__, error.__context__):
        if other is not None:
            strip(other, seen)
