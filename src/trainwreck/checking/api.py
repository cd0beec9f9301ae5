"""``trainwreck.check`` for programs: paths in, a ``Result`` out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from trainwreck.checking.check import check as checked
from trainwreck.checking.command import configured, nearest_settings
from trainwreck.core.results import Result

NO_OPTIONS = {
    "select": (),
    "extend_select": (),
    "ignore": (),
    "exclude": (),
    "target": (),
    "config": (),
    "isolated": False,
    "fail_on": None,
    "baseline": None,
    "preview": False,
}


def check(paths: str | Path | Iterable[str | Path] = ".", *, targets: dict[str, str] | None = None) -> Result:
    """Static analysis of files and directories, with the settings of their project.

    ``targets``: releases to check against, by package name. Nothing that is read is run. Raises NothingReadable if
    nothing below ``paths`` could be read, TrainwreckError for settings that mean nothing.
    """
    given = [str(paths)] if isinstance(paths, str | Path) else [str(p) for p in paths]
    wanted = configured(given, NO_OPTIONS)
    if targets:
        wanted = replace(wanted, target={**wanted.target, **targets})
    return checked(given, wanted, nearest=nearest_settings(wanted, NO_OPTIONS)).result
