"""Regular expressions that are compiled at their first use.

The rules hold some 270 of them, and a look at one script uses a quarter: compiling the rest costs more than the look.
"""

from __future__ import annotations

import re
from typing import Any, cast


class _Lazy:
    __slots__ = ("_compiled", "_flags", "_text")

    def __init__(self, text: str, flags: int) -> None:
        self._text = text
        self._flags = flags
        self._compiled: re.Pattern[str] | None = None

    def __getattr__(self, name: str) -> Any:
        if self._compiled is None:
            self._compiled = re.compile(self._text, self._flags)
        return getattr(self._compiled, name)


def pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """``text`` as a pattern to be used by its methods (``.search(text)``), never as ``re.search(pattern, text)``.

    Raises ``re.error`` for a wrong expression when it is first used: ``tests/test_house.py`` compiles them all.
    """
    return cast("re.Pattern[str]", _Lazy(text, flags))
