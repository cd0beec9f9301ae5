"""What calls of libraries do, in tables: functions by dotted name, methods by the kind of their receiver."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from trainwreck.code.rehearsal.domain import Value

if TYPE_CHECKING:
    from trainwreck.code.rehearsal.calling import Asked
    from trainwreck.code.rehearsal.rehearsing import Rehearsing

Handler = Callable[["Rehearsing", "Asked"], Value]
FUNCTIONS: dict[str, Handler] = {}
"""By dotted name; a name that ends with ``.*`` stands for everything below."""
METHODS: dict[tuple[str, str], Handler] = {}
"""By (kind of receiver, method). Kinds: ``module``, ``optimizer``, ``scheduler``, ``scaler``, ``list``, ``dict``,
``str``, ``tensor``, ``number``, or the dotted name of the object's kind."""
NOTHING: Any = object()
"""A handler returns it where it does not apply after all."""


def function(*names: str) -> Callable[[Handler], Handler]:
    def note(handler: Handler) -> Handler:
        for name in names:
            FUNCTIONS[name] = handler
        return handler

    return note


def method(kind: str, *names: str) -> Callable[[Handler], Handler]:
    def note(handler: Handler) -> Handler:
        for name in names:
            METHODS[kind, name] = handler
        return handler

    return note
