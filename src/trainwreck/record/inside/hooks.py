"""Install the recorder: wait until the user imports torch, then listen to backward and to optimizer steps.

Standard library only at import; the file is loaded by path, before anything of the user's runs.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.util
import os
import sys
import traceback
import types
from collections.abc import Sequence
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
_recorder: Any = None
_folder: str | None = None
"""Where the recording under way is kept; None when none is."""


def install(folder: str, options: dict[str, Any] | None = None) -> None:
    """Record into ``folder`` from the moment torch is imported; note an exception that ends the program."""
    global _folder
    _folder = os.path.abspath(folder)
    with contextlib.suppress(Exception):
        importlib.import_module(".children", __package__).follow(_folder, options)
    if "torch" in sys.modules:
        start(folder, options)
    else:
        sys.meta_path.insert(0, _AfterTorch(folder, options))
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _excepthook


def current() -> Any:
    """The recorder of this process, None if there is none."""
    return _recorder


class _AfterTorch(importlib.abc.MetaPathFinder):
    """Lets the other finders load torch, and starts the recorder when it is ready."""

    def __init__(self, folder: str, options: dict[str, Any] | None) -> None:
        self._folder, self._options = folder, options

    def find_spec(self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None) -> Any:
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        loader, folder, options = spec.loader, self._folder, self._options
        execute = loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            with contextlib.suppress(AttributeError):
                del loader.exec_module
            execute(module)
            start(folder, options)

        loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def start(folder: str, options: dict[str, Any] | None = None) -> Any:
    """Attach the recorder to torch, once, and return it. A fault of ours is told in one line; the training goes on."""
    global _recorder
    if _recorder is not None:
        return _recorder
    try:
        if options and "again" in options:
            importlib.import_module(".again", __package__).Again(options["again"], options["answer"]).attach()
            return None
        module = importlib.import_module(".recorder", __package__)
        recorder = module.Recorder(folder, options)
        recorder.attach()
        _watch_fatal(folder)
        os.register_at_fork(after_in_child=recorder.forked)
        importlib.import_module(".children", __package__).close_at_end(recorder)
        _recorder = recorder
    except Exception as problem:
        print(f"trainwreck: not recording ({type(problem).__name__}: {problem})", file=sys.stderr)
    return _recorder


def _watch_fatal(folder: str) -> None:
    """Have the stack written where native code ends the process, unless the program has that already; raises nothing.

    What the program enables itself later takes this one's place. The file stays empty mostly, and is gone at the end.
    """
    with contextlib.suppress(Exception):
        import faulthandler

        if faulthandler.is_enabled():
            return
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(os.path.abspath(folder), f"fatal-rank{os.environ.get('RANK', '0')}-{os.getpid()}.txt")
        faulthandler.enable(open(path, "w", encoding="utf-8"))  # noqa: SIM115
        importlib.import_module(".children", __package__).at_exit(_unlink_empty, path, os.getpid())


def _unlink_empty(path: str, owner: int) -> None:
    with contextlib.suppress(OSError):
        if os.getpid() == owner and not os.path.getsize(path):
            os.unlink(path)
            os.rmdir(os.path.dirname(path))  # where nothing else was recorded


def stop() -> None:
    """End the recording of this process; ``start`` may begin another one. Hooks that stay behind return at once."""
    global _recorder, _folder
    recorder, _recorder, _folder = _recorder, None, None
    if recorder is not None:
        recorder.close()


def keep_traceback(folder: str, error: BaseException) -> None:
    """Write the traceback of ``error`` beside the recording, without our frames; raises nothing."""
    with contextlib.suppress(Exception):
        rank = os.environ.get("RANK", "0")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"traceback-rank{rank}.txt"), "w", encoding="utf-8") as file:
            file.writelines(traceback.format_exception(type(error), error, error.__traceback__))


def _keep_variables(folder: str, error: BaseException) -> None:
    """Write what the variables of the failing frames held; raises nothing."""
    if "torch" not in sys.modules or isinstance(error, KeyboardInterrupt):
        return
    with contextlib.suppress(Exception):
        step = _recorder.step if _recorder is not None else 0
        importlib.import_module(".crash", __package__).crash(folder, error, step, os.environ.get("RANK", "0"))


def _excepthook(kind: type[BaseException], value: BaseException, trace: types.TracebackType | None) -> None:
    """Print the user's traceback without our frames, and keep a copy beside the recording."""
    with contextlib.suppress(Exception):
        strip(value)
        trace = value.__traceback__
    sys.__excepthook__(kind, value, trace)
    if _folder is not None:
        keep_traceback(_folder, value)
        _keep_variables(_folder, value)


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
