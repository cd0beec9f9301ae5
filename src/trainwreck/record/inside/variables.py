"""Local variables of a frame, without changing what the user's program sees of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

OPTIMIZED = 0x1
"""CO_OPTIMIZED: the code of a function, whose locals are no dictionary."""
ASKING = frozenset({"locals", "vars", "dir", "eval", "exec"})
"""Calls with which a function sees the dictionary of its own locals."""
OWN_SNAPSHOT = sys.version_info < (3, 13)
"""Before PEP 667 the dictionary of a function's locals is kept in its frame and shared by all who ask."""


@contextmanager
def local_variables(frame: FrameType) -> Iterator[dict[str, Any]]:
    """The variables of ``frame`` by name; of a module its global ones. Not to be changed, nor kept.

    Before Python 3.13 asking fills a dictionary that stays in the frame and would keep old tensors alive, so it is
    emptied afterwards. A function that asks for its own ``locals()`` may hold the same dictionary: it is left alone,
    and nothing is seen of it.
    """
    code = frame.f_code
    if not code.co_flags & OPTIMIZED:
        yield frame.f_globals if frame.f_locals is frame.f_globals else {}
        return
    if not OWN_SNAPSHOT:
        yield dict(frame.f_locals)
        return
    if asks(code):
        yield {}
        return
    found = frame.f_locals
    try:
        yield found
    finally:
        found.clear()


def asks(code: CodeType) -> bool:
    """True if the function may hold the dictionary of its own locals: it calls ``locals()`` or one of its kind."""
    known = _ASKING.get(id(code))
    if known is None or known[0] is not code:
        import dis

        # ``model.eval()`` has the name as well, as an attribute; only a global one is the built-in function.
        loaded = {i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
        known = code, not ASKING.isdisjoint(loaded)
        if len(_ASKING) > 500:
            _ASKING.clear()
        _ASKING[id(code)] = known
    return known[1]


_ASKING: dict[int, tuple[CodeType, bool]] = {}
