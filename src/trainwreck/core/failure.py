"""Errors as they were reported: exceptions, their frames, and the chain that they form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainwreck.core.evidence import Where


@dataclass(frozen=True, slots=True)
class Frame:
    """One line of a traceback. ``path`` as printed; ``user`` is False inside installed packages and the standard
    library; ``text`` is the quoted source line, ``marked`` the part of it under the carets (empty where none)."""

    path: str
    line: int
    function: str
    text: str = ""
    user: bool = True
    marked: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """One exception (or native error) as printed.

    ``frames`` run from the outermost call to the place where it surfaced. ``cause`` is the exception that it was raised
    from or while handling, or the one that a worker, rank or actor passed on: the innermost cause is where to look
    first. ``line`` is the first line of the report in ``path``, ``end_line`` its last. ``fatal`` is False where
    the run went on afterwards. ``context`` holds the lines just before (warnings, prints), newest last.
    """

    type: str
    message: str
    frames: Sequence[Frame] = ()
    cause: Failure | None = None
    path: str = ""
    line: int | None = None
    end_line: int | None = None
    rank: int | None = None
    worker: int | None = None
    fatal: bool = True
    context: Sequence[str] = ()
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def root(self) -> Failure:
        """The innermost cause of the chain."""
        failure = self
        while failure.cause is not None:
            failure = failure.cause
        return failure

    @property
    def surfaced(self) -> Frame | None:
        """The innermost user frame of the innermost cause that has one, else the innermost frame at all."""
        chain = [self]
        while chain[-1].cause is not None:
            chain.append(chain[-1].cause)
        for failure in reversed(chain):
            for frame in reversed(failure.frames):
                if frame.user:
                    return frame
        return self.root.frames[-1] if self.root.frames else (self.frames[-1] if self.frames else None)

    def where(self) -> Where:
        """The place in the log."""
        return Where("log", path=self.path or None, line=self.line, rank=self.rank)
