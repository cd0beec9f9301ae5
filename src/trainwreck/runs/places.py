"""Where a run lives: which directory its files have in common, which start of a series of starts it is."""

from __future__ import annotations

import re
from functools import lru_cache

_INSIDE = re.compile(
    r"^(checkpoint[-_]\d+|files|logs?|train(ing)?|val(id(ation)?)?|eval(uation)?|test|vis_data|tensorboard|tb(_logs?)?|events?"
    r"|metrics|plots|\.hydra|dvclive|trainer_state|checkpoints?|[A-Z][a-z]{2}\d\d_\d\d-\d\d-\d\d_.+)$"
)
"""Directories that programs make inside the directory of a run."""
_START = re.compile(r"^(?:version_(?P<number>\d+)|(?:offline-)?run-(?P<stamp>\d{8}_\d{6})-\w+)$")
_SCALARS = re.compile(r"^.+_(train|training|val|valid|validation|eval|test|dev)$", re.IGNORECASE)
_RANK = re.compile(r"(?:^|[._-])rank[._-]?(\d+)(?=[._-]|$)", re.IGNORECASE)


def directory(path: str) -> str:
    """The directory part of ``path``, ``""`` for the working directory."""
    return path.rpartition("/")[0]


@lru_cache(maxsize=20_000)
def home(path: str) -> str:
    """The directory that the files of one run share: checkpoints, logs and splits are steps down from it."""
    parts = path.split("/")[:-1]
    while parts and _INSIDE.match(parts[-1]):
        stamped = re.match(r"^[A-Z][a-z]{2}\d\d_\d\d-", parts[-1])
        parts.pop()
        if stamped and parts and parts[-1] == "runs":
            parts.pop()  # Hugging Face: <output>/runs/<date>_<host>/
    return "/".join(parts)


def start_of(folder: str) -> tuple[str, str] | None:
    """(parent, sortable name) if ``folder`` is one of a series of starts: ``version_3``, ``run-20250101_120000-ab``."""
    parent, _, name = folder.rpartition("/")
    match = _START.match(name)
    if match is None:
        return None
    return (parent, match["stamp"] or f"{int(match['number']):09d}")


def tensorboard_split(folder: str) -> str | None:
    """The split of a directory that ``add_scalars`` made: ``Loss_val`` gives ``val``."""
    match = _SCALARS.match(folder)
    return match.group(1).lower() if match else None


def tensorboard_home(path: str) -> str:
    """As ``home``, for event files: the directories of ``add_scalars`` lie inside the run's."""
    folder = directory(path)
    if tensorboard_split(folder.rpartition("/")[2]):
        return home(f"{folder}")
    return home(path)


def rank_in(path: str) -> int | None:
    """The rank that a file name carries."""
    match = _RANK.search(path.rpartition("/")[2])
    return int(match.group(1)) if match else None
