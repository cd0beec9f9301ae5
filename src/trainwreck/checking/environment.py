"""Releases that are installed in an environment, by the names of its ``dist-info`` directories. Nothing is imported."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from trainwreck.core.errors import TrainwreckError

MAX_ENTRIES = 20_000
_DISTRIBUTION = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[\w.]*[A-Za-z0-9])?)-(?P<version>[0-9][\w.!+]*)\.(?:dist|egg)-info$"
)


def installed(where: str = "") -> dict[str, str]:
    """Versions by package of the environment ``where`` (its directory, or its site-packages); "" is the active one,
    else that of the interpreter that runs. Raises TrainwreckError where there is none."""
    folders = list(_folders(Path(where or os.environ.get("VIRTUAL_ENV", "") or sys.prefix)))
    if not folders:
        raise TrainwreckError(f"{where or sys.prefix}: holds no site-packages; name the directory of an environment")
    found: dict[str, str] = {}
    for folder in folders:
        try:
            names = sorted(entry.name for entry in os.scandir(folder))[:MAX_ENTRIES]
        except OSError as problem:
            reason = problem.strerror or type(problem).__name__
            raise TrainwreckError(f"{folder}: cannot be read ({reason}); check its permissions") from problem
        for name in names:
            match = _DISTRIBUTION.match(name)
            if match is not None:
                key = re.sub(r"[-_.]+", "-", match["name"]).lower()
                found.setdefault(key, match["version"])
    return found


def _folders(top: Path) -> list[Path]:
    if top.name in ("site-packages", "dist-packages"):
        return [top] if top.is_dir() else []
    patterns = ("lib/python3*/site-packages", "lib64/python3*/site-packages", "Lib/site-packages")
    seen: dict[Path, None] = {}
    for pattern in patterns:
        for folder in sorted(top.glob(pattern)):
            if folder.is_dir():
                seen.setdefault(folder.resolve())
    return list(seen)
