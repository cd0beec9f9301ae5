"""Paths of a recording and of the program that was read: the same files, told from other directories."""

from __future__ import annotations

from trainwreck.code.project import Project
from trainwreck.code.scopes import Scope


def top(project: Project, path: str | None) -> Scope | None:
    """The module at ``path``, by as many of its last parts as agree; None if no file has its name."""
    if not path:
        return None
    wanted = path.replace("\\", "/").split("/")
    best: tuple[int, Scope] | None = None
    for known, walked in project.walked.items():
        parts = known.split("/")
        count = 0
        for one, other in zip(reversed(parts), reversed(wanted), strict=False):
            if one != other:
                break
            count += 1
        if count and (best is None or count > best[0]):
            best = (count, walked.top)
    return best[1] if best is not None else None
