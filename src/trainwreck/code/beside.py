"""The files beside a program that say something about it: requirements, locks, configurations, launch scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainwreck.code.project import Project

MAX_BYTES = 4 << 20
"""A larger file is data or generated; lock files of large projects have about 2 MB."""

KINDS: Mapping[str, Callable[[str], bool]] = {
    "requirements": lambda base: base.endswith((".txt", ".in")) and ("require" in base or "constraint" in base),
    "lock": lambda base: base in ("poetry.lock", "uv.lock", "pdm.lock", "pylock.toml"),
    "toml": lambda base: base == "pyproject.toml",
    "environment": lambda base: base.endswith((".yml", ".yaml")) and ("env" in base or "conda" in base),
    "shell": lambda base: base.endswith((".sh", ".bash", ".slurm", ".sbatch")) or base == "dockerfile",
    "yaml": lambda base: base.endswith((".yml", ".yaml")),
    "json": lambda base: base.endswith(".json"),
}
"""What a file is by its base name, lower case."""


def texts(project: Project, kinds: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(path, text) of the files of these kinds, in their order. One that can't be read is left out."""
    for source in project.program.others:
        if not any(KINDS[kind](source.basename) for kind in kinds):
            continue
        key = f"text of {source.name}"
        if key not in project.memo:
            project.memo[key] = None
            if (source.size is None or source.size <= MAX_BYTES) and not source.is_binary:
                try:
                    project.memo[key] = source.text(MAX_BYTES)
                except (OSError, EOFError, ValueError):
                    continue
        if project.memo[key] is not None:
            yield source.name, project.memo[key]
