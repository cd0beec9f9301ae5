"""The files beside a program that say something about it: requirements, locks, configurations, launch scripts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainwreck.code.project import Project

MAX_BYTES = 4 << 20
"""A larger file is data or generated; lock files of large projects have about 2 MB."""

KINDS: Mapping[str, Callable[[str], bool]] = {
    "requirements": lambda base: (
        base.endswith((".txt", ".in")) and bool(re.search(r"require[^/]*(/[^/]*)?$|constr", base))
    ),
    "lock": lambda base: base.endswith(("poetry.lock", "uv.lock", "pdm.lock")),
    "toml": lambda base: base.endswith("pyproject.toml"),
    "environment": lambda base: (
        base.endswith((".yml", ".yaml")) and ("env" in base.rsplit("/", 1)[-1] or "conda" in base)
    ),
    "shell": lambda base: base.endswith((".sh", ".bash", ".slurm", ".sbatch", "dockerfile")),
    "yaml": lambda base: base.endswith((".yml", ".yaml")),
    "json": lambda base: base.endswith(".json"),
    "settings-toml": lambda base: base.endswith(".toml") and not base.endswith(("pyproject.toml", "trainwreck.toml")),
}
"""What a file is by the last two parts of its path, lower case."""


def texts(project: Project, kinds: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(path, text) of the files of these kinds, in their order. One that can't be read is left out."""
    for source in project.program.others:
        name = "/".join(source.name.lower().split("/")[-2:])
        if not any(KINDS[kind](name) for kind in kinds):
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
