"""trainwreck: find out why training went off the rails, before, during and after the run, and prove it."""

from __future__ import annotations

__version__ = "0.1.0"

__all__ = ["__version__", "check", "diagnose", "explain", "log", "watch"]

# Type checkers read this name specially; importing it from typing would cost more than all the rest of this file.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainwreck.catalogue.explain import explain
    from trainwreck.checking.api import check
    from trainwreck.engine import diagnose
    from trainwreck.record.api import log, watch

_HOMES = {
    "check": "trainwreck.checking.api",
    "diagnose": "trainwreck.engine",
    "explain": "trainwreck.catalogue.explain",
    "log": "trainwreck.record.api",
    "watch": "trainwreck.record.api",
}


def __getattr__(name: str) -> object:
    """Import the public functions on first use: ``import trainwreck`` itself must cost next to nothing."""
    if name in _HOMES:
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'trainwreck' has no attribute {name!r}")
