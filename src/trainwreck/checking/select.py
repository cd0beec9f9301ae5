"""Which findings are wanted: by id, family, id prefix or ``ALL``; the more specific word wins, then the later one."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path

from trainwreck.checking.settings import Settings
from trainwreck.core.results import Finding

Describe = Callable[[str], tuple[str, str]]
"""From an id to its family and its maturity (``stable`` or ``preview``)."""


def chooser(
    settings: Settings, describe: Describe, aliases: Mapping[str, str] | None = None
) -> Callable[[Finding], bool]:
    """A function that says whether a finding is wanted under ``settings``. ``aliases``: other names of ids."""
    other = aliases or {}
    wanted = [other.get(word, word) for word in (*(settings.select or ("ALL",)), *settings.extend_select)]
    unwanted = [other.get(word, word) for word in settings.ignore]
    files = {p: [other.get(word, word) for word in words] for p, words in settings.per_file_ignores.items()}

    def choose(finding: Finding) -> bool:
        family, maturity = describe(finding.id)
        yes = max((_fit(word, finding, family) for word in wanted), default=0)
        no = max((_fit(word, finding, family) for word in unwanted), default=0)
        if yes == 0 or no >= yes:
            return False
        if maturity == "preview" and not settings.preview and yes < ID:
            return False
        return not _ignored_there(finding, family, files, settings.root)

    return choose


ID, PREFIX, FAMILY, EVERYTHING = 4, 3, 2, 1


def _fit(word: str, finding: Finding, family: str) -> int:
    """How specifically ``word`` means this finding; 0: not at all."""
    if word in (finding.id, finding.sign):
        return ID
    if word == "ALL":
        return EVERYTHING
    if word == family:
        return FAMILY
    return PREFIX if word.endswith("-") and finding.id.startswith(word) else 0


def _ignored_there(finding: Finding, family: str, files: Mapping[str, Sequence[str]], root: Path | None) -> bool:
    return any(
        any(_fit(w, finding, family) for w in words) and path_fits(finding.path, pattern, root)
        for pattern, words in files.items()
    )


def path_fits(path: str, pattern: str, root: Path | None = None) -> bool:
    """True if ``pattern`` means ``path``: the whole of it, as named or from ``root``, its last part, or a directory on
    the way to it (``third_party`` and ``third_party/`` mean everything below)."""
    names = [path]
    if root is not None:
        names.append(os.path.relpath(os.path.abspath(path), root).replace(os.sep, "/"))
    bare = pattern.rstrip("/").removeprefix("./").removesuffix("/**")
    for name in names:
        parts = name.split("/")
        if fnmatch(name, pattern) or fnmatch(parts[-1], pattern):
            return True
        if any(fnmatch("/".join(parts[:n]), bare) or fnmatch(parts[n - 1], bare) for n in range(1, len(parts))):
            return True
    return False


def words(settings: Settings) -> list[str]:
    """All words of the selections, as written."""
    chosen = [word for each in settings.per_file_ignores.values() for word in each]
    return [*settings.select, *settings.extend_select, *settings.ignore, *chosen]


def unknown_words(settings: Settings, ids: Sequence[str], families: Sequence[str]) -> list[str]:
    """Words of the selections that mean nothing: typing errors that would silently select or ignore nothing."""
    known = {"ALL", *ids, *families, *(f"code-{i}" for i in ids)}
    return [
        w
        for w in dict.fromkeys(words(settings))
        if w not in known and not (w.endswith("-") and any(i.startswith(w) for i in ids))
    ]
