"""Python imports this module at start-up because its folder stands first on PYTHONPATH.

It takes itself off the path, starts the recorder, and hands over to the ``sitecustomize`` that it hides, if any.
"""

import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))


def _restore_path() -> None:
    """The search path and PYTHONPATH as they would be without us."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _here]
    before = os.environ.pop("TRAINWRECK_PYTHONPATH", None)
    if os.environ.get("TRAINWRECK_CHILDREN"):
        # Ranks that a launcher starts are recorded as well, so they need the path once more.
        if before is not None:
            os.environ["TRAINWRECK_PYTHONPATH"] = before
        return
    if before:
        os.environ["PYTHONPATH"] = before
    else:
        os.environ.pop("PYTHONPATH", None)


def _start() -> None:
    import importlib
    import types

    folder, options = os.environ.get("TRAINWRECK_RECORD"), os.environ.get("TRAINWRECK_OPTIONS")
    if not os.environ.get("TRAINWRECK_CHILDREN"):
        os.environ.pop("TRAINWRECK_RECORD", None)
        os.environ.pop("TRAINWRECK_OPTIONS", None)
    if not folder:
        return
    package = types.ModuleType("_trainwreck_inside")
    package.__path__ = [os.path.dirname(_here)]
    sys.modules["_trainwreck_inside"] = package
    hooks = importlib.import_module("_trainwreck_inside.hooks")
    if options:
        import json

        hooks.install(folder, json.loads(options))
    else:
        hooks.install(folder)


try:
    _restore_path()
    _start()
except Exception as problem:
    # The training must start whatever happens to us.
    print(f"trainwreck: not recording ({type(problem).__name__}: {problem})", file=sys.stderr)


def _hand_over() -> None:
    """Run the ``sitecustomize`` that ours hides, as Python would have."""
    import importlib.util
    from importlib.machinery import PathFinder

    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


_hand_over()
