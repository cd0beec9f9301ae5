"""Faults of ours stay ours: contained, counted, told once, and the training goes on."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable

MAX_FAULTS = 3
"""Faults of one part after which that part is silent for the rest of the run (a judgement: one may be an odd tensor,
three are a habit, and each costs time)."""


class Faults:
    """Counts the faults of each part of the recorder and says which parts are off."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self.off: set[str] = set()
        self._texts: dict[str, str] = {}
        self.note: Callable[[str, str], None] | None = None
        """Takes (name of the part, what happened): the recorder writes it into the events."""

    def add(self, part: str, problem: Exception) -> None:
        """Note a fault of ``part``; after ``MAX_FAULTS`` the part is off, which is told in one line."""
        text = f"{type(problem).__name__}: {problem}"
        self._texts[part] = text
        count = self._counts[part] = self._counts.get(part, 0) + 1
        if self.note is not None:
            with contextlib.suppress(Exception):
                self.note(part, text)
        if count == MAX_FAULTS:
            self.off.add(part)
            with contextlib.suppress(Exception):
                print(f"trainwreck: no longer recording {part} ({text})", file=sys.stderr)

    def last_words(self, part: str) -> None:
        """At the end: say in one line that ``part`` failed, where that has not been told."""
        if part in self._texts and part not in self.off:
            with contextlib.suppress(Exception):
                text = f"the recording is not complete: {part} failed ({self._texts[part]})"
                print(f"trainwreck: {text}", file=sys.stderr)
